package console

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/lang/kind"
)

// The prefixes of what inputs are called: what somebody gives, what was there when the
// form was made, and whether a struct is to be there at all.
const (
	inputPrefix = "f."
	wasPrefix   = "was."
	hasPrefix   = "has."
)

// formView is a page with a form.
type formView struct {
	Head, About     string
	Up              navLink
	Action          string
	Problem, Notice string
	Inputs, More    []*inputView // the rest is rarely given
	MoreOpen        bool
	Save            string
	Look            string    // where to see what would come of it; empty if nobody can say
	Plan            *planView // what would
	Stamp           string    // when the record was last changed
	Overrides       bool      // whether it can be saved though an assertion is against it
}

// inputView is one input, or a group of them.
type inputView struct {
	Type        string // check, select, area, text, password, number, group or rows
	Name, ID    string
	Label, Doc  string
	Value, Was  string
	HasWas      bool
	Checked     bool
	Required    bool
	Options     []string
	Suggest     string // what there is to choose from, as the page of suggestions is asked for it
	After       string // what comes after one of those
	Hint        string
	Rows        int
	Error       string
	Theirs      string // what somebody else made of it meanwhile
	Contested   bool
	When, Word  string // the input that decides whether it counts, and for which word
	Has         string // input that says whether a group is there
	Inputs      []*inputView
	Entries     [][]*inputView
	EntriesName string
}

// drawing makes inputs of fields.
type drawing struct {
	visit    *visit
	in       values
	was      map[string]string // canonical, by path; nil for a new record
	errors   map[string]string
	theirs   map[string]string // what others made of it, by path
	of       string            // name of the kind
	required kind.Shape
}

func (d *drawing) inputs(fields []*kind.Field, prefix string) (all []*inputView) {
	for _, f := range fields {
		path := prefix + f.Last()
		i := &inputView{
			Name: inputPrefix + path, ID: "f-" + strings.ReplaceAll(path, ".", "-"), Label: called(f, f.Last()), Doc: explained(f),
			Required: f.Required&d.required != 0 && !f.Nullable && f.When == "", Error: d.errors[path],
		}
		if decides, word := (leaf{path: path, field: f}).decide(); decides != "" {
			i.When, i.Word = inputPrefix+decides, word
		}
		switch f.Form {
		case kind.Struct:
			i.Type, i.Inputs = "group", d.inputs(f.Members, path+".")
			if f.Optional() {
				i.Has, i.Checked = hasPrefix+path, d.in[path+givenSuffix] != ""
			}
		case kind.Structs:
			d.entries(i, f, path)
			d.before(i, path)
		default:
			d.single(i, f, path)
			d.before(i, path)
		}
		all = append(all, i)
	}
	return all
}

// before adds what was there when the form was made.
func (d *drawing) before(i *inputView, path string) {
	if d.was != nil {
		i.Was, i.HasWas = d.was[path], true
	}
	if text, ok := d.theirs[path]; ok {
		i.Contested, i.Theirs = true, text
	}
}

// entries are the inputs of a list of structs: what there is, and some that are empty.
func (d *drawing) entries(i *inputView, f *kind.Field, path string) {
	i.Type, i.EntriesName = "rows", inputPrefix+path+rowsSuffix
	n := min(rowsIn(d.in, path)+2, maxRows)
	inner := *d
	inner.was, inner.required = nil, 0
	for row := range n {
		i.Entries = append(i.Entries, inner.inputs(f.Members, fmt.Sprintf("%s.%d.", path, row)))
	}
	i.Value = strconv.Itoa(n)
}

// single is the input of one value.
func (d *drawing) single(i *inputView, f *kind.Field, path string) {
	i.Value = d.in[path]
	i.Suggest, i.After = suggestedFor(d.of, f)
	switch {
	case f.Form == kind.Bool:
		i.Type, i.Checked = "check", i.Value == "true"
	case len(f.Enum) > 0 && f.Form == kind.Text:
		i.Type, i.Options = "select", f.Enum
		if i.Value != "" && !slices.Contains(f.Enum, i.Value) {
			i.Options = append([]string{i.Value}, f.Enum...)
		}
	case f.Secret && f.Form == kind.Text:
		i.Type, i.Value = "password", ""
	case f.Form == kind.Int:
		i.Type = "number"
	case f.Form == kind.Text && len(f.Targets()) > 0:
		i.Type = "text"
	case f.Form == kind.Texts:
		i.Type, i.Rows, i.Hint = "area", 3, "One a line."
		if f.Roles != "" {
			i.Hint = "One a line: #attribute, @name, or #all."
		}
	case f.Form == kind.Map:
		i.Type, i.Rows, i.Hint = "area", 3, "One a line: name: value."
		if len(f.Enum) > 0 {
			i.Hint += " The value is one of " + strings.Join(f.Enum, ", ") + "."
		}
	case f.Form == kind.Marks:
		i.Type, i.Rows, i.Hint = "area", 2, "One a line: name: value."
	case f.Form == kind.JSON:
		i.Type, i.Rows, i.Hint = "area", 8, "A JSON object."
	case f.Form == kind.Text && strings.HasSuffix(f.Last(), "Pem"):
		i.Type, i.Rows, i.Hint = "area", 6, "PEM, beginning with -----BEGIN."
	case f.Form == kind.Time:
		i.Type, i.Hint = "text", "In UTC, such as 2026-01-31 12:00."
	default:
		i.Type = "text"
	}
}

