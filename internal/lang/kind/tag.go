package kind

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// readTag reads the words of a kind tag, such as `kind:"required,range=1..9"`.
// It panics on a word it does not know or that does not fit the field.
func (f *Field) readTag(owner reflect.Type, tag string) {
	if tag == "" {
		return
	}
	for text := range strings.SplitSeq(tag, ",") {
		name, arg, has := strings.Cut(text, "=")
		w, known := words[name]
		switch {
		case !known:
			misdeclared(owner, f.Name, "unknown word %q", text)
		case has && w.arg == none:
			misdeclared(owner, f.Name, "word %q takes no argument", text)
		case has && arg == "" || !has && w.arg == one:
			misdeclared(owner, f.Name, "word %q needs an argument", text)
		case w.forms != nil && !slices.Contains(w.forms, f.Form):
			misdeclared(owner, f.Name, "word %q does not fit a field of form %s", text, f.Form)
		}
		if err := w.apply(f, arg); err != nil {
			misdeclared(owner, f.Name, "word %q: %v", text, err)
		}
	}
	if err := f.coherent(); err != nil {
		misdeclared(owner, f.Name, "%v", err)
	}
}

// word is one entry of the tag vocabulary.
type word struct {
	arg   argument
	forms []Form // that it fits; nil for all
	apply func(f *Field, arg string) error
}

// argument says whether a word takes one.
type argument uint8

const (
	none argument = iota
	maybe
	one
)

// flag is a word that says yes.
func flag(set func(*Field), forms ...Form) word {
	return word{none, forms, func(f *Field, _ string) error { set(f); return nil }}
}

// named is a word that gives a name.
func named(set func(*Field, string), forms ...Form) word {
	return word{one, forms, func(f *Field, arg string) error { set(f, arg); return nil }}
}

// listed is a word that gives several texts.
func listed(set func(*Field, []string), forms ...Form) word {
	return word{one, forms, func(f *Field, arg string) error {
		list := strings.Split(arg, "|")
		if slices.Contains(list, "") {
			return errors.New("names nothing between two bars")
		}
		set(f, list)
		return nil
	}}
}

// words is the whole vocabulary. CONTRIBUTING.md explains each.
var words = map[string]word{
	"required": {maybe, nil, readRequired},
	"fixed":    flag(func(f *Field) { f.Fixed = true }),
	"repeated": flag(func(f *Field) { f.Repeated = true }),
	"server":   flag(func(f *Field) { f.Server = true }),
	"secret":   flag(func(f *Field) { f.Secret = true }),
	"sealed":   flag(func(f *Field) { f.Sealed = true }),
	"hidden":   flag(func(f *Field) { f.Hidden = true }),
	"keep":     flag(func(f *Field) { f.Keep = true }),
	// A false that turns into null would be no boolean any more.
	"nullable":   flag(func(f *Field) { f.Nullable = true }, Text, Int, Time, Bytes, Texts, Struct, Structs, Map, Marks, JSON),
	"null":       flag(func(f *Field) { f.Null = true }, Texts),
	"omit":       flag(func(f *Field) { f.Omit = true }),
	"nofilter":   flag(func(f *Field) { f.NoFilter = true }),
	"unique":     flag(func(f *Field) { f.Unique = true }, Text),
	"index":      flag(func(f *Field) { f.Indexed = true }, Text),
	"searched":   flag(func(f *Field) { f.Searched = true }, Text),
	"few":        flag(func(f *Field) { f.Few = true }, Text, Texts, Map),
	"attributes": flag(func(f *Field) { f.Attributes = true }, Texts),
	"roles":      named(func(f *Field, arg string) { f.Roles = arg }, Texts),
	"ref":        {one, []Form{Text, Texts, Map}, readRef},
	"among":      listed(func(f *Field, list []string) { f.Among = list }, Text, Texts),
	"link":       flag(func(f *Field) { f.Linked = true }, Text),
	"as":         named(func(f *Field, arg string) { f.As = arg }, Text),
	"out":        named(func(f *Field, arg string) { f.Out = arg }),
	"alias":      listed(func(f *Field, list []string) { f.Aliases = list }),
	"range":      {one, []Form{Text, Int, Bytes, Texts, Structs, Map}, readRange},
	"enum":       listed(func(f *Field, list []string) { f.Enum = list }, Text, Texts, Map),
	"numbered":   flag(func(f *Field) { f.Numbered = true }, Text),
	"synonym":    {one, []Form{Text}, readSynonyms},
	"format":     {one, []Form{Text, Texts}, readFormat},
	"default":    {one, []Form{Text, Bool, Int}, readDefault},
	"usual":      {one, []Form{Text, Bool, Int}, readUsual},
	"was":        listed(func(f *Field, list []string) { f.Was = list }),
	"when":       {one, nil, readWhen},
}

