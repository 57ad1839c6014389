package pack_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/pack"
)

// count is a type that says itself what it is packed as.
type count struct{ n int64 }

func (c *count) Pack(w *pack.Writer)   { w.Number(c.n) }
func (c *count) Unpack(r *pack.Reader) { c.n = r.Number() }
func (c count) Equal(o count) bool     { return c == o }

type inner struct {
	Name string
	On   bool
}

// thing has every form of value that can be packed.
type thing struct {
	Embedded
	Text   string
	Long   string
	Flag   bool
	Int    int
	Small  int32
	Byte   uint8
	Big    uint64
	Raw    []byte
	Time   time.Time
	When   *time.Time
	Count  count
	Texts  []string
	Lists  [][]string
	Parts  []inner
	Part   inner
	Maybe  *inner
	Marks  map[string]any
	Costs  map[string]int
	Groups map[string][]string
	Last   string
}

// Embedded is part of a thing.
type Embedded struct {
	ID  string
	Raw *[]byte
}

var genText = rapid.OneOf(rapid.SampledFrom([]string{"", "a", "again", "and again", "\xff\x00"}), rapid.String())

func optional[T any](t *rapid.T, g *rapid.Generator[T], what string) *T {
	if rapid.Bool().Draw(t, "no "+what) {
		return nil
	}
	v := g.Draw(t, what)
	return &v
}

func orNil[T any](t *rapid.T, g *rapid.Generator[T], what string) (v T) {
	if p := optional(t, g, what); p != nil {
		return *p
	}
	return v
}

var genTime = rapid.Map(rapid.Int64Range(-60_000_000_000, 200_000_000_000), func(s int64) time.Time { return time.Unix(s, s&0xffff).UTC() })

var genInner = rapid.Custom(func(t *rapid.T) inner {
	return inner{genText.Draw(t, "name"), rapid.Bool().Draw(t, "on")}
})

var genThing = rapid.Custom(func(t *rapid.T) *thing {
	texts := rapid.SliceOfN(genText, 0, 3)
	return &thing{
		Embedded: Embedded{genText.Draw(t, "id"), optional(t, rapid.SliceOfN(rapid.Byte(), 0, 3), "raw")},
		Text:     genText.Draw(t, "text"), Long: strings.Repeat(genText.Draw(t, "long"), rapid.IntRange(0, 300).Draw(t, "times")),
		Flag: rapid.Bool().Draw(t, "flag"), Int: rapid.Int().Draw(t, "int"), Small: rapid.Int32().Draw(t, "small"),
		Byte: rapid.Uint8().Draw(t, "byte"), Big: rapid.Uint64().Draw(t, "big"), Raw: orNil(t, rapid.SliceOfN(rapid.Byte(), 0, 9), "bytes"),
		Time: orNil(t, genTime, "time"), When: optional(t, genTime, "when"), Count: count{rapid.Int64().Draw(t, "count")},
		Texts: orNil(t, texts, "texts"), Lists: orNil(t, rapid.SliceOfN(rapid.OneOf(texts, rapid.Just[[]string](nil)), 0, 3), "lists"),
		Parts: orNil(t, rapid.SliceOfN(genInner, 0, 3), "parts"), Part: genInner.Draw(t, "part"), Maybe: optional(t, genInner, "maybe"),
		Marks:  orNil(t, rapid.MapOfN(genText, rapid.OneOf(rapid.Just[any](nil), genText.AsAny(), rapid.Bool().AsAny()), 0, 3), "marks"),
		Costs:  orNil(t, rapid.MapOfN(genText, rapid.Int(), 0, 3), "costs"),
		Groups: orNil(t, rapid.MapOfN(genText, rapid.OneOf(texts, rapid.Just[[]string](nil)), 0, 3), "groups"),
		Last:   genText.Draw(t, "last"),
	}
})

