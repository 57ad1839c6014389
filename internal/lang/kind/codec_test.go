package kind_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
)

func encode(t interface {
	Helper()
	Fatal(...any)
}, w *widget) []byte {
	t.Helper()
	b, err := widgets.Encode(w)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t interface {
	Helper()
	Fatal(...any)
}, data []byte) *widget {
	t.Helper()
	rec, err := widgets.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return rec.(*widget)
}

// same compares records by what they hold: no list is an empty list.
var same = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(widget{})}

func TestEncodeDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWidget.Draw(t, "widget")
		data := encode(t, w)
		back := decode(t, data)
		if diff := cmp.Diff(w, back, same); diff != "" {
			t.Errorf("stored as %s, came back as:\n%s", data, diff)
		}
		if again := encode(t, back); string(again) != string(data) {
			t.Errorf("two texts for one record:\n%s\n%s", data, again)
		}
	})
}

// TestStoredObjects shows that objects are kept to the letter, all the way
// from a body to the store and back.
func TestStoredObjects(t *testing.T) {
	const sent = `{ "z" : 18446744073709551615, "a":-9223372036854775808, "n": 1.10e+2, "s":"\u0041\/\n", "o": { "b":1 , "a":2 } }`
	const want = `{"z":18446744073709551615,"a":-9223372036854775808,"n":1.10e+2,"s":"\u0041\/\n","o":{"b":1,"a":2}}`
	w := create(t, bodyWith(kind.Create, `"data":`+sent))
	for range 2 {
		if string(w.Data) != want {
			t.Errorf("got %s, want %s", w.Data, want)
		}
		w = decode(t, encode(t, w))
	}
}

// TestUnknownMembers shows that a record of a newer controller keeps what
// this one does not know, through an edit.
func TestUnknownMembers(t *testing.T) {
	const stored = `{"id":"w1","future":{"b": 1, "a": [2]},"name":"n","later":true,"box":{"label":"l","lid":"oak"}}`
	for _, shape := range []kind.Shape{kind.Replace, kind.Patch} {
		w := widgets.Clone(decode(t, []byte(stored))).(*widget)
		if err := widgets.Apply(shape, w, read(t, bodyWith(shape, `"box":{"label":"m"}`))); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Future jsontext.Value
			Later  bool
			Box    struct{ Label, Lid string }
		}
		if err := json.Unmarshal(encode(t, w), &got, json.MatchCaseInsensitiveNames(true)); err != nil {
			t.Fatal(err)
		}
		if string(got.Future) != `{"b":1,"a":[2]}` || !got.Later || got.Box.Lid != "oak" || got.Box.Label != "m" {
			t.Errorf("%s made %s", shape, encode(t, w))
		}
	}
}

func TestUnknownMembersSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unknown := rapid.MapOf(rapid.StringMatching(`x[a-z]{1,6}`), genJSON).Draw(t, "unknown")
		data, err := json.Marshal(unknown)
		if err != nil {
			t.Fatal(err)
		}
		w := genWidget.Draw(t, "widget")
		if len(unknown) > 0 {
			w.Unknown = new(jsontext.Value(data))
		}
		back := decode(t, encode(t, widgets.Clone(decode(t, encode(t, w))).(*widget)))
		got := map[string]any{}
		if back.Unknown != nil {
			if err := json.Unmarshal(*back.Unknown, &got); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(unknown, got, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDecodeErrors(t *testing.T) {
	for data, want := range map[string]string{
		`{"key":["hush"]}`:                     "decode widget: /key holds no string",
		`{"keys":"hush"}`:                      "decode widget: /keys holds no []string",
		`{"count":"hush"}`:                     "decode widget: /count holds no int",
		`{"made":"hush"}`:                      "decode widget: /made holds no time.Time",
		`{"safe":{"code":"hush"}`:              "decode widget: jsontext: unexpected EOF",
		`{"key":"hush","key":"x"}`:             "decode widget: /key is there twice",
		`{"x":"hush","x":1}`:                   "decode widget:  is there twice",
		`{"grades":{"a":"hush","a":"x"}}`:      "decode widget: /grades/a is there twice",
		`{"data":{"a":"hush","a":"x"}}`:        "decode widget: /data is there twice",
		`{"tags":{"a":"hush","a":"x"}}`:        "decode widget: /tags/a is there twice",
		`{"tags":{"a":{"b":"hush","b":"x"}}}`:  "decode widget: ",
		`{"key":"hush"}{}`:                     "decode widget: there is more behind the record",
		`{"blob":"hush!"}`:                     "decode widget: /blob holds no []uint8",
		`{"keys":["x",["hush"]]}`:              "decode widget: /keys/1 holds no string",
		`{"safe":{"log":[{},{"qty":"hush"}]}}`: "decode widget: /safe/log/1/qty holds no int",
		`{"level":2147483648}`:                 "decode widget: /level holds no int32",
		`{"active":"hush"}`:                    "decode widget: /active holds no bool",
		`{"box":["hush"]}`:                     "decode widget: /box holds no kind_test.box",
		`{"prices":{"a":"hush"}}`:              "decode widget: /prices/a holds no int64",
		`{"parts":{"a":"hush"}}`:               "decode widget: /parts holds no []kind_test.part",
		`{"tags":["hush"]}`:                    "decode widget: /tags holds no kind.Tags",
		`[]`:                                   "decode widget:  holds no kind_test.widget",
	} {
		_, err := widgets.Decode([]byte(data))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: got %v, want %s", data, err, want)
		}
	}
}

func TestEncodeError(t *testing.T) {
	w := create(t, minimal)
	w.ID, w.Name = "w1", "\xff"
	if _, err := widgets.Encode(w); err == nil || !strings.HasPrefix(err.Error(), "encode widget w1: ") {
		t.Errorf("got %v", err)
	}
}

// TestCloneIsDeep scrambles everything that a clone can reach and looks
// whether the original notices.
func TestCloneIsDeep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWidget.Draw(t, "widget")
		before := encode(t, w)
		c := widgets.Clone(w).(*widget)
		if diff := cmp.Diff(w, c, cmpopts.IgnoreUnexported(widget{})); diff != "" {
			t.Fatalf("the clone differs:\n%s", diff)
		}
		scramble(reflect.ValueOf(c).Elem())
		if after := encode(t, w); string(after) != string(before) {
			t.Errorf("before %s\nafter  %s", before, after)
		}
	})
}

// TestCloneOfLists shows the same for what the elements of a list hold.
func TestCloneOfLists(t *testing.T) {
	type shelf struct {
		kind.Meta
		Rows []struct {
			Items []string   `json:"items"`
			Since *time.Time `json:"since"`
		} `json:"rows"`
	}
	d := define[shelf]()
	s := d.New()
	if err := d.Apply(kind.Create, s, read(t, `{"rows":[{"items":["a"],"since":"2020-01-01T00:00:00Z"}]}`)); err != nil {
		t.Fatal(err)
	}
	before, err := d.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	scramble(reflect.ValueOf(d.Clone(s)).Elem())
	if after, err := d.Encode(s); err != nil || string(after) != string(before) {
		t.Errorf("before %s\nafter  %s, %v", before, after, err)
	}
}

// scramble overwrites what v holds, in place where there is a place.
func scramble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scramble(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			scramble(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
			v.SetMapIndex(key, reflect.Value{})
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				scramble(f)
			}
		}
	case reflect.String:
		v.SetString("scrambled")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Uint8:
		v.SetUint(v.Uint() ^ 0xff)
	default:
		v.SetInt(^v.Int())
	}
}

// TestCloneUnexported shows that a field of the package's own does not stand
// in the way.
func TestCloneUnexported(t *testing.T) {
	w := create(t, minimal)
	w.notes = []string{"a"}
	if c := widgets.Clone(w).(*widget); len(c.notes) != 1 {
		t.Errorf("got %v", c.notes)
	}
}

func TestNewAndLabel(t *testing.T) {
	w := widgets.New()
	w.Name, w.ID = "n", "i"
	if got := widgets.Label(w); got != "n" {
		t.Errorf("Label is %q", got)
	}
	p := &plain{Meta: kind.Meta{ID: "p1"}, Name: "hush"}
	if got := plains.Label(p); got != "p1" {
		t.Errorf("Label of a record with a secret name is %q", got)
	}
}

// plain has a name that nobody may see.
type plain struct {
	kind.Meta

	Name string `json:"name" kind:"secret"`
}

var plains = kind.Define(kind.Spec[plain]{Name: "plain", Path: "plains"})

// TestEncodeOwn has a record whose JSON was made here stored as any other.
func TestEncodeOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWidget.Draw(t, "widget")
		want, err := widgets.Encode(w)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := widgets.EncodeOwn(w); err != nil || string(got) != string(want) {
			t.Fatalf("%s, %v, and not %s", got, err, want)
		}
	})
}