// coherent refuses words that do not go together: one of them would be a rule
// that silently never runs.
func (f *Field) coherent() error {
	switch {
	case f.Server && (f.Required != 0 || f.Fixed || f.Keep):
		return errors.New("no body sets it, so required, fixed and keep say nothing")
	case f.Searched && (!f.Unique || f.Secret || f.NoFilter || f.When != ""):
		return errors.New("searched is for a unique field that every record has and filters may name")
	case f.Few && (f.Unique || !f.Indexed && f.Ref == "" && f.Roles == ""):
		return errors.New("few is for an index in which many records are under one key")
	case f.Repeated && !f.Fixed:
		return errors.New("repeated says nothing where bodies can set the field")
	case f.Fixed && !f.Repeated && f.Required&^Create != 0:
		return errors.New("a fixed field is read from create bodies alone, unless it is repeated")
	case f.Keep && (f.Fixed || f.Required&Replace != 0):
		return errors.New("keep says nothing where a replace cannot leave the field out")
	case f.Nullable && f.Omit:
		return errors.New("nullable and omit contradict each other")
	case f.Null && (f.Nullable || f.Omit || f.Server || f.Secret || f.Sealed || f.Hidden || f.Repeated || f.When != "" || f.Required != 0):
		return errors.New("null is for a list that every record has, answers show, and bodies may say nothing of")
	case (f.As != "" || f.Linked) && f.Ref == "":
		return errors.New("as and link need a ref to lead to")
	case f.Roles != "" && (f.Ref != "" || f.Attributes):
		return errors.New("roles are neither ids nor attributes")
	case f.Among != nil && (f.Ref != "" || f.Roles != "" || f.Attributes):
		return errors.New("among says of which kinds the ids are; ref, roles and attributes say something else")
	case f.Numbered && len(f.Enum) == 0:
		return errors.New("numbered needs an enum to count")
	case slices.ContainsFunc(slices.Collect(maps.Values(f.Synonyms)), func(word string) bool { return !slices.Contains(f.Enum, word) }):
		return errors.New("a synonym must stand for a word of enum")
	case slices.ContainsFunc(f.Enum, func(word string) bool { return f.Synonyms[word] != "" }):
		return errors.New("a synonym must be no word of enum itself")
	case f.Form == Map && len(f.Enum) > 0 && f.element() != Text:
		return fmt.Errorf("enum does not fit values of form %s", f.element())
	case f.Form == Map && f.Limited && f.element() != Int:
		return fmt.Errorf("range does not fit values of form %s", f.element())
	case f.usual.IsValid() && f.Required&Create == 0:
		return errors.New("usual says nothing where a create may leave the field out")
	case f.usual.IsValid():
		if err := f.limit(f.usual, f.Name); err != nil {
			return fmt.Errorf("the usual value is refused: %w", err)
		}
	case f.initial.IsValid():
		if err := f.limit(f.initial, f.Name); err != nil {
			return fmt.Errorf("the default is refused: %w", err)
		}
	}
	return nil
}

