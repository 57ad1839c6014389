package kind_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// TestSpellings shows that a name counts in any spelling, at every depth.
func TestSpellings(t *testing.T) {
	want := create(t, full)
	loud := strings.NewReplacer(`"name"`, `"NAME"`, `"serial"`, `"Serial"`, `"size"`, `"SIZE"`, `"inner"`, `"Inner"`, `"deep"`, `"dEEP"`,
		`"box"`, `"Box"`, `"label"`, `"LABEL"`, `"parts"`, `"Parts"`, `"code"`, `"Code"`, `"tags": {"hush"`, `"Tags": {"hush"`,
		`"gear"`, `"GEAR"`, `"teeth"`, `"Teeth"`).Replace(full)
	got := create(t, loud)
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("in another spelling:\n%s", diff)
	}
	// What is somebody's own keeps its names as they are.
	w := create(t, bodyWith(kind.Create, `"tags":{"A":"1","a":"2"},"data":{"B":1,"b":{"Code":2,"code":3}},"grades":{"C":"good","c":"bad"}`))
	if len(w.Tags) != 2 || len(w.Grades) != 2 || string(w.Data) != `{"B":1,"b":{"Code":2,"code":3}}` {
		t.Errorf("got %v, %v and %s", w.Tags, w.Grades, w.Data)
	}
}

// TestTwoSpellings shows that an object must not spell one name in two ways.
func TestTwoSpellings(t *testing.T) {
	for more, field := range map[string]string{
		`"Name":"other"`:                                 "name",
		`"OWNER":"eve","Owner":"ann"`:                    "owner",
		`"size":{"width":1,"Width":2}`:                   "size.width",
		`"size":{"width":1},"SIZE":{"width":1}`:          "size",
		`"parts":[{"code":"a"},{"code":"b","CODE":"b"}]`: "parts.1.code",
		`"safe":{"Code":"1234","CODE":"1234"}`:           "safe.code",
		`"Digest":"a","digest":"b"`:                      "digest",
	} {
		f := refused(t, kind.Create, bodyWith(kind.Create, more), fault.CodeBody, field)
		if f.Reason != "is there in two spellings; send one" || f.Value != nil {
			t.Errorf("%s: the reason is %q, the value %v", more, f.Reason, f.Value)
		}
	}
}

// TestNamesDiffer shows that two fields cannot differ in case alone.
func TestNamesDiffer(t *testing.T) {
	type twins struct {
		A string `json:"userName"`
		B string `json:"username"`
	}
	wantPanic(t, `field username of kind_test.twins: the name is that of userName in another spelling`, func() { kind.NewInput[twins]() })
}

// TestIgnored shows which members of a body nobody read, and what they may
// stand for.
func TestIgnored(t *testing.T) {
	for body, want := range map[string][]string{
		``: nil,
		`"NOTE":"n","digest":"d","rank":1,"id":"i","createdAt":"x","ownerName":"o","bytes":1`: nil,
		`"makerID":"","tags":{"a":"b"},"data":{"colour":1},"prices":{}`:                       nil,
		`"flavour":["red"]`:                              {"flavour"},
		`"colrs":["red"],"":0`:                           {"", "colrs (colors)"},
		`"tratis":[],"nmae":"n","x":1`:                   {"nmae (name)", "tratis (traits)", "x"},
		`"size":{"width":1,"wdth":1,"measure":"m"}`:      {"size.wdth (size.width)"},
		`"size":{"width":1,"inner":{"deeep":"d","x":1}}`: {"size.inner.deeep (size.inner.deep)", "size.inner.x"},
		`"box":{"label":"l","depht":1}`:                  {"box.depht (box.depth)"},
		`"parts":[{"code":"a"},{"code":"b","quty":1}],"safe":{"door":{"lok":"urn:a"}}`: {"parts.1.quty (parts.1.qty)", "safe.door.lok (safe.door.lock)"},
		`"rnk":1,"disgest":"d"`: {"disgest", "rnk"}, // what no body sets is no advice
	} {
		b := read(t, bodyWith(kind.Create, body))
		for range 2 { // a write may run again
			if err := widgets.Apply(kind.Create, new(widget), b); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
		}
		if got := ignored(b); !cmp.Equal(got, want) {
			t.Errorf("%s: ignored %q, want %q", body, got, want)
		}
	}
}

