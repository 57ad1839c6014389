package kind_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// merge is what a patch does, written down as plainly as can be.
func merge(record, patch map[string]any, path string) {
	for name, value := range patch {
		object, isObject := value.(map[string]any)
		switch at := path + name; {
		case value == nil: // never clears
		case isObject && len(object) == 0:
		case at == "serial" || at == "size.origin":
		case at == "size" || at == "size.inner":
			merge(record[name].(map[string]any), object, at+".")
		case at == "box":
			if record[name] == nil {
				record[name] = map[string]any{"depth": 7.0, "stamps": []any{}}
			}
			merge(record[name].(map[string]any), object, at+".")
		default:
			record[name] = value
		}
	}
}

// tree is a record as plain JSON.
func tree(t *rapid.T, w *widget) map[string]any {
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, data).(map[string]any)
}

// TestPatch compares patches with merge.
func TestPatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := new(widget)
		applyTo(t, w, kind.Create, drawBody(t, kind.Create))
		body := drawBody(t, kind.Patch)
		for _, name := range []string{"traits", "roles", "parts", "type", "bytes", "spokes", "tube", "gear"} {
			delete(body, name) // these are sorted, completed or come and go
		}
		if made, ok := body["made"].(time.Time); ok && made.IsZero() {
			delete(body, "made")
		}
		want := tree(t, w)
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		merge(want, parse(t, data).(map[string]any), "")
		if !applyTo(t, w, kind.Patch, body) {
			return
		}
		if diff := cmp.Diff(want, tree(t, w)); diff != "" {
			t.Fatalf("patched with %s:\n%s", data, diff)
		}
		applyTo(t, w, kind.Patch, body)
		if diff := cmp.Diff(want, tree(t, w)); diff != "" {
			t.Fatalf("patched twice with %s:\n%s", data, diff)
		}
	})
}

// applyTo applies a body and reports whether it was accepted. It is not where
// a drawn struct lacks what it must have.
func applyTo(t *rapid.T, w *widget, shape kind.Shape, body map[string]any) bool {
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	b, err := kind.ReadBody(data)
	if err != nil {
		t.Fatal(err)
	}
	return widgets.Apply(shape, w, b) == nil
}

func TestMerge(t *testing.T) {
	tests := map[string]struct{ patch, path, want string }{
		"one leaf":          {`"size":{"width":11}`, "size", `{"width":11,"unit":"cm","origin":"o","probe":"","inner":{"deep":"d","shade":"s"}}`},
		"a deep leaf":       {`"size":{"inner":{"deep":"e"}}`, "size", `{"width":10,"unit":"cm","origin":"o","probe":"","inner":{"deep":"e","shade":"s"}}`},
		"a null leaf":       {`"size":{"width":null,"inner":null}`, "size", `{"width":10,"unit":"cm","origin":"o","probe":"","inner":{"deep":"d","shade":"s"}}`},
		"an empty object":   {`"size":{}`, "size", `{"width":10,"unit":"cm","origin":"o","probe":"","inner":{"deep":"d","shade":"s"}}`},
		"an optional leaf":  {`"box":{"depth":4}`, "box", `{"label":"l","depth":4,"stamps":["x"]}`},
		"an optional empty": {`"box":{}`, "box", `{"label":"l","depth":2,"stamps":["x"]}`},
		"list as a whole":   {`"parts":[{"code":"z"}]`, "parts", `[{"code":"z","qty":1,"pin":"","lot":""}]`},
		"map as a whole":    {`"prices":{"m3":3}`, "prices", `{"m3":3}`},
		"empty map":         {`"prices":{}`, "prices", `{"m1":1,"m2":99}`},
		"tags as a whole":   {`"tags":{"n":"m"}`, "tags", `{"n":"m"}`},
		"empty tags":        {`"tags":{ }`, "tags", `{"a":"b","c":true,"d":null}`},
		"object as a whole": {`"data":{"x":{}}`, "data", `{"x":{}}`},
		"empty object":      {`"data":{ }`, "data", `{"z":9007199254740993,"a":[1,2.50,"\u0041"]}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := applied(t, kind.Patch, bodyWith(kind.Patch, tt.patch))
			if got := member(t, w, tt.path); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestMergeIntoNothing shows that a patch that sets an unset struct must bring
// all that it needs.
func TestMergeIntoNothing(t *testing.T) {
	patch := func(text string) (*widget, error) {
		w := create(t, minimal)
		return w, widgets.Apply(kind.Patch, w, read(t, bodyWith(kind.Patch, text)))
	}
	w, err := patch(`"box":{"label":"l"}`)
	if err != nil || member(t, w, "box") != `{"label":"l","depth":7,"stamps":[]}` {
		t.Errorf("got %v and %s", err, member(t, w, "box"))
	}
	if w, err := patch(`"box":{}`); err != nil || w.Box != nil {
		t.Errorf("an empty object made %+v and %v", w.Box, err)
	}
	if _, err := patch(`"box":{"depth":1}`); !fault.Is(err, fault.CodeInvalid) {
		t.Errorf("got %v without the label", err)
	}
}

// TestEmptyObjectReplaces shows that only a patch takes an empty object for
// none.
func TestEmptyObjectReplaces(t *testing.T) {
	w := applied(t, kind.Replace, bodyWith(kind.Replace, `"tags":{},"prices":{},"data":{}`))
	if w.Tags != nil || w.Prices != nil || string(w.Data) != "{}" {
		t.Errorf("got %v, %v and %s", w.Tags, w.Prices, w.Data)
	}
}
