package kind_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

func TestSymbolNames(t *testing.T) {
	want := []string{
		"active", "backupId", "box.depth", "box.label", "box.stamps", "bytes", "checked", "colors", "count", "createdAt", "data",
		"holder", "id", "isSystem", "keeper", "level", "made", "makerId", "makers", "mode", "name", "note", "owner", "ownerName",
		"parentId", "rank", "roles", "seen", "serial", "site", "size.inner.deep", "size.inner.shade", "size.measure",
		"size.origin", "size.probe", "size.unit", "size.width", "spokes", "tags", "traits", "tube.valve", "type", "updatedAt",
	}
	if diff := cmp.Diff(want, widgets.Symbols.Names()); diff != "" {
		t.Error(diff)
	}
}

// one evaluates a scalar symbol.
func one(t *testing.T, name string, w *widget) filter.Value {
	t.Helper()
	s, ok := widgets.Symbols.Lookup(name)
	if !ok || s.One == nil {
		t.Fatalf("no scalar %q", name)
	}
	return s.One(w)
}

func many(t *testing.T, name string, w *widget) (all []string) {
	t.Helper()
	s, ok := widgets.Symbols.Lookup(name)
	if !ok || s.Many == nil || !s.Set {
		t.Fatalf("no set %q", name)
	}
	s.Many(w, func(v filter.Value) bool {
		all = append(all, v.String())
		return true
	})
	return all
}

func TestSymbolValues(t *testing.T) {
	w := create(t, full)
	made := time.Date(2023, 4, 26, 10, 11, 12, 345678000, time.UTC)
	for name, want := range map[string]filter.Value{
		"name": filter.StringValue("full"), "owner": filter.StringValue("ann"), "holder": filter.StringValue("ann"),
		"keeper": filter.StringValue("ann"), "ownerName": filter.StringValue("ann"), "active": filter.BoolValue(false),
		"count": filter.IntValue(5), "level": filter.IntValue(9), "made": filter.TimeValue(made.Truncate(time.Millisecond)),
		"data":       filter.StringValue(`{"z":9007199254740993,"a":[1,2.50,"\u0041"]}`),
		"size.width": filter.IntValue(10), "size.measure": filter.StringValue("cm"), "size.inner.deep": filter.StringValue("d"),
		"box.label": filter.StringValue("l"), "spokes": filter.IntValue(12), "tube.valve": filter.StringValue("v"),
	} {
		if got := one(t, name, w); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if s, _ := widgets.Symbols.Lookup("made"); s.Fine(w) != filter.TimeValue(made) {
		t.Errorf("made is sorted by %v, want %v", s.Fine(w), made)
	}
	for name, want := range map[string][]string{
		"makers": {"m2", "m1"}, "traits": {"t1", "t2"}, "roles": {"#t1", "@m1"}, "box.stamps": {"x"},
	} {
		if got := many(t, name, w); !slices.Equal(got, want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	tags, _ := widgets.Symbols.Lookup("tags")
	for key, want := range map[string]filter.Value{
		"a": filter.StringValue("b"), "c": filter.BoolValue(true), "d": {}, "e": {},
	} {
		if got := tags.Key(w, key); got != want {
			t.Errorf("tags.%s is %v, want %v", key, got, want)
		}
	}
}

// TestSymbolsStop shows that a set is read no further than asked.
func TestSymbolsStop(t *testing.T) {
	s, _ := widgets.Symbols.Lookup("makers")
	calls := 0
	s.Many(create(t, full), func(filter.Value) bool { calls++; return false })
	if calls != 1 {
		t.Errorf("%d values after the first was enough", calls)
	}
}

// TestAbsentSymbols shows what an empty record has no value for, and what is
// a value though it is empty.
func TestAbsentSymbols(t *testing.T) {
	w := new(widget)
	for _, name := range []string{
		"owner", "site", "backupId", "made", "seen", "createdAt", "size.probe", "box.label", "box.depth",
		"bytes", "spokes", "tube.valve", "checked",
	} {
		if got := one(t, name, w); got != (filter.Value{}) {
			t.Errorf("%s is %v, want nothing", name, got)
		}
	}
	for name, want := range map[string]filter.Value{
		"name": filter.StringValue(""), "makerId": filter.StringValue(""), "count": filter.IntValue(0),
		"active": filter.BoolValue(false), "data": filter.StringValue("{}"), "size.unit": filter.StringValue(""),
	} {
		if got := one(t, name, w); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"makers", "traits", "box.stamps"} {
		if got := many(t, name, w); len(got) != 0 {
			t.Errorf("%s is %v, want nothing", name, got)
		}
	}
	// Each variant has its own fields alone.
	w.Type, w.Bytes, w.Spokes = "disk", 1, 2
	if one(t, "bytes", w) != filter.IntValue(1) || one(t, "spokes", w) != (filter.Value{}) {
		t.Errorf("a disk has bytes %v and spokes %v", one(t, "bytes", w), one(t, "spokes", w))
	}
}

func TestNestedTags(t *testing.T) {
	type marked struct {
		kind.Meta
		Box *struct {
			Marks kind.Tags `json:"marks"`
		} `json:"box"`
	}
	d := define[marked]()
	s, ok := d.Symbols.Lookup("box.marks")
	if !ok {
		t.Fatal("no symbol")
	}
	rec := d.New().(*marked)
	if got := s.Key(rec, "a"); got != (filter.Value{}) {
		t.Errorf("got %v from an unset struct", got)
	}
	if err := d.Apply(kind.Create, rec, read(t, `{"box":{"marks":{"a":"b"}}}`)); err != nil {
		t.Fatal(err)
	}
	if got := s.Key(rec, "a"); got != filter.StringValue("b") {
		t.Errorf("got %v", got)
	}
}

func TestSymbolIndexes(t *testing.T) {
	for name, want := range map[string]string{
		"id": "id", "name": "name", "serial": "serial", "makerId": "makerId", "size.inner.deep": "size.inner.deep",
		"traits": "traits", "owner": "", "makers": "", "roles": "", "count": "",
	} {
		s, ok := widgets.Symbols.Lookup(name)
		if !ok || s.Index != want {
			t.Errorf("the index of %s is %+v, want %q", name, s, want)
		}
	}
}

// TestFilters runs queries, for the names and values together.
func TestFilters(t *testing.T) {
	w := create(t, full)
	for text, want := range map[string]bool{
		`name = "full" and size.measure = "cm"`: true,
		`keeper contains "nn"`:                  true,
		`anyOf(roles) = "#t1"`:                  true,
		`tags.a = "b" and tags.d = null`:        true,
		`bytes = null and spokes > 11`:          true,
		`box.depth < 2`:                         false,
		`made > datetime(2023-04-26T10:11:13Z)`: false,
	} {
		q, err := filter.Compile(widgets.Symbols, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := q.Match(w); got != want {
			t.Errorf("%s is %t", text, got)
		}
	}
	for _, text := range []string{`key = "x"`, `safe.code = "x"`, `safe.door.lock = "x"`, `digest = "x"`, `sold = null`, `prices = 1`} {
		if _, err := filter.Compile(widgets.Symbols, text); err == nil {
			t.Errorf("%s compiles", text)
		}
	}
}
