package kind_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// lot holds ids of others in every way that there is.
type lot struct {
	kind.Meta

	Name    string         `json:"name" kind:"required,unique"`
	Maker   string         `json:"maker" kind:"ref=maker:restrict,out=makerId"`
	Makers  []string       `json:"makers" kind:"ref=maker:clear"`
	Prices  map[string]int `json:"prices" kind:"ref=maker:clear"`
	Roles   []string       `json:"roles" kind:"roles=maker"`
	Sellers []string       `json:"sellers" kind:"among=maker|widget"`
	Terms   terms          `json:"terms"`
	Secret  string         `json:"secret" kind:"secret"`
}

type terms struct {
	Judge string `json:"judge" kind:"nullable,ref=maker:restrict"`
}

var (
	lots   = kind.Define(kind.Spec[lot]{Name: "lot", Path: "lots", Doc: "What is sold at once."})
	market = kind.NewCatalog(makers.Def, widgets.Def, lots.Def)
)

// readNamed reads a body into a lot, names and all.
func readNamed(t interface{ Fatal(...any) }, r kind.Reader, shape kind.Shape, l *lot, body string) error {
	b, err := kind.ReadBody([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return lots.Apply(shape, l, b.Named(market.Naming(r, func(d *kind.Def, id string) bool { return id == "leaving" })))
}

func TestNaming(t *testing.T) {
	w := newWorld(newMaker("1"), newMaker("2"), &maker{Meta: kind.Meta{ID: "3"}, Name: "2"}, &widget{Meta: kind.Meta{ID: "w"}, Name: "maker 1"},
		&widget{Meta: kind.Meta{ID: "leaving"}, Name: "maker 2"}, &maker{Meta: kind.Meta{ID: "leaving"}, Name: "dealer"}, &widget{Meta: kind.Meta{ID: "d"}, Name: "dealer"})
	for _, tt := range []struct{ body, want, field string }{
		{`"maker":"maker 1"`, `"maker":"1"`, ""},
		{`"MAKER":"maker 1"`, `"maker":"1"`, ""},
		{`"maker":"1"`, `"maker":"1"`, ""},
		{`"maker":"nobody"`, `"maker":"nobody"`, ""}, // which rules refuse
		{`"maker":"2"`, "", "maker"},
		{`"makers":["maker 2","1"]`, `"makers":["2","1"]`, ""},
		{`"prices":{"maker 2":5}`, `"prices":{"2":5}`, ""},
		{`"prices":{"maker 1":5,"1":6}`, "", "prices"},
		{`"prices":{"2":5}`, "", "prices"},
		{`"roles":["@maker 2","#x","@1","@maker 1"]`, `"roles":["#x","@1","@2"]`, ""},
		{`"sellers":["w","maker 2"]`, `"sellers":["w","2"]`, ""},
		{`"sellers":["maker 1"]`, "", "sellers"}, // a maker and a widget
		{`"sellers":["dealer","maker 2"]`, `"sellers":["d","2"]`, ""},
		{`"terms":{"judge":"maker 1"}`, `"terms":{"judge":"1"}`, ""},
		{`"terms":{"judge":"2"}`, "", "terms.judge"},
		{`"secret":"maker 1"`, `"secret":"maker 1"`, ""},
	} {
		var l lot
		err := readNamed(t, w, kind.Create, &l, `{"name":"maker 1",`+tt.body+`}`)
		if tt.field != "" {
			if f, ok := err.(*fault.Error); !ok || f.Code != fault.CodeInvalid || f.Field != tt.field {
				t.Errorf("%s: it fails with %v", tt.body, err)
			}
			continue
		}
		stored, _ := lots.Encode(&l)
		if err != nil || !strings.Contains(string(stored), `"name":"maker 1",`+tt.want) {
			t.Errorf("%s is stored as %s: %v", tt.body, stored, err)
		}
	}
}

// TestNamingOfPatch leaves alone what a body does not say: a text that was an
// id stays, whatever has it as its name by now.
func TestNamingOfPatch(t *testing.T) {
	w := newWorld(&maker{Meta: kind.Meta{ID: "3"}, Name: "gone"})
	l := lot{Name: "x", Sellers: []string{"gone"}, Roles: []string{"@gone"}}
	if err := readNamed(t, w, kind.Patch, &l, `{"name":"y"}`); err != nil || l.Sellers[0] != "gone" || l.Roles[0] != "@gone" {
		t.Errorf("it is %+v: %v", l, err)
	}
}

// TestNamesAndIDs reads a body with some names in the place of ids, at random:
// it comes to what it would with the ids alone, and the other way round.
func TestNamesAndIDs(t *testing.T) {
	ids := []string{"a", "b", "c", "d"}
	w := newWorld(newMaker("a"), newMaker("b"), newMaker("c"), newMaker("d"))
	name := func(id string) string { return "maker " + id }
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfDistinct(rapid.SampledFrom(ids), rapid.ID[string])
		maybe := func(id string) string {
			if rapid.Bool().Draw(t, "named") {
				return name(id)
			}
			return id
		}
		plain, odd := map[string]any{"name": "x"}, map[string]any{"name": "x"}
		for _, field := range []string{"makers", "sellers", "roles"} {
			at := ""
			if field == "roles" {
				at = "@"
			}
			all, either := []string{}, []string{}
			for _, id := range some.Draw(t, field) {
				all, either = append(all, at+id), append(either, at+maybe(id))
			}
			plain[field], odd[field] = all, either
		}
		prices, other := map[string]int{}, map[string]int{}
		for i, id := range some.Draw(t, "prices") {
			prices[id], other[maybe(id)] = i, i
		}
		plain["prices"], odd["prices"] = prices, other
		stored := func(body map[string]any) (lot, string) {
			text, _ := json.Marshal(body)
			var l lot
			if err := readNamed(t, w, kind.Create, &l, string(text)); err != nil {
				t.Fatal(err)
			}
			form, _ := lots.Encode(&l)
			return l, string(form)
		}
		l, want := stored(plain)
		if _, got := stored(odd); got != want {
			t.Errorf("%v comes to %s, want %s", odd, got, want)
		}
		named := lots.Renamed(&l, name).(*lot)
		back := lots.Renamed(named, func(s string) string { return strings.TrimPrefix(s, "maker ") })
		if form, _ := lots.Encode(back); string(form) != want {
			t.Errorf("there and back it is %s, want %s", form, want)
		}
		if form, _ := lots.Encode(&l); string(form) != want {
			t.Errorf("a copy's names are in the original: %s", form)
		}
	})
}