// TestPack has values come back as they were, what is nil and what is empty told apart, and
// that none of them rests on the bytes.
func TestPack(t *testing.T) {
	c := pack.Of(reflect.TypeFor[thing]())
	rapid.Check(t, func(t *rapid.T) {
		w := &pack.Writer{}
		if rapid.Bool().Draw(t, "used before") {
			w.Text("again")
			w.Text("again")
			w.Reset()
		}
		things := rapid.SliceOfN(genThing, 1, 6).Draw(t, "things")
		for _, th := range things {
			c.Put(w, reflect.ValueOf(th).Elem())
		}
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
		bytes := append([]byte{}, w.Bytes...)
		r := pack.NewReader(bytes)
		var back []*thing
		for range things {
			got := new(thing)
			c.Take(r, reflect.ValueOf(got).Elem())
			back = append(back, got)
		}
		clear(bytes)
		if r.Err() != nil || r.Len() != 0 {
			t.Fatalf("%d bytes left, %v", r.Len(), r.Err())
		}
		for i, th := range things {
			if diff := cmp.Diff(th, back[i]); diff != "" {
				t.Fatalf("thing %d came back as:\n%s", i, diff)
			}
		}
		cut := pack.NewReader(w.Bytes[:rapid.IntRange(0, len(w.Bytes)-1).Draw(t, "cut")])
		for range things {
			c.Take(cut, reflect.ValueOf(new(thing)).Elem())
		}
		if cut.Err() == nil {
			t.Fatal("what was cut could be read")
		}
	})
}

// TestOften has a text that many say told by a number, and one that is said once by itself.
func TestOften(t *testing.T) {
	w := &pack.Writer{}
	for range 100 {
		w.Text("what everybody says")
	}
	if most := 3*len("what everybody says") + 100; len(w.Bytes) > most {
		t.Errorf("the same text a hundred times takes %d bytes, at most %d are wanted", len(w.Bytes), most)
	}
	r := pack.NewReader(w.Bytes)
	for i := range 100 {
		if got := r.Text(); got != "what everybody says" {
			t.Fatalf("text %d is %q", i, got)
		}
	}
}

// TestShape tells types apart of which bytes mean something else.
func TestShape(t *testing.T) {
	type one struct {
		A string `json:"a"`
		B int
	}
	type two struct {
		B int
		A string `json:"a"`
	}
	type three struct {
		A string `json:"a,omitzero"`
		B int
	}
	type four struct {
		A string `json:"a"`
		B []int
	}
	seen := map[string]reflect.Type{}
	for _, typ := range []reflect.Type{reflect.TypeFor[one](), reflect.TypeFor[two](), reflect.TypeFor[three](), reflect.TypeFor[four](), reflect.TypeFor[struct{ One one }](), reflect.TypeFor[thing]()} {
		shape := pack.Of(typ).Shape()
		if other, taken := seen[shape]; taken {
			t.Errorf("%s has the shape of %s: %s", typ, other, shape)
		}
		seen[shape] = typ
	}
}

// TestCannot names what cannot be packed, before anything is.
func TestCannot(t *testing.T) {
	type self struct{ Next *self }
	type hidden struct{ _ int }
	for _, typ := range []reflect.Type{reflect.TypeFor[chan int](), reflect.TypeFor[self](), reflect.TypeFor[hidden](), reflect.TypeFor[map[string]func()](), reflect.TypeFor[float64]()} {
		func() {
			defer func() {
				if said := recover(); said == nil {
					t.Errorf("%s can be packed", typ)
				}
			}()
			pack.Of(typ)
		}()
	}
	type marks struct{ Any any }
	w := &pack.Writer{}
	pack.Of(reflect.TypeFor[marks]()).Put(w, reflect.ValueOf(marks{3.5}))
	if w.Err() == nil {
		t.Error("a number was packed as any")
	}
}

// FuzzTake reads bytes that nobody has packed: they are refused or are something, and take
// no more memory than they have bytes for.
func FuzzTake(f *testing.F) {
	c := pack.Of(reflect.TypeFor[thing]())
	w := &pack.Writer{}
	c.Put(w, reflect.ValueOf(thing{Text: "a", Texts: []string{"a", "a", "a"}, Marks: map[string]any{"a": true}, Parts: []inner{{"a", true}}}))
	f.Add(w.Bytes)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		got := new(thing)
		r := pack.NewReader(b)
		c.Take(r, reflect.ValueOf(got).Elem())
		if r.Err() == nil && r.Len() > len(b) {
			t.Errorf("%d bytes are left of %d", r.Len(), len(b))
		}
		if n := len(got.Texts) + len(got.Raw) + len(got.Parts); n > 3*len(b) {
			t.Errorf("%d values of %d bytes", n, len(b))
		}
	})
}
