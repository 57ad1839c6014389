package kind_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// broken is changes after which a widget breaks one rule, by the path of what
// is wrong.
var broken = map[string]func(*widget){
	"name":           func(w *widget) { w.Name = strings.Repeat("x", 9) },
	"mode":           func(w *widget) { w.Mode = "nonsense" },
	"site":           func(w *widget) { w.Site = "a.example/x" },
	"count":          func(w *widget) { w.Count = 9999999 },
	"blob":           func(w *widget) { w.Blob = []byte("too long") },
	"prices.m1":      func(w *widget) { w.Prices = map[string]int64{"m1": 100, "m2": 1} },
	"grades.a":       func(w *widget) { w.Grades = map[string]string{"b": "vile", "a": "ugly", "c": "good"} },
	"colors":         func(w *widget) { w.Colors = []string{"red", "red", "red", "red"} },
	"colors.1":       func(w *widget) { w.Colors = []string{"red", "pink"} },
	"traits":         func(w *widget) { w.Traits = []string{"t", "#t"} },
	"roles":          func(w *widget) { w.Roles = []string{"#all", "@m1"} },
	"tags.a":         func(w *widget) { w.Tags = kind.Tags{"b": 2, "a": 1} },
	"size.width":     func(w *widget) { w.Size.Width = 101 },
	"box.label":      func(w *widget) { w.Box = &box{} },
	"parts":          func(w *widget) { w.Parts = []part{{Code: "a"}, {Code: "b"}, {Code: "c"}, {Code: "d"}} },
	"parts.1.code":   func(w *widget) { w.Parts = []part{{Code: "a"}, {}} },
	"parts.0.pin":    func(w *widget) { w.Parts = []part{{Code: "a", Pin: "1234"}} },
	"key":            func(w *widget) { w.Key = "12" },
	"keys.0":         func(w *widget) { w.Keys = []string{"hush"} },
	"safe.door.lock": func(w *widget) { w.Safe.Door.Lock = "no uri" },
	"safe.log.0.pin": func(w *widget) { w.Safe.Log = []part{{Code: "a", Pin: "1234"}} },
	"safe.pins":      func(w *widget) { w.Safe.Pins = map[string]string{"hush": "c"} },
	"type":           func(w *widget) { w.Type = "sphere" },
	"gear.0.teeth":   func(w *widget) { w.Type, w.Gear = "wheel", []gear{{Size: "big", Teeth: 3}} },
}

// TestRulesOfEveryWrite shows that a record that was made without a body keeps
// the same rules as one that was, and that a scan judges by them.
func TestRulesOfEveryWrite(t *testing.T) {
	r := newWorld(newMaker("m1"), newMaker("m2"))
	for path, spoil := range broken {
		w := &widget{Meta: kind.Meta{ID: "w1"}, Name: "new"}
		spoil(w)
		err := shop.Validate(r, widgets.Def, nil, w)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.CodeInvalid || f.Field != path {
			t.Errorf("%s: got %v (%+v)", path, err, f)
			continue
		}
		if secret := strings.HasPrefix(path, "key") || strings.HasPrefix(path, "safe") || strings.HasSuffix(path, "pin"); secret && f.Value != nil {
			t.Errorf("%s: the error repeats the secret %v", path, f.Value)
		}
		flaws := shop.Flaws(r, widgets.Def, w)
		if len(flaws) != 1 || flaws[0].String() != err.Error() || flaws[0].Remedy() != kind.Decide {
			t.Errorf("%s: a scan finds %v, want %v", path, flaws, err)
		}
	}
}

// TestNothingGiven shows that a rule is about values that somebody gave: what
// a body may leave out a record may be without.
func TestNothingGiven(t *testing.T) {
	for _, w := range []*widget{
		{Name: "n"},
		{Name: "n", Type: "wheel"},
		{Name: "n", Size: size{Unit: "cm"}},
		{Name: "n", Parts: []part{{Code: "a"}}},
	} {
		if err := shop.Validate(newWorld(), widgets.Def, nil, w); err != nil {
			t.Error(err)
		}
	}
	// What every body must give is another matter.
	if err := shop.Validate(newWorld(), widgets.Def, nil, &widget{}); !fault.Is(err, fault.CodeInvalid) {
		t.Errorf("a record without a name: %v", err)
	}
}

