package filter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/lang/filter"
)

// TestBounds reads what queries say about the order of numbers and times.
func TestBounds(t *testing.T) {
	type row struct {
		n int64
		t time.Time
	}
	schema := filter.NewSchema(
		filter.Symbol[row]{Name: "n", Type: filter.Int, One: func(r row) filter.Value { return filter.IntValue(r.n) }},
		filter.Symbol[row]{Name: "t", Type: filter.Time, One: func(r row) filter.Value { return filter.TimeValue(r.t) }},
		filter.Symbol[row]{Name: "id", Type: filter.String, One: func(row) filter.Value { return filter.StringValue("s") }},
	)
	for text, want := range map[string]string{
		"n > 3":                              "n 3..",
		"n >= 3":                             "n 3..",
		"n < 3":                              "n ..3",
		"n <= 3":                             "n ..3",
		"n = 3":                              "n 3..3",
		"n between 3 and 5":                  "n 3..5",
		"n > 3 and n < 9":                    "n 3.. n ..9",
		`n > 3 and id = "x"`:                 "n 3..",
		`n > 3 or id = "x"`:                  "",
		"not (n > 3)":                        "",
		"n != 3":                             "",
		"n in [3, 4]":                        "",
		"n not between 3 and 5":              "",
		"n = null":                           "",
		`id > "x"`:                           "",
		"n > 3 and (n > 4 or n < 2)":         "n 3..",
		"t > datetime(2026-01-02T03:04:05Z)": "t 2026-01-02T03:04:05Z..",
		"":                                   "",
	} {
		q, err := filter.Compile(schema, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var said []string
		for _, b := range q.Bounds() {
			said = append(said, fmt.Sprintf("%s %s..%s", b.Symbol.Name, shown(b.Least), shown(b.Most)))
		}
		if got := strings.Join(said, " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func shown(v filter.Value) string {
	switch v.Type() {
	case filter.None:
		return ""
	case filter.Time:
		return v.Time().Format(time.RFC3339)
	}
	return v.String()
}