func TestCalled(t *testing.T) {
	w := newWorld(newMaker("1"), &maker{Meta: kind.Meta{ID: "2"}, Name: "3"}, newMaker("3"))
	for text, want := range map[string]string{"1": "1", "maker 1": "1", "2": "2", "maker 3": "3", "": "", "4": ""} {
		rec, err := makers.Called(w, text)
		if got := ""; err != nil || rec == nil != (want == "") {
			t.Errorf("%q is %v: %v", text, rec, err)
		} else if rec != nil {
			if got = rec.Base().ID; got != want {
				t.Errorf("%q is %s", text, got)
			}
		}
	}
	if _, err := makers.Called(w, "3"); !fault.Is(err, fault.CodeInvalid) {
		t.Errorf("what is the name of one and the id of another: %v", err)
	}
}

func TestDifferences(t *testing.T) {
	was := &lot{Name: "x", Roles: []string{"#a"}, Terms: terms{Judge: "1"}, Secret: "old"}
	is := &lot{Name: "x", Roles: []string{"#a", "#b"}, Maker: "2", Secret: "new"}
	is.UpdatedAt = kind.MomentOf(time.Unix(1, 0))
	var got []string
	for _, d := range lots.Differences(was, is) {
		got = append(got, d.Name+" "+string(d.Before)+" "+string(d.After))
	}
	want := `maker "" "2"; roles ["#a"] ["#a","#b"]; terms {"judge":"1"} {"judge":null}; secret null null`
	if all := strings.Join(got, "; "); all != want {
		t.Errorf("they are %s\nwant %s", all, want)
	}
	if same := lots.Differences(was, was); len(same) > 0 {
		t.Errorf("a record differs from itself in %v", same)
	}
}
