package kind

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Describe prints every field of every kind, one a line, so that a review
// sees when the contract changes.
func (s *Catalog) Describe(w io.Writer) error {
	var b strings.Builder
	for i, d := range s.Defs {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s /%s: %s\n", d.Name, d.Path, d.Doc)
		describeFields(&b, d.Fields, "  ")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func describeFields(b *strings.Builder, fields []*Field, indent string) {
	for _, f := range fields {
		fmt.Fprintf(b, "%s%s %s%s\n", indent, f.last, f.form(), f.words())
		describeFields(b, f.Members, indent+"  ")
	}
}

// form names the field's form with what its Go type adds to it.
func (f *Field) form() string {
	switch {
	case f.Form == Map:
		return "map of " + f.element().String()
	case f.optional():
		return "optional " + f.Form.String()
	}
	return f.Form.String()
}

// words lists what the tags say, in one order.
func (f *Field) words() string {
	var b strings.Builder
	say := func(on bool, format string, args ...any) {
		if on {
			b.WriteByte(' ')
			fmt.Fprintf(&b, format, args...)
		}
	}
	say(f.Required == Create|Replace, "required")
	say(f.Required != 0 && f.Required != Create|Replace, "required=%s", f.Required)
	say(f.Fixed, "fixed")
	say(f.Repeated, "repeated")
	say(f.Server, "server")
	say(f.Secret, "secret")
	say(f.Sealed, "sealed")
	say(f.Hidden, "hidden")
	say(f.Keep, "keep")
	say(f.Nullable, "nullable")
	say(f.Null, "null")
	say(f.Omit, "omit")
	say(f.NoFilter, "nofilter")
	say(f.Unique, "unique")
	say(f.Indexed, "index")
	say(f.Searched, "searched")
	say(f.Few, "few")
	say(f.Attributes, "attributes")
	say(f.Roles != "", "roles=%s", f.Roles)
	say(f.Ref != "", "ref=%s:%s", f.Ref, f.OnDelete)
	say(len(f.Among) > 0, "among=%s", strings.Join(f.Among, "|"))
	say(f.Linked, "link")
	say(f.As != "", "as=%s", f.As)
	say(f.Out != "", "out=%s", f.Out)
	say(len(f.Aliases) > 0, "alias=%s", strings.Join(f.Aliases, "|"))
	say(f.Limited && f.Max == math.MaxInt64, "range=%d..", f.Min)
	say(f.Limited && f.Max != math.MaxInt64, "range=%d..%d", f.Min, f.Max)
	say(len(f.Enum) > 0, "enum=%s", strings.Join(f.Enum, "|"))
	say(f.Numbered, "numbered")
	say(len(f.Synonyms) > 0, "synonym=%s", strings.Join(f.synonyms(":"), "|"))
	say(f.Format != "", "format=%s", f.Format)
	say(f.Default != "", "default=%s", f.Default)
	say(f.Usual != "", "usual=%s", f.Usual)
	say(len(f.Was) > 0, "was=%s", strings.Join(f.Was, "|"))
	say(f.When != "", "when=%s", f.When)
	return b.String()
}

var (
	shapeNames    = [...]string{"create", "replace", "patch"}
	onDeleteNames = [...]string{"restrict", "cascade", "clear"}
)

// String lists the shapes in s, with bars between them.
func (s Shape) String() string {
	var names []string
	for i, name := range shapeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

func (o OnDelete) String() string { return onDeleteNames[o] }
