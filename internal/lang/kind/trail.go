package kind

import (
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/spell"
)

// MostIgnored is how many members a body names that nobody read.
const MostIgnored = 10

// Ignored is a member of a body that nobody read.
type Ignored struct {
	Name string // dotted path, as it was sent
	Near string // path of the member that it may stand for; empty for none
}

// trail is what those who read a body leave behind: whom it was read by, and
// what they did not know. The objects in a body share its trail.
type trail struct {
	whole    map[string]jsontext.Value // the members of the body itself, which several may read
	readings []reading                 // of the body itself
	overlook [][]string
	withheld []string  // members that are not read though there are fields for them
	inside   []Ignored // of the objects in it, which one reads
	more     bool      // there were more than MostIgnored
}

// reading is a struct for which a body was read, and how.
type reading struct {
	layout *layout
	shape  Shape
}

// inside parses an object in the body. path leads to it.
func (b Body) inside(raw jsontext.Value, path ...string) (Body, error) {
	o, err := readObject(raw)
	o.trail, o.at, o.naming = b.trail, b.at+strings.Join(path, ".")+".", b.naming
	return o, err
}

// fit returns the object with its members under the names of the struct's
// fields. A name counts as it is first, and otherwise without regard to case,
// since tools have spellings of their own.
func (l *layout) fit(shape Shape, b Body, prefix string) (Body, error) {
	var odd []string
	for name := range b.members {
		if p, ok := l.named[name]; !ok || p.name != ownName {
			odd = append(odd, name)
		}
	}
	slices.Sort(odd) // so that one body always meets the same error
	fitted := b
	var unknown []string
	for _, name := range odd {
		f := l.spelled[lowered(name)]
		if f == nil {
			unknown = append(unknown, name)
			continue
		}
		if len(fitted.members) == len(b.members) { // still the same
			fitted.members = maps.Clone(b.members)
		}
		if _, twice := fitted.members[f.last]; twice {
			return b, fault.On(fault.CodeBody, prefix+f.last, "is there in two spellings; send one", nil)
		}
		fitted.members[f.last] = b.members[name]
	}
	b.trail.note(reading{l, shape}, b.at, unknown)
	return fitted, nil
}

// lowered returns a name in lower case. Names of ours have no letters but
// those of ASCII.
func lowered(name string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
}

// note remembers what a reading of the object at a path did not know.
func (t *trail) note(by reading, at string, unknown []string) {
	if at == "" {
		if !slices.Contains(t.readings, by) {
			t.readings = append(t.readings, by)
		}
		return
	}
	for _, name := range unknown {
		if by.layout.shown[lowered(name)] || slices.ContainsFunc(t.inside, func(i Ignored) bool { return i.Name == at+name }) {
			continue
		}
		if len(t.inside) == MostIgnored {
			t.more = true
			return
		}
		t.inside = append(t.inside, ignoredAt(at, name, []reading{by}))
	}
}

// Overlook names members that a body may hold without anybody reading them:
// clients send back what answers showed them.
func (b Body) Overlook(names ...string) {
	b.trail.overlook = append(b.trail.overlook, names)
}

// knows reports whether anybody read a member, or need not.
func (t *trail) knows(name string) bool {
	return slices.ContainsFunc(t.readings, func(by reading) bool { return by.layout.knows(name) }) ||
		slices.ContainsFunc(t.overlook, func(names []string) bool { return slices.Contains(names, name) })
}

// withholds reports whether a member is not read here.
func (t *trail) withholds(name string) bool {
	return slices.ContainsFunc(t.withheld, func(one string) bool { return lowered(one) == lowered(name) })
}

// Ignored returns the members that none of those knew who read the body, up to
// MostIgnored, and whether there are more. A body that nobody came to read has
// none.
func (b Body) Ignored() (list []Ignored, more bool) {
	t := b.trail
	var unknown []string
	for name := range t.whole {
		if len(t.readings) > 0 && (t.withholds(name) || !t.knows(name)) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown[:min(len(unknown), MostIgnored)] {
		if t.withholds(name) {
			list = append(list, Ignored{Name: name})
			continue
		}
		list = append(list, ignoredAt("", name, t.readings))
	}
	if len(unknown) > MostIgnored {
		return list, true
	}
	if room := MostIgnored - len(list); room < len(t.inside) {
		return append(list, t.inside[:room]...), true
	}
	return append(list, t.inside...), t.more
}

// knows reports whether a member of this name is one of the struct's, or one
// that answers show.
func (l *layout) knows(name string) bool {
	if p, ok := l.named[name]; ok && p.name == ownName {
		return true
	}
	name = lowered(name)
	return l.spelled[name] != nil || l.shown[name]
}

// ignoredAt returns what to say of a member of an object that was read.
func ignoredAt(at, name string, readings []reading) Ignored {
	var known []string
	for _, by := range readings {
		for _, f := range by.layout.fields {
			if f.taken(by.shape) {
				known = append(known, f.last)
			}
		}
	}
	i := Ignored{Name: at + name}
	if near := spell.Near(name, known); len(near) > 0 {
		i.Near = at + near[0]
	}
	return i
}
