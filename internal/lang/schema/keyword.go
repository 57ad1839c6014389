package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxPattern bounds the instructions of one compiled pattern.
const maxPattern = 4096

// pattern is a regular expression of package regexp, which takes time linear
// in the length of the text, and its size.
type pattern struct {
	*regexp.Regexp
	size int
}

// compilePattern refuses a pattern that repeats itself into a huge one before
// it is written out.
func compilePattern(expr string) (jsonschema.Regexp, error) {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := instructions(tree)
	if size > maxPattern {
		return nil, fmt.Errorf("more than %d instructions when written out", maxPattern)
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	return &pattern{re, size}, nil
}

// instructions estimates the size of a compiled pattern.
func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	if re.Op == syntax.OpCharClass {
		n = 1
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// formats returns the formats that we assert beyond those of the library, or
// more strictly.
func formats() map[string]func(v any) error {
	return map[string]func(v any) error{
		"ipv4": ofText(func(s string) error {
			addr, err := netip.ParseAddr(s)
			if err == nil && !addr.Is4() {
				err = errors.New("not an IPv4 address")
			}
			return err
		}),
		"cidr": ofText(func(s string) error {
			_, err := netip.ParsePrefix(s)
			return err
		}),
	}
}

// ofText makes a check that passes all that is not text, as formats must.
func ofText(check func(s string) error) func(v any) error {
	return func(v any) error {
		if s, ok := v.(string); ok {
			return check(s)
		}
		return nil
	}
}

// names is the keyword propertyNames. The library's own reports a path that
// it overwrites later.
type names struct{ each *jsonschema.Schema }

// checkNames gives a subschema our propertyNames in place of the library's.
func checkNames(s *jsonschema.Schema) {
	if s.PropertyNames == nil {
		return
	}
	s.Extensions = append(s.Extensions, names{s.PropertyNames})
	s.PropertyNames = nil
}

func (n names) Validate(ctx *jsonschema.ValidatorContext, v any) {
	object, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if n.each.Validate(name) != nil {
			ctx.AddError(&kind.PropertyNames{Property: name})
		}
	}
}
