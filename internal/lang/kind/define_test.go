package kind_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
)

// wantPanic checks that f panics with a text that contains want.
func wantPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
			t.Errorf("panicked with %q, want %q", got, want)
		}
	}()
	f()
}

// define declares a kind of its type's own name.
func define[T any, P interface {
	*T
	kind.Record
}]() *kind.Def {
	return kind.Define[T, P](kind.Spec[T]{Name: fmt.Sprintf("%T", *new(T)), Path: "x"}).Def
}

// The hooks of these have a wrong signature each.
type (
	badFill    struct{ kind.Meta }
	badCheck   struct{ kind.Meta }
	badGuard   struct{ kind.Meta }
	badSaved   struct{ kind.Meta }
	badDeleted struct{ kind.Meta }
	badWhole   struct{ kind.Meta }
	badRanked  struct{ kind.Meta }
)

func (*badFill) Fill() error                          { return nil }
func (*badCheck) Check(kind.Reader, *badFill) error   { return nil }
func (*badGuard) Guard() error                        { return nil }
func (*badSaved) Saved(kind.Reader, *badSaved) error  { return nil }
func (*badDeleted) Deleted(kind.Writer, string) error { return nil }
func (*badWhole) Whole(kind.Reader) error             { return nil }
func (*badRanked) Ranked() int                        { return 0 }

// Each of these has one mistake.
type (
	piece struct {
		X string `json:"x"`
	}
	unnamed struct {
		kind.Meta
		X string
	}
	optioned struct {
		kind.Meta
		X int `json:"x,string"`
	}
	formless struct {
		kind.Meta
		X float64 `json:"x"`
	}
	twice struct {
		kind.Meta
		Tags string `json:"tags"`
	}
	deepTwice struct {
		kind.Meta
		X struct {
			piece
			A int `json:"x"`
		} `json:"deep"`
	}
	taggedEmbedding struct {
		kind.Meta `kind:"secret"`
	}
	pointerEmbedding struct {
		kind.Meta
		*piece
	}
	copiedApart struct {
		kind.Meta
		*Handle
	}
	listApart struct {
		kind.Meta
		X []struct{ *Handle } `json:"x"`
	}
	wrongEmbed struct {
		kind.Meta
		X map[string]string `json:",embed"`
	}
	listRule struct {
		kind.Meta
		X []struct {
			Y struct {
				Z string `json:"z" kind:"index"`
			} `json:"y"`
		} `json:"x"`
	}
	nestedAs struct {
		kind.Meta
		X struct {
			Y string `json:"y" kind:"ref=maker:clear,as=z"`
		} `json:"x"`
	}
	twoAttributes struct {
		kind.Meta
		X []string `json:"x" kind:"attributes"`
		Y []string `json:"y" kind:"attributes"`
	}
	symbolTwice struct {
		kind.Meta
		X string `json:"x" kind:"alias=y"`
		Y string `json:"y"`
	}
)

func TestMistakes(t *testing.T) {
	for want, f := range map[string]func() *kind.Def{
		"field X of kind_test.unnamed: needs a json tag":                                            define[unnamed],
		"field X of kind_test.optioned: needs a json tag with a name and no options":                define[optioned],
		"field x of kind_test.formless: no form for type float64":                                   define[formless],
		"field tags of kind_test.twice: the name is taken":                                          define[twice],
		"field deep.x of struct":                                                                    define[deepTwice],
		"field Meta of kind_test.taggedEmbedding: an embedded field must be a struct without a tag": define[taggedEmbedding],
		"field piece of kind_test.pointerEmbedding: an embedded field must be a struct":             define[pointerEmbedding],
		"field Handle of kind_test.copiedApart: a record that keeps fields apart needs":             define[copiedApart],
		"field x of kind_test.listApart: only a record keeps some of its fields apart":              define[listApart],
		"field X of kind_test.wrongEmbed: needs a json tag":                                         define[wrongEmbed],
		`field y.z of kind_test.listRule: word "index" works only in a record`:                      define[listRule],
		"field x.y of kind_test.nestedAs: a link object needs a field of the record itself":         define[nestedAs],
		"field y of kind_test.twoAttributes: a kind has one list of attributes":                     define[twoAttributes],
		`two symbols are named "y"`:                                                                 define[symbolTwice],
		"method Fill of kind_test.badFill has the wrong signature":                                  define[badFill],
		"method Check of kind_test.badCheck has the wrong signature":                                define[badCheck],
		"method Guard of kind_test.badGuard has the wrong signature":                                define[badGuard],
		"method Saved of kind_test.badSaved has the wrong signature":                                define[badSaved],
		"method Deleted of kind_test.badDeleted has the wrong signature":                            define[badDeleted],
		"method Whole of kind_test.badWhole has the wrong signature":                                define[badWhole],
		"method Ranked of kind_test.badRanked has the wrong signature":                              define[badRanked],
	} {
		wantPanic(t, want, func() { f() })
	}
	for _, name := range []string{"", "a/b"} {
		wantPanic(t, fmt.Sprintf("kind: %q is no name for the kind of kind_test.maker", name), func() {
			kind.Define(kind.Spec[maker]{Name: name})
		})
	}
}

