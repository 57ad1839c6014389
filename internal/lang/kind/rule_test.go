package kind_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

func newMaker(id string) *maker { return &maker{Meta: kind.Meta{ID: id}, Name: "maker " + id} }

func TestValidate(t *testing.T) {
	old := &widget{Meta: kind.Meta{ID: "w0"}, Name: "old", Digest: "hush", Size: size{Inner: inner{Deep: "deep"}}}
	r := newWorld(old, newMaker("m1"), newMaker("m2"))
	tests := map[string]struct {
		change func(*widget)
		code   fault.Code // none if empty
		field  string
		value  any
	}{
		"nothing":         {change: func(*widget) {}},
		"all references":  {change: func(w *widget) { w.MakerID, w.BackupID, w.ParentID, w.Makers = "m1", "m2", "w0", []string{"m1", "m2"} }},
		"itself as owner": {change: func(w *widget) { w.Owner = w.Name }},
		"name taken":      {func(w *widget) { w.Name = "old" }, fault.CodeInvalid, "name", "old"},
		"deep name taken": {func(w *widget) { w.Size.Inner.Deep = "deep" }, fault.CodeInvalid, "size.inner.deep", "deep"},
		"secret taken":    {func(w *widget) { w.Digest = "hush" }, fault.CodeInvalid, "digest", nil},
		"index shared":    {change: func(w *widget) { w.Serial = "" }},
		"own check":       {func(w *widget) { w.Name = "cursed" }, fault.CodeInvalid, "name", "cursed"},
		"maker missing":   {func(w *widget) { w.MakerID = "m9" }, fault.CodeNotFound, "makerId", "m9"},
		"id of another":   {func(w *widget) { w.MakerID = "w0" }, fault.CodeNotFound, "makerId", "w0"},
		"list missing":    {func(w *widget) { w.Makers = []string{"m1", "m9"} }, fault.CodeNotFound, "makers", "m9"},
		"empty in a list": {func(w *widget) { w.Makers = []string{"m1", ""} }, fault.CodeNotFound, "makers", ""},
		"key missing":     {func(w *widget) { w.Prices = map[string]int64{"m9": 1, "m1": 2, "m8": 3} }, fault.CodeNotFound, "prices", "m8"},
		"role attributes": {change: func(w *widget) { w.Roles = []string{"#m9", "@m1"} }},
		"roles missing":   {func(w *widget) { w.Roles = []string{"#a", "@m8", "@m1", "@m9"} }, fault.CodeInvalid, "roles", []string{"m8", "m9"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := &widget{Meta: kind.Meta{ID: "w1"}, Name: "new"}
			tt.change(w)
			err := shop.Validate(r, widgets.Def, nil, w)
			if tt.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			f, ok := errors.AsType[*fault.Error](err)
			if !ok || f.Code != tt.code || f.Field != tt.field || !cmp.Equal(f.Value, tt.value) {
				t.Errorf("got %v (%+v)", err, f)
			}
		})
	}
}

