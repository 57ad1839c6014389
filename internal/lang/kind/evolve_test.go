package kind_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// oldForm is how records were stored before defaults were told from zeros:
// whatever was zero was left out.
func oldForm(t *rapid.T, w *widget) []byte {
	data, err := json.Marshal(w, json.OmitZeroStructFields(true), json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestReadsOldForm shows that a record that was stored without a field has its
// default, at every depth, and all else that it had.
func TestReadsOldForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWidget.Draw(t, "widget")
		data := oldForm(t, w)
		or(&w.Mode, "slow")
		or(&w.Active, true)
		or(&w.Level, 3)
		or(&w.Size.Unit, "mm")
		if w.Box != nil {
			or(&w.Box.Depth, 7)
		}
		for _, parts := range [][]part{w.Parts, w.Safe.Log} {
			for i := range parts {
				or(&parts[i].Qty, 1)
			}
		}
		for i := range w.Gear {
			or(&w.Gear[i].Size, "big")
		}
		if w.Type == "wheel" {
			or(&w.Spokes, 8)
		}
		if diff := cmp.Diff(w, decode(t, data), same); diff != "" {
			t.Errorf("stored as %s, came back as:\n%s", data, diff)
		}
	})
}

// or sets what is zero.
func or[T comparable](v *T, initial T) {
	var zero T
	if *v == zero {
		*v = initial
	}
}

// TestZeroStays shows that a zero where there is a default is stored, and
// comes back as what it was.
func TestZeroStays(t *testing.T) {
	w := create(t, `{"name":"n","serial":"s","active":false,"level":0,"box":{"label":"l","depth":0},"parts":[{"code":"c","qty":0}],"type":"wheel","spokes":0}`)
	const want = `{"name":"n","serial":"s","mode":"slow","active":false,"level":0,"size":{"unit":"mm"},` +
		`"box":{"label":"l","depth":0},"parts":[{"code":"c","qty":0}],"type":"wheel","spokes":0}`
	if got := string(encode(t, w)); got != want {
		t.Errorf("stored as %s\nwant      %s", got, want)
	}
	if diff := cmp.Diff(w, decode(t, []byte(want)), same); diff != "" {
		t.Errorf("it comes back as:\n%s", diff)
	}
}

// TestNewHasDefaults shows what somebody who makes a record without a body
// starts from.
func TestNewHasDefaults(t *testing.T) {
	want := &widget{Mode: "slow", Active: true, Level: 3, Size: size{Unit: "mm"}}
	if diff := cmp.Diff(want, widgets.New(), same); diff != "" {
		t.Error(diff)
	}
}

// Two versions of one kind.
type (
	oldCart struct {
		kind.Meta
		Owner  string    `json:"owner"`
		Weight int       `json:"weight"`
		Axle   oldAxle   `json:"axle"`
		Loads  []oldAxle `json:"loads"`
		Body   string    `json:"body"`
	}
	oldAxle struct {
		Len int `json:"len"`
	}

	cart struct {
		kind.Meta
		Keeper string `json:"keeper" kind:"was=holder|owner"`
		Kilos  int    `json:"kilos" kind:"was=weight"`
		Speed  int    `json:"speed" kind:"default=30"`
		Axle   axle   `json:"shaft" kind:"was=axle"`
		Loads  []axle `json:"loads"`
		Brake  brake  `json:"brake"`
		Body   string `json:"body" kind:"enum=open|closed,default=open"`
		Roof   string `json:"roof" kind:"default=felt,when=body:closed"`
		Grade  string `json:"grade" kind:"server,default=new"`
	}
	axle struct {
		Length int    `json:"length" kind:"was=len"`
		Metal  string `json:"metal" kind:"default=iron"`
	}
	brake struct {
		On    bool `json:"on" kind:"default=true"`
		Force int  `json:"force" kind:"default=5"`
	}
)