func ignored(b kind.Body) (list []string) {
	all, more := b.Ignored()
	for _, i := range all {
		if i.Near != "" {
			i.Name += " (" + i.Near + ")"
		}
		list = append(list, i.Name)
	}
	if more {
		list = append(list, "...")
	}
	return list
}

// TestIgnoredByAll shows that a member is known if one of those who read the
// body knows it, or it is to be overlooked.
func TestIgnoredByAll(t *testing.T) {
	type form struct {
		Extra string `json:"extra"`
	}
	in := kind.NewInput[form]()
	b := read(t, bodyWith(kind.Create, `"extra":"e","exra":1,"_links":{},"makerr":1,"isOnline":true`))
	if _, err := in.Read(b); err != nil {
		t.Fatal(err)
	}
	if err := widgets.Apply(kind.Create, new(widget), b); err != nil {
		t.Fatal(err)
	}
	b.Overlook("_links", "isOnline", "maker")
	if got, want := ignored(b), []string{"exra (extra)", "makerr (makers)"}; !cmp.Equal(got, want) {
		t.Errorf("ignored %q, want %q", got, want)
	}
	if got := ignored(read(t, `{"nmae":"w"}`)); got != nil {
		t.Errorf("ignored %q before anybody read it", got)
	}
	// A body that was refused tells as much.
	b = read(t, `{"serial":"s","nmae":"w"}`)
	if err := widgets.Apply(kind.Create, new(widget), b); err == nil {
		t.Fatal("a body without a name was accepted")
	}
	if got, want := ignored(b), []string{"nmae (name)"}; !cmp.Equal(got, want) {
		t.Errorf("ignored %q, want %q", got, want)
	}
}

func TestIgnoredInLists(t *testing.T) {
	type form struct {
		User string `json:"user"`
	}
	bodies, err := kind.ReadBodies([]byte(`[{"user":"a"},{"usr":"b"},{"x":1}]`))
	if err != nil {
		t.Fatal(err)
	}
	in := kind.NewInput[form]()
	for _, b := range bodies {
		if _, err := in.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := ignored(bodies[0]), []string{"1.usr (1.user)", "2.x"}; !cmp.Equal(got, want) {
		t.Errorf("ignored %q, want %q", got, want)
	}
}

// TestIgnoredIsBounded shows that a body full of nonsense makes little work.
func TestIgnoredIsBounded(t *testing.T) {
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `,"x%d":{"y":1}`, i)
	}
	for _, body := range []string{
		`{"name":"n","serial":"s"` + many.String() + `}`,
		`{"name":"n","serial":"s","safe":{"code":"1234"` + many.String() + `}}`,
		`{"name":"n","serial":"s","a":1,"size":{"width":1` + many.String() + `}}`,
	} {
		b := read(t, body)
		if err := widgets.Apply(kind.Create, new(widget), b); err != nil {
			t.Fatal(err)
		}
		if all, more := b.Ignored(); len(all) != kind.MostIgnored || !more {
			t.Errorf("%.50s: %d are named, more: %t", body, len(all), more)
		}
	}
}

// TestSynonyms shows that a word is taken for another, and never shown.
func TestSynonyms(t *testing.T) {
	type form struct {
		Type string `json:"type" kind:"required,enum=User|Device,synonym=Default:Device|Person:User" doc:"What it is."`
	}
	in := kind.NewInput[form]()
	for sent, want := range map[string]string{"Default": "Device", "Person": "User", "User": "User"} {
		if got, err := in.Read(read(t, `{"type":"`+sent+`"}`)); err != nil || got.Type != want {
			t.Errorf("%s became %q, %v", sent, got.Type, err)
		}
	}
	for _, bad := range []string{"default", "Other", ""} {
		_, err := in.Read(read(t, `{"type":"`+bad+`"}`))
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Reason != "must be one of User, Device" {
			t.Errorf("%q: got %v", bad, err)
		}
	}
	const schema = `{"properties":{"type":{"description":"What it is. Default is taken for Device, Person for User.","enum":["User","Device"],"type":"string"}},"required":["type"],"type":"object"}`
	if got := string(kind.AppendAny(nil, in.BodySchema())); got != schema {
		t.Errorf("the schema is %s", got)
	}
	const answer = `{"properties":{"type":{"description":"What it is.","enum":["User","Device"],"type":"string"}},"required":["type"],"type":"object"}`
	if got := string(kind.AppendAny(nil, kind.NewOutput[form]().Schema())); got != answer {
		t.Errorf("the schema of answers is %s", got)
	}
}