// TestValidateAgain shows that a record does not stand in its own way, and
// that checks see what was there before.
func TestValidateAgain(t *testing.T) {
	old := &widget{Meta: kind.Meta{ID: "w0"}, Name: "old"}
	r := newWorld(old)
	next := widgets.Clone(old).(*widget)
	next.Note = "fill"
	if err := shop.Validate(r, widgets.Def, old, next); err != nil || next.Note != "filled old" {
		t.Errorf("got %v and %q", err, next.Note)
	}
	next.Name = "oldold"
	if err := shop.Validate(r, widgets.Def, old, next); !fault.Is(err, fault.CodeInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestHooks(t *testing.T) {
	w, old := &widget{Name: "new"}, &widget{Name: "old"}
	for want, got := range map[string]error{
		"created new": widgets.Saved(nil, nil, w),
		"changed old": widgets.Saved(nil, old, w),
		"deleted new": widgets.Deleted(nil, w),
		"is kept":     widgets.Guard(nil, &widget{Name: "kept"}),
		"<nil>":       widgets.Guard(nil, w),
	} {
		if fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	// A kind without methods has no rules of its own.
	m := newMaker("m1")
	if err := errors.Join(makers.Saved(nil, nil, m), makers.Deleted(nil, m), makers.Guard(nil, m)); err != nil {
		t.Error(err)
	}
}

func TestReferrers(t *testing.T) {
	var got []string
	for _, rf := range shop.Referrers(makers.Def) {
		got = append(got, fmt.Sprintf("%s.%s %s", rf.Def.Name, rf.Field.Name, rf.OnDelete()))
	}
	want := []string{"widget.makerId restrict", "widget.backupId clear", "widget.makers clear", "widget.prices clear", "widget.roles clear"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if rf := shop.Referrers(widgets.Def); len(rf) != 1 || rf[0].Field.Name != "parentId" || rf[0].OnDelete() != kind.Cascade {
		t.Errorf("got %+v", rf)
	}
	if shop.Named("maker") != makers.Def || shop.Named("nothing") != nil {
		t.Error("Named finds the wrong kind")
	}
}

// TestHoldersAndDrop shows who refers to a record, and that nobody does once
// each has dropped it.
func TestHoldersAndDrop(t *testing.T) {
	full := create(t, full)
	full.ID = "w2"
	r := newWorld(
		full, newMaker("m1"), newMaker("m2"),
		&widget{Meta: kind.Meta{ID: "w3"}, MakerID: "m1"}, &widget{Meta: kind.Meta{ID: "w1"}, MakerID: "m1"},
	)
	holders := map[string][]string{
		"makerId": {"w1", "w2", "w3"}, "backupId": nil, "makers": {"w2"}, "prices": {"w2"}, "roles": {"w2"},
	}
	for _, rf := range shop.Referrers(makers.Def) {
		got := rf.Holders(r, "m1")
		if !slices.Equal(got, holders[rf.Field.Name]) {
			t.Errorf("%s of %v refers to m1, want %v", rf.Field.Name, got, holders[rf.Field.Name])
		}
		for _, id := range got {
			next := widgets.Clone(r[widgets.Def][id])
			rf.Drop(next, "m1", func(string) bool { return false })
			r[widgets.Def][id] = next
		}
		if left := rf.Holders(r, "m1"); len(left) != 0 {
			t.Errorf("%s of %v still refers to m1", rf.Field.Name, left)
		}
	}
	// The originals were cloned, the other references stay.
	if full.MakerID != "m1" || len(full.Makers) != 2 || len(full.Prices) != 2 {
		t.Errorf("the original changed: %+v", full)
	}
	w := r[widgets.Def]["w2"].(*widget)
	if w.MakerID != "" || w.BackupID != "m2" || !slices.Equal(w.Makers, []string{"m2"}) || len(w.Prices) != 1 || !slices.Equal(w.Roles, []string{"#t1"}) {
		t.Errorf("got %+v", w)
	}
}

// TestDropToDefault shows that a cleared reference goes back to its default,
// also where the struct that holds it is unset.
func TestDropToDefault(t *testing.T) {
	type record struct {
		kind.Meta
		MakerID string `json:"makerId" kind:"ref=maker:clear,default=basic"`
		Box     *struct {
			MakerID string   `json:"makerId" kind:"ref=maker:clear"`
			Makers  []string `json:"makers" kind:"ref=maker:clear"`
		} `json:"box"`
	}
	d := define[record]()
	rec := &record{MakerID: "m1"}
	for _, rf := range kind.NewCatalog(makers.Def, d).Referrers(makers.Def) {
		rf.Drop(rec, "m1", func(string) bool { return false })
		if d.Index(rf.Field.Name) == nil {
			t.Errorf("%s has no index", rf.Field.Name)
		}
	}
	if rec.MakerID != "basic" || rec.Box != nil {
		t.Errorf("got %+v", rec)
	}
	var keys []string
	for _, ix := range d.Indexes {
		ix.Keys(rec, func(key string) { keys = append(keys, ix.Name+"="+key) })
	}
	if !slices.Equal(keys, []string{"makerId=basic"}) {
		t.Errorf("filed under %v", keys)
	}
}

func TestIndexes(t *testing.T) {
	w := create(t, full)
	w.Digest = "d"
	want := map[string][]string{
		"name": {"full"}, "serial": {"s9"}, "makerId": {"m1"}, "backupId": {"m2"}, "parentId": {"w0"}, "makers": {"m2", "m1"},
		"prices": {"m1", "m2"}, "roles": {"#t1", "@m1"}, "size.inner.deep": {"d"}, "digest": {"d"},
	}
	for _, ix := range widgets.Indexes {
		var keys []string
		ix.Keys(w, func(key string) { keys = append(keys, key) })
		if ix.Name == "prices" {
			slices.Sort(keys)
		}
		if !slices.Equal(keys, want[ix.Name]) {
			t.Errorf("%s has keys %v, want %v", ix.Name, keys, want[ix.Name])
		}
		if widgets.Index(ix.Name) != ix {
			t.Errorf("Index(%q) is another", ix.Name)
		}
		delete(want, ix.Name)
		ix.Keys(new(widget), func(key string) { t.Errorf("%s files an empty record under %q", ix.Name, key) })
	}
	if len(want) > 0 || widgets.Index("owner") != nil {
		t.Errorf("no index for %v", want)
	}
	if got := widgets.AttributesOf(w); !slices.Equal(got, []string{"t1", "t2"}) {
		t.Errorf("attributes are %v", got)
	}
	if got := makers.AttributesOf(newMaker("m1")); got != nil {
		t.Errorf("a maker has attributes %v", got)
	}
}

func TestTypedAccess(t *testing.T) {
	w := writer{newWorld(newMaker("m1"), newMaker("m2"), newMaker("m3"))}
	if m, ok := makers.Get(w, "m2"); !ok || m.Name != "maker m2" {
		t.Errorf("Get: %v, %t", m, ok)
	}
	if m, ok := makers.Get(w, "m9"); ok || m != nil {
		t.Errorf("Get of nothing: %v, %t", m, ok)
	}
	if m, ok := makers.Find(w, "name", "maker m3"); !ok || m.ID != "m3" {
		t.Errorf("Find: %v, %t", m, ok)
	}
	if m, ok := makers.Find(w, "name", "m3"); ok || m != nil {
		t.Errorf("Find of nothing: %v, %t", m, ok)
	}
	for m := range makers.All(w) {
		if m.ID != "m1" {
			t.Errorf("the first of all is %s", m.ID)
		}
		break
	}
	err := errors.Join(
		makers.Create(w, newMaker("m4")),
		makers.Edit(w, "m1", func(m *maker) error { m.Name = "new"; return nil }),
		makers.Delete(w, "m2"),
	)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for m := range makers.All(w) {
		names = append(names, m.Name)
	}
	if !slices.Equal(names, []string{"new", "maker m3", "maker m4"}) {
		t.Errorf("got %v", names)
	}
	for m := range makers.Select(w, "name", "new") {
		names = append(names, m.ID)
	}
	if names[len(names)-1] != "m1" {
		t.Errorf("Select found %v", names)
	}
}