// TestEvolve reads records that an older version of a kind wrote.
func TestEvolve(t *testing.T) {
	before, after := define[oldCart](), define[cart]()
	old := &oldCart{Meta: kind.Meta{ID: "c"}, Owner: "ann", Weight: 12, Axle: oldAxle{3}, Loads: []oldAxle{{4}, {}}, Body: "closed"}
	data, err := before.Encode(old)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := after.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	want := &cart{
		Meta: kind.Meta{ID: "c"}, Keeper: "ann", Kilos: 12, Speed: 30, Axle: axle{3, "iron"}, Loads: []axle{{4, "iron"}, {0, "iron"}},
		Brake: brake{true, 5}, Body: "closed", Roof: "felt", Grade: "new",
	}
	if diff := cmp.Diff(want, rec); diff != "" {
		t.Errorf("%s came back as:\n%s", data, diff)
	}
	c := rec.(*cart)
	c.Speed, c.Brake, c.Loads = 0, brake{}, nil
	const stored = `{"id":"c","keeper":"ann","kilos":12,"speed":0,"shaft":{"length":3,"metal":"iron"},"brake":{"on":false,"force":0},` +
		`"body":"closed","roof":"felt","grade":"new"}`
	if data, err = after.Encode(c); err != nil || string(data) != stored {
		t.Errorf("stored as %s, %v\nwant      %s", data, err, stored)
	}
	if rec, err = after.Decode(data); err != nil || cmp.Diff(c, rec) != "" {
		t.Errorf("it comes back as %+v, %v", rec, err)
	}
}

// TestNewestNameCounts shows which name is read where a record has several, as
// it may while two versions write to one store.
func TestNewestNameCounts(t *testing.T) {
	d := define[cart]()
	for data, want := range map[string]string{
		`{"owner":"o"}`:                                        "o",
		`{"holder":"h"}`:                                       "h",
		`{"owner":"o","holder":"h"}`:                           "h",
		`{"holder":"h","owner":"o"}`:                           "h",
		`{"owner":"o","keeper":"k","holder":"h"}`:              "k",
		`{"keeper":"k","holder":"h","owner":"o"}`:              "k",
		`{"keeper":"","owner":"o"}`:                            "",
		`{"keeper":null,"owner":"o"}`:                          "o",
		`{"owner":"o","keeper":"k","shaft":{},"axle":{"x":1}}`: "k",
	} {
		rec, err := d.Decode([]byte(data))
		if err != nil || rec.(*cart).Keeper != want || rec.(*cart).Axle != (axle{0, "iron"}) {
			t.Errorf("%s: got %+v, %v, want %q", data, rec, err, want)
			continue
		}
		if again, err := d.Encode(rec); err != nil || rec.Base().Unknown != nil {
			t.Errorf("%s is written as %s, %v: an old name stays", data, again, err)
		}
	}
}

func TestNamesFromBefore(t *testing.T) {
	type taken struct {
		kind.Meta
		New   string `json:"new" kind:"was=other"`
		Other string `json:"other"`
	}
	wantPanic(t, `field new of kind_test.taken: the name "other" is taken`, func() { define[taken]() })
	type both struct {
		kind.Meta
		A string `json:"a" kind:"was=x"`
		B string `json:"b" kind:"was=y|x"`
	}
	wantPanic(t, `field b of kind_test.both: the name "x" is taken`, func() { define[both]() })
	type form struct {
		Inner struct {
			A string `json:"a" kind:"was=x"`
		} `json:"inner"`
	}
	wantPanic(t, `field inner.a of kind_test.form: word "was" works only in what is stored`, func() { kind.NewInput[form]() })
	wantPanic(t, `word "was" works only in what is stored`, func() { kind.NewOutput[form]() })
}

// TestTidy shows that a text with a form of its own has it, whoever wrote the
// record and whenever.
func TestTidy(t *testing.T) {
	type card struct {
		kind.Meta
		Address string   `json:"address" kind:"format=hex"`
		Others  []string `json:"others" kind:"format=hex"`
	}
	def := kind.Define(kind.Spec[card]{Name: "card", Path: "cards"})
	want := &card{Address: "00abcd", Others: []string{"ef", "none", "12"}}
	stored, err := def.Decode([]byte(`{"address":"00:AB:cd","others":["EF","none","1-2"]}`))
	if diff := cmp.Diff(want, stored, same); err != nil || diff != "" {
		t.Errorf("a stored one is read as %v:\n%s", err, diff)
	}
	said := []string{"EF", "1-2"}
	written := &card{Address: "00:AB:cd", Others: said}
	if err := kind.NewCatalog(def.Def).Validate(newWorld(), def.Def, nil, written); err != nil || written.Address != "00abcd" || !slices.Equal(written.Others, []string{"ef", "12"}) {
		t.Errorf("it is written as %+v: %v", written, err)
	}
	if said[0] != "EF" {
		t.Error("the writer's own list was changed")
	}
	if err := kind.NewCatalog(def.Def).Validate(newWorld(), def.Def, nil, &card{Others: []string{"0", "::"}}); !fault.Is(err, fault.CodeInvalid) {
		t.Errorf("what has no digit: %v", err)
	}
}
