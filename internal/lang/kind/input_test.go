package kind_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

func TestReadBody(t *testing.T) {
	for _, bad := range []string{
		``, ` `, `null`, `1`, `"x"`, `true`, `[]`, `{`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{} {}`, `{"a":1,"a":2}`, `{"x":{"a":1,"a":2}}`,
		`{"x":[{"a":1,"b":{},"a":2}]}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":"\x"}`, `{"a":01}`, `{"a":NaN}`,
	} {
		if _, err := kind.ReadBody([]byte(bad)); !fault.Is(err, fault.CodeBody) || !strings.Contains(err.Error(), "must be a JSON object") {
			t.Errorf("ReadBody(%q): %v", bad, err)
		}
	}
	b := read(t, ` { "a" : 1, "b" : null , "c":{} } `)
	has := map[string]bool{"a": true, "b": false, "c": true, "d": false, "A": false}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if b.Has(name) != has[name] {
			t.Errorf("Has(%q) is %t", name, b.Has(name))
		}
	}
}

func TestReadBodies(t *testing.T) {
	for _, bad := range []string{``, `null`, `{}`, `1`, `[1]`, `[{},null]`, `[{}`, `[{"a":1,"a":1}]`, `[[]]`} {
		if _, err := kind.ReadBodies([]byte(bad)); !fault.Is(err, fault.CodeBody) {
			t.Errorf("ReadBodies(%q): %v", bad, err)
		}
	}
	bodies, err := kind.ReadBodies([]byte(` [ {"a":1}, {"b":2} ] `))
	if err != nil || len(bodies) != 2 || !bodies[0].Has("a") || !bodies[1].Has("b") || bodies[1].Has("a") {
		t.Errorf("got %v, %v", bodies, err)
	}
	if none, err := kind.ReadBodies([]byte(`[]`)); err != nil || len(none) != 0 {
		t.Errorf("got %v, %v for an empty list", none, err)
	}
}

func TestInput(t *testing.T) {
	type form struct {
		User string `json:"user" kind:"required,range=1..4"`
		Max  int    `json:"max" kind:"default=5"`
		Pass string `json:"pass" kind:"secret"`
		At   string `json:"at" kind:"fixed"`
	}
	in := kind.NewInput[form]()
	got, err := in.Read(read(t, `{"user":"u","pass":"p","at":"a"}`))
	if want := (form{"u", 5, "p", "a"}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := in.Read(read(t, `{}`)); !fault.Is(err, fault.CodeInvalid) {
		t.Errorf("got %v without the user", err)
	}
	const schema = `{"properties":{"at":{"nullable":true,"type":"string"},"max":{"default":5,"nullable":true,"type":"integer"},` +
		`"pass":{"nullable":true,"type":"string"},"user":{"maxLength":4,"minLength":1,"type":"string"}},"required":["user"],"type":"object"}`
	if got := string(kind.AppendAny(nil, in.BodySchema())); got != schema {
		t.Errorf("the schema is %s", got)
	}
	// Rules over records have no place here.
	type ruled struct {
		Depth size `json:"depth"`
	}
	wantPanic(t, `field depth.inner.deep of kind_test.ruled: word "unique" works only in a record`, func() { kind.NewInput[ruled]() })
	wantPanic(t, `word "unique" works only in a record`, func() { kind.NewOutput[ruled]() })
	type referring struct {
		ID string `json:"id" kind:"ref=maker:clear"`
	}
	wantPanic(t, `word "ref" works only in a record`, func() { kind.NewInput[referring]() })
	type matching struct {
		Roles []string `json:"roles" kind:"roles=maker"`
	}
	wantPanic(t, `word "roles" works only in a record`, func() { kind.NewInput[matching]() })
}
