package filter

import "testing"

// TestOnly takes a predicate on one field out of its query.
func TestOnly(t *testing.T) {
	type row struct{ id, name string }
	schema := NewSchema(
		Symbol[row]{Name: "id", Type: String, One: func(r row) Value { return StringValue(r.id) }},
		Symbol[row]{Name: "name", Type: String, One: func(r row) Value { return StringValue(r.name) }},
	)
	name, _ := schema.Lookup("name")
	for _, test := range []struct {
		text    string
		ok      bool
		ab, bcd bool // whether it selects these names
	}{
		{`name contains "b" sort by name`, true, true, true},
		{`not name contains "c" or name = "bcd"`, true, true, false},
		{`name > "b"`, true, false, true},
		{`name = "ab" and id = "1"`, false, false, false},
		{`id = "1"`, false, false, false},
		{`sort by name`, false, false, false},
	} {
		q, err := Compile(schema, test.text)
		if err != nil {
			t.Fatal(err)
		}
		judge, ok := q.Only(name)
		if ok != test.ok {
			t.Errorf("%s: ok is %v", test.text, ok)
			continue
		}
		if !ok {
			continue
		}
		if ab, bcd := judge(StringValue("ab")), judge(StringValue("bcd")); ab != test.ab || bcd != test.bcd {
			t.Errorf("%s: selects ab %v, bcd %v", test.text, ab, bcd)
		}
	}
}
