package kind_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/lang/kind"
)

// FuzzApply reads any bytes as a body of every shape. Whatever is accepted
// can be stored and shown, and a patch does the same twice as once.
func FuzzApply(f *testing.F) {
	for _, body := range []string{
		full, minimal, `{}`, `null`, `{"note":"n"}`, bodyWith(kind.Replace, ""), bodyWith(kind.Patch, `"size":{"inner":{}},"box":null`),
		bodyWith(kind.Patch, `"type":"disk","bytes":1,"spokes":2,"tags":{},"data":{}`), bodyWith(kind.Patch, `"made":"0000-01-01T00:00:00+23:59"`),
		bodyWith(kind.Create, `"roles":["#all","#all"],"traits":["b","a"],"blob":"","prices":{"":0}`),
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := kind.ReadBody(data)
		if err != nil {
			return
		}
		for _, base := range []string{full, minimal} {
			for _, shape := range shapes {
				w := create(t, base)
				if widgets.Apply(shape, w, body) != nil {
					continue
				}
				if list, more := body.Ignored(); len(list) > kind.MostIgnored || more && len(list) < kind.MostIgnored {
					t.Errorf("%s ignores %v", data, list)
				}
				once := encode(t, w)
				if again := encode(t, decode(t, once)); string(again) != string(once) {
					t.Errorf("stored as %s, then as %s", once, again)
				}
				parse(t, appendAll(nil, columns, world{}, w))
				if err := widgets.Apply(shape, w, body); err != nil {
					t.Errorf("%s accepts %s once and then says %v", shape, data, err)
				}
				if twice := encode(t, w); string(twice) != string(once) {
					t.Errorf("%s %s\nonce  %s\ntwice %s", shape, data, once, twice)
				}
			}
		}
	})
}

// FuzzDecode reads any bytes as a stored record. What can be read can be
// written, copied and shown.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(full))
	f.Add([]byte(`{"id":"w1","tags":{"a":[1]},"future":{"a":1},"box":{"lid":1},"data":7,"safe":{"log":[{}]}}`))
	f.Add([]byte(`{"data":null,"parts":null,"sold":"0001-01-01T00:00:00Z","made":"9999-12-31T23:59:59-12:00"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := widgets.Decode(data)
		if err != nil {
			return
		}
		w := rec.(*widget)
		stored := encode(t, w)
		if clone := encode(t, widgets.Clone(w).(*widget)); string(clone) != string(stored) {
			t.Errorf("the clone of %s is %s", stored, clone)
		}
		if again := encode(t, decode(t, stored)); string(again) != string(stored) {
			t.Errorf("stored as %s, then as %s", stored, again)
		}
		answer := appendAll(nil, columns, world{}, w)
		var v any
		if err := json.Unmarshal(answer, &v); err != nil {
			t.Errorf("%s is shown as %s: %v", data, answer, err)
		}
	})
}