func TestMistakesInSets(t *testing.T) {
	type lost struct {
		kind.Meta
		X string `json:"x" kind:"ref=nothing:clear"`
	}
	type lostRoles struct {
		kind.Meta
		X struct {
			Y []string `json:"y" kind:"roles=nothing"`
		} `json:"x"`
	}
	type crowded struct {
		kind.Meta
		X string `json:"x" kind:"ref=maker:clear,as=y"`
		Y string `json:"y"`
	}
	type displayed struct {
		kind.Meta
		X        []string `json:"x" kind:"roles=maker"`
		XDisplay string   `json:"xDisplay"`
	}
	for want, d := range map[string]*kind.Def{
		`field x of kind_test.lost: refers to unknown kind "nothing"`:        define[lost](),
		`field x.y of kind_test.lostRoles: refers to unknown kind "nothing"`: define[lostRoles](),
		`answers of kind_test.crowded have two members "y"`:                  define[crowded](),
		`answers of kind_test.displayed have two members "xDisplay"`:         define[displayed](),
		`two kinds are called "maker"`:                                       makers.Def,
	} {
		wantPanic(t, want, func() { kind.NewCatalog(makers.Def, d) })
	}
}

// TestEmbedding shows that fields of embedded structs stand in place, with
// the variants that they make among themselves.
func TestEmbedding(t *testing.T) {
	type variants struct {
		Type   string `json:"type" kind:"enum=a|b"`
		OnlyA  string `json:"onlyA" kind:"when=type:a,default=x"`
		hidden int    `json:"-"`
	}
	type record struct {
		kind.Meta
		variants
		After string `json:"after" kind:"when=type:b"`
	}
	d := define[record]()
	rec := d.New().(*record)
	if err := d.Apply(kind.Create, rec, read(t, `{"type":"a","after":"z"}`)); err != nil {
		t.Fatal(err)
	}
	if rec.OnlyA != "x" || rec.After != "" || rec.hidden != 0 {
		t.Errorf("got %+v", rec)
	}
	if err := d.Apply(kind.Patch, rec, read(t, `{"type":"b","after":"z"}`)); err != nil {
		t.Fatal(err)
	}
	if rec.OnlyA != "" || rec.After != "z" {
		t.Errorf("got %+v", rec)
	}
}

// gadget and newGadget differ in one line.
type gadget struct {
	kind.Meta

	Name string         `json:"name" kind:"required,unique"`
	Data jsontext.Value `json:"data"`
}

type newGadget struct {
	kind.Meta

	Name  string         `json:"name" kind:"required,unique"`
	Color string         `json:"color" kind:"enum=red|blue,alias=paint"`
	Data  jsontext.Value `json:"data"`
}

// TestNewFieldIsOneLine collects all that follows from a struct, and shows
// that one line more is all that a new field needs.
func TestNewFieldIsOneLine(t *testing.T) {
	before := follows(t, kind.Define(kind.Spec[gadget]{Name: "gadget", Path: "gadgets", Doc: "A gadget."}).Def)
	after := follows(t, kind.Define(kind.Spec[newGadget]{Name: "gadget", Path: "gadgets", Doc: "A gadget."}).Def)
	added := map[string]bool{}
	for line := range strings.SplitSeq(after, "\n") {
		added[line] = true
	}
	for line := range strings.SplitSeq(before, "\n") {
		if !added[line] {
			t.Errorf("a line went: %s", line)
		}
		delete(added, line)
	}
	for _, want := range []string{
		`create body: color = {"enum":["red","blue"],"nullable":true,"type":"string"}`,
		`replace body: color = {"enum":["red","blue"],"nullable":true,"type":"string"}`,
		`patch body: color = {"enum":["red","blue"],"nullable":true,"type":"string"}`,
		`column: color = "red"`,
		`column schema: color = {"type":"string"}`,
		`symbol: color`,
		`symbol: paint`,
		`stored: "color":"red"`,
		`golden:   color text alias=paint enum=red|blue`,
	} {
		if !added[want] {
			t.Errorf("missing: %s", want)
		}
		delete(added, want)
	}
	for line := range added {
		t.Errorf("unexpected: %s", line)
	}
}

// follows lists what follows from a kind, one fact a line.
func follows(t *testing.T, d *kind.Def) string {
	var b strings.Builder
	for _, shape := range shapes {
		for name, s := range d.BodySchema(shape)["properties"].(kind.Schema) {
			fmt.Fprintf(&b, "%s body: %s = %s\n", shape, name, kind.AppendAny(nil, s))
		}
	}
	rec := d.New()
	if err := d.Apply(kind.Create, rec, read(t, `{"name":"n","color":"red","data":{"a":1}}`)); err != nil {
		t.Fatal(err)
	}
	set := kind.NewCatalog(d)
	for _, col := range set.Columns(d) {
		fmt.Fprintf(&b, "column: %s = %s\n", col.Name, col.Append(nil, world{}, rec))
		fmt.Fprintf(&b, "column schema: %s = %s\n", col.Name, kind.AppendAny(nil, col.Schema))
	}
	for _, name := range d.Symbols.Names() {
		fmt.Fprintf(&b, "symbol: %s\n", name)
	}
	stored, err := d.Encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	for m := range strings.SplitSeq(strings.Trim(string(stored), "{}"), ",") {
		fmt.Fprintf(&b, "stored: %s\n", m)
	}
	var described strings.Builder
	if err := set.Describe(&described); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(described.String(), "\n") {
		fmt.Fprintf(&b, "golden: %s\n", line)
	}
	return b.String()
}
