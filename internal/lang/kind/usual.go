package kind

// Complete adds to the body of a create what it must hold and what most people
// would say there, where it says nothing: a command line and files need not
// repeat it.
func (d *Def) Complete(body map[string]any) { complete(d.Fields, body) }

func complete(fields []*Field, body map[string]any) {
	for _, f := range fields {
		if f.Server || f.Required&Create == 0 || f.When != "" {
			continue
		}
		if f.Form == Struct {
			inner, ok := body[f.last].(map[string]any)
			if !ok {
				if body[f.last] != nil || f.optional() {
					continue // of another type, which the controller says, or for people to say
				}
				inner = map[string]any{}
				body[f.last] = inner
			}
			complete(f.Members, inner)
			continue
		}
		if _, said := body[f.last]; said {
			continue
		}
		if v, ok := f.usualValue(); ok {
			body[f.last] = v
		}
	}
}

// usualValue is what most people would give the field; not ok if only they
// can say.
func (f *Field) usualValue() (v any, ok bool) {
	switch {
	case f.usual.IsValid():
		return f.usual.Interface(), true
	case f.Form == Bool:
		return false, true
	case f.Form == Int && (!f.Limited || f.Min <= 0):
		return 0, true
	case f.Form == Texts && (!f.Limited || f.Min <= 0):
		return []string{}, true
	}
	return nil, false
}

// Last is the field's name within the struct that holds it.
func (f *Field) Last() string { return f.last }

// Taken reports whether bodies of a shape may set the field.
func (f *Field) Taken(shape Shape) bool { return f.settable(shape) }

// Shown is the field's name in answers.
func (f *Field) Shown() string { return f.shownAs() }

// Element is the form of a map's values.
func (f *Field) Element() Form { return f.element() }