// needsRecord returns the word that only a field of a stored record can
// follow, if the field has one.
func (f *Field) needsRecord() string {
	switch {
	case f.Unique:
		return "unique"
	case f.Indexed:
		return "index"
	case f.Ref != "":
		return "ref"
	case f.Roles != "":
		return "roles"
	case f.Sealed:
		return "sealed" // every seal has a place of its own
	}
	return ""
}

// refuseRules panics if a field that is not looked at when records are
// written has a word that would have to be.
func refuseRules(t reflect.Type, fields []*Field) {
	for _, f := range fields {
		if w := f.needsRecord(); w != "" {
			misdeclared(t, f.Name, "word %q works only in a record and structs that it holds one of", w)
		}
		refuseRules(t, f.Members)
	}
}

// refuseWas panics if a field that is never stored was called something else.
func refuseWas(t reflect.Type, fields []*Field) {
	for _, f := range fields {
		if f.Was != nil {
			misdeclared(t, f.Name, "word %q works only in what is stored", "was")
		}
		refuseWas(t, f.Members)
	}
}

func readRequired(f *Field, arg string) error {
	if arg == "" {
		f.Required = Create | Replace
		return nil
	}
	for name := range strings.SplitSeq(arg, "|") {
		i := slices.Index(shapeNames[:], name)
		if i < 0 {
			return fmt.Errorf("no shape %q", name)
		}
		f.Required |= 1 << i
	}
	return nil
}

func readRef(f *Field, arg string) error {
	target, rule, _ := strings.Cut(arg, ":")
	if target == "" {
		return errors.New("names no kind")
	}
	i := slices.Index(onDeleteNames[:], rule)
	if i < 0 {
		return fmt.Errorf("no rule %q for the target's delete", rule)
	}
	f.Ref, f.OnDelete = target, OnDelete(i)
	return nil
}

func readRange(f *Field, arg string) (err error) {
	lo, hi, ok := strings.Cut(arg, "..")
	if !ok {
		return errors.New("must look like 1..9")
	}
	f.Limited, f.Max = true, math.MaxInt64
	if f.Min, err = strconv.ParseInt(lo, 10, 64); err != nil {
		return err
	}
	if hi != "" {
		if f.Max, err = strconv.ParseInt(hi, 10, 64); err != nil {
			return err
		}
	}
	if f.Min > f.Max {
		return errors.New("no value is in it")
	}
	return nil
}

func readSynonyms(f *Field, arg string) error {
	f.Synonyms = map[string]string{}
	for text := range strings.SplitSeq(arg, "|") {
		word, means, _ := strings.Cut(text, ":")
		if word == "" || means == "" {
			return errors.New("must look like word:meaning")
		}
		f.Synonyms[word] = means
	}
	return nil
}

func readFormat(f *Field, arg string) error {
	if _, ok := formats[arg]; !ok {
		return fmt.Errorf("no format %q", arg)
	}
	f.Format = arg
	return nil
}

func readDefault(f *Field, arg string) (err error) {
	f.Default = arg
	f.initial, err = f.literal(arg)
	return err
}

func readUsual(f *Field, arg string) (err error) {
	f.Usual = arg
	f.usual, err = f.literal(arg)
	return err
}

// literal is a value of the field as a tag writes it.
func (f *Field) literal(text string) (reflect.Value, error) {
	v := reflect.New(f.typ).Elem()
	switch f.Form {
	case Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return v, err
	case Int:
		n, err := strconv.ParseInt(text, 10, f.typ.Bits())
		v.SetInt(n)
		return v, err
	}
	v.SetString(text)
	return v, nil
}

func readWhen(f *Field, arg string) error {
	name, value, _ := strings.Cut(arg, ":")
	if name == "" || value == "" {
		return errors.New("must look like field:value")
	}
	f.When = arg
	return nil
}