// TestWriteCompletes shows that a write gives empty texts their defaults and
// takes what the record's variant does not have.
func TestWriteCompletes(t *testing.T) {
	w := &widget{
		Name: "n", Type: "disk", Bytes: 3, Spokes: 7, Tube: tube{Valve: "v"}, Checked: "today", Gear: []gear{{Teeth: 1}},
		Box: &box{Label: "l"},
	}
	if err := shop.Validate(newWorld(), widgets.Def, nil, w); err != nil {
		t.Fatal(err)
	}
	if w.Mode != "slow" || w.Size.Unit != "mm" {
		t.Errorf("empty texts are now %q and %q", w.Mode, w.Size.Unit)
	}
	if w.Bytes != 3 || w.Spokes != 0 || w.Tube.Valve != "" || w.Checked != "" || w.Gear != nil {
		t.Errorf("a disk has %+v", w)
	}
	if w.Active || w.Level != 0 || w.Box.Depth != 0 {
		t.Error("a zero that may be meant was taken for nothing")
	}
	w = &widget{Name: "n", Type: "wheel", Gear: []gear{{Size: "", Teeth: 12}, {Size: "small", Teeth: 12}}}
	if err := shop.Validate(newWorld(), widgets.Def, nil, w); err != nil {
		t.Fatal(err)
	}
	if want := []gear{{"big", 12}, {"small", 0}}; !reflect.DeepEqual(w.Gear, want) {
		t.Errorf("the gear is %+v, want %+v", w.Gear, want)
	}
}

// TestOldFaultsStay shows that an edit need not mend what an old record breaks,
// but brings nothing new that breaks a rule.
func TestOldFaultsStay(t *testing.T) {
	r := newWorld(newMaker("m1"), newMaker("m2"))
	for path, spoil := range broken {
		old := &widget{Meta: kind.Meta{ID: "w1"}, Name: "old"}
		spoil(old)
		edit := func(change func(*widget)) error {
			next := widgets.Clone(old).(*widget)
			change(next)
			return shop.Validate(r, widgets.Def, old, next)
		}
		if err := edit(func(w *widget) { w.Note, w.Made = "edited", time.Unix(1, 0) }); err != nil {
			t.Errorf("%s: another field cannot be changed: %v", path, err)
		}
		if err := edit(func(w *widget) { *w = widget{Meta: w.Meta, Name: "new"} }); err != nil {
			t.Errorf("%s: it cannot be mended: %v", path, err)
		}
		for other, again := range broken {
			if before, _, _ := strings.Cut(path, "."); strings.HasPrefix(other, before) {
				continue
			}
			if err := edit(again); !fault.Is(err, fault.CodeInvalid) {
				t.Errorf("%s: an edit that breaks %s as well: %v", path, other, err)
			}
		}
	}
}

// TestOldEntriesGo shows that what is taken out of a list or map need not be
// the entry that breaks a rule: a delete takes out the one it has to.
func TestOldEntriesGo(t *testing.T) {
	r := newWorld(newMaker("m1"), newMaker("m2"))
	old := &widget{
		Meta: kind.Meta{ID: "w1", Tags: kind.Tags{"a": 1, "b": "c"}}, Name: "n",
		Roles: []string{"m2", "@m1"}, Prices: map[string]int64{"m1": 1, "m2": 100}, Colors: []string{"pink", "red"},
	}
	edit := func(change func(*widget)) error {
		next := widgets.Clone(old).(*widget)
		change(next)
		return shop.Validate(r, widgets.Def, old, next)
	}
	for name, change := range map[string]func(*widget){
		"role": func(w *widget) { w.Roles = w.Roles[:1] }, "key": func(w *widget) { delete(w.Prices, "m1") },
		"text": func(w *widget) { w.Colors = w.Colors[:1] }, "tag": func(w *widget) { delete(w.Tags, "b") },
	} {
		if err := edit(change); err != nil {
			t.Errorf("a %s cannot be taken out: %v", name, err)
		}
	}
	for name, change := range map[string]func(*widget){
		"role": func(w *widget) { w.Roles[1] = "m1" }, "key": func(w *widget) { w.Prices["m2"] = 101 },
		"text": func(w *widget) { w.Colors[1] = "teal" }, "tag": func(w *widget) { w.Tags["b"] = 2 },
	} {
		if err := edit(change); !fault.Is(err, fault.CodeInvalid) {
			t.Errorf("another %s that breaks the rule: %v", name, err)
		}
	}
}
