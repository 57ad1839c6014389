package kind_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
)

// members are those of an object by name.
func members(t *rapid.T, object jsontext.Value) map[string]string {
	all := map[string]string{}
	if object == nil {
		return all
	}
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := dec.ReadToken(); err != nil {
		t.Fatalf("%s: %v", object, err)
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		all[key] = string(value)
	}
	return all
}

// whole is a record as a delta shows it that made it.
func whole(t *rapid.T, w *widget) map[string]string {
	d, err := widgets.Delta(nil, w)
	if err != nil || d.Before != nil {
		t.Fatalf("%s, %v", d.Before, err)
	}
	return members(t, d.After)
}

// TestDelta goes from one record to another and back by what a delta says.
func TestDelta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := genWidget.Draw(t, "from"), genWidget.Draw(t, "to")
		d, err := widgets.Delta(from, to)
		if err != nil {
			t.Fatal(err)
		}
		before, after := members(t, d.Before), members(t, d.After)
		on, back := whole(t, from), whole(t, to)
		for name, value := range before {
			if on[name] != value {
				t.Errorf("before, %s was %s, not %s", name, on[name], value)
			}
			delete(on, name)
		}
		for name, value := range after {
			if before[name] == value {
				t.Errorf("%s is as it was", name)
			}
			on[name] = value
		}
		agree(t, on, whole(t, to))
		for name := range after {
			delete(back, name)
		}
		for name, value := range before {
			back[name] = value
		}
		agree(t, back, whole(t, from))
		gone, err := widgets.Delta(to, nil)
		if err != nil || gone.After != nil {
			t.Fatalf("%s, %v", gone.After, err)
		}
		agree(t, members(t, gone.Before), whole(t, to))
		if d, err := widgets.Delta(to, widgets.Clone(to)); err != nil || string(d.Before) != "{}" || string(d.After) != "{}" || d.Withheld != nil {
			t.Errorf("nothing differs, and it says %+v: %v", d, err)
		}
	})
}

func agree(t *rapid.T, got, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %s, want %s", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d members, want %d", len(got), len(want))
	}
}

// TestDeltaWithholds has secrets change, and what only newer versions know: a delta
// says that they did, and not to what.
func TestDeltaWithholds(t *testing.T) {
	from, to := new(widget), new(widget)
	to.Key, to.Keys, to.Digest = mark, []string{mark}, mark
	to.Safe = safe{Code: mark, Door: door{mark}}
	to.Parts = []part{{Code: "shown", Pin: mark}}
	to.Unknown = new(jsontext.Value(`{"later":"` + mark + `"}`))
	for _, pair := range [][2]kind.Record{{from, to}, {to, from}, {nil, to}, {to, nil}} {
		d, err := widgets.Delta(pair[0], pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if said := string(d.Before) + string(d.After); strings.Contains(said, mark) || !strings.Contains(said, "shown") {
			t.Errorf("it says %s", said)
		}
		for _, name := range []string{"key", "keys", "digest", "safe", "parts", "unknown"} {
			if !slices.Contains(d.Withheld, name) {
				t.Errorf("that %s differs is not in %q", name, d.Withheld)
			}
		}
	}
}