// view completes the page of a form.
func (d *drawing) view(view formView, fields []*kind.Field) formView {
	if d.errors == nil {
		d.errors = map[string]string{}
	}
	first, rest := inOrder(fields, d.required)
	view.Inputs, view.More = d.inputs(first, ""), d.inputs(rest, "")
	view.MoreOpen = d.was != nil || slices.ContainsFunc(rest, func(f *kind.Field) bool { return d.troubled(f.Last()) })
	if len(view.Inputs) == 0 {
		view.Inputs, view.More = view.More, nil
	}
	return view
}

// troubled reports whether there is something to say of a field or a part of it.
func (d *drawing) troubled(path string) bool {
	for at := range d.errors {
		if at == path || strings.HasPrefix(at, path+".") {
			return true
		}
	}
	return false
}

// inOrder are the fields that people have to think about, and the rest: what a body must
// hold, what policies go by, what others decide on, and what comes with a new record.
func inOrder(fields []*kind.Field, shape kind.Shape) (first, rest []*kind.Field) {
	var then []*kind.Field
	for _, f := range fields {
		switch {
		case f.Name == "tags":
			defer func() { rest = append(rest, f) }()
		case f.Name == "name" || f.Required&(shape|kind.Create) != 0 && f.When == "":
			first = append(first, f)
		case f.Attributes || f.Roles != "" || f.When != "" || f.Form == kind.Struct && f.Name == "enrollment":
			then = append(then, f)
		default:
			rest = append(rest, f)
		}
	}
	return append(first, then...), rest
}

// called is what people call a field. Who refers to a record does so by its name.
func called(f *kind.Field, path string) string {
	text := titled(kind.Heading(path))
	if len(f.Targets()) > 0 {
		text = strings.TrimSuffix(text, " ID")
	}
	return text
}

// explained is what a field is, in a sentence.
func explained(f *kind.Field) string {
	if len(f.Targets()) == 0 {
		return f.Doc
	}
	return strings.NewReplacer("Ids of", "Names or ids of", "Id of", "Name or id of").Replace(f.Doc)
}

// sent are the values that a form came with.
func sent(form url.Values) (in values, was map[string]string) {
	in, was = values{}, map[string]string{}
	for name := range form {
		text := strings.ReplaceAll(form.Get(name), "\r\n", "\n")
		switch {
		case strings.HasPrefix(name, inputPrefix):
			in[strings.TrimPrefix(name, inputPrefix)] = text
		case strings.HasPrefix(name, wasPrefix):
			was[strings.TrimPrefix(name, wasPrefix)] = text
		case strings.HasPrefix(name, hasPrefix):
			in[strings.TrimPrefix(name, hasPrefix)+givenSuffix] = text
		}
	}
	return in, was
}

// firstWishes are what most people want of a new record, where neither its kind nor
// its operation says so: an identity that nobody can enroll is of little use.
var firstWishes = map[string]values{
	"identity": {"enrollment" + givenSuffix: "true", "enrollment.ott": "true"},
}

// usual are the values that a form for a new record begins with.
func (v *visit) usual(of resource, fields []*kind.Field) values {
	in := values{}
	for _, l := range leavesOf(fields, "") {
		switch f := l.field; {
		case f.Usual != "":
			in[l.path] = f.Usual
		case f.Default != "":
			in[l.path] = f.Default
		case f.Form == kind.Time && f.Required&kind.Create != 0:
			in[l.path] = v.Now().UTC().Add(24 * time.Hour).Format("2006-01-02 15:04")
		}
	}
	for path, text := range firstWishes[of.Name] {
		in[path] = text
	}
	for name, given := range v.r.URL.Query() { // as links of other pages say
		if path, ok := strings.CutPrefix(name, inputPrefix); ok {
			in[path] = given[0]
		}
	}
	return in
}
