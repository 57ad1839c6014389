package main

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, tt := range []struct {
		name   string
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		{"none", nil, 50, 0},
		{"one", []time.Duration{7}, 1, 7},
		{"one at most", []time.Duration{7}, 100, 7},
		{"lower of two", []time.Duration{1, 2}, 50, 1},
		{"upper of two", []time.Duration{1, 2}, 51, 2},
		{"middle of three", []time.Duration{1, 2, 3}, 50, 2},
		{"p50 of hundred", hundred, 50, 50},
		{"p95 of hundred", hundred, 95, 95},
		{"p99 of hundred", hundred, 99, 99},
		{"max of hundred", hundred, 100, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := percentile(tt.sorted, tt.p); got != tt.want {
				t.Errorf("percentile(%v, %v) = %v, want %v", tt.sorted, tt.p, got, tt.want)
			}
		})
	}
}

// The percentile is one of the values, p percent are not above it, and no
// lesser value has that property.
func TestPercentileProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 50), func(n int64) time.Duration { return time.Duration(n) }), 1, 200).Draw(t, "values")
		p := float64(rapid.IntRange(1, 100).Draw(t, "p"))
		slices.Sort(values)
		got := percentile(values, p)
		need := int(math.Ceil(p / 100 * float64(len(values))))
		for _, v := range values {
			notAbove := 0
			for _, other := range values {
				if other <= v {
					notAbove++
				}
			}
			if notAbove >= need {
				if v != got {
					t.Fatalf("percentile %v is %v, want %v", p, got, v)
				}
				return
			}
		}
		t.Fatalf("no value has %d values that are not above it", need)
	})
}

func TestTally(t *testing.T) {
	var one, two tally
	one.add(3*time.Millisecond, 200, nil)
	one.add(9*time.Millisecond, 404, nil)
	two.add(1*time.Millisecond, 201, nil)
	two.add(9*time.Millisecond, 404, nil)
	two.add(9*time.Millisecond, 0, errors.New("gone"))
	two.add(9*time.Millisecond, 302, nil)
	one.merge(two)
	got := one.figures(2 * time.Second)
	want := figures{
		Requests: 6, Errors: map[string]int{"404": 2, "transport": 1, "302": 1}, PerSecond: 1,
		P50: 1, P95: 3, P99: 3, Max: 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("figures differ (-want +got):\n%s", diff)
	}
	if text := got.String(); !strings.Contains(text, "errors 4 (302:1 404:2 transport:1)") {
		t.Errorf("the errors are not in %q", text)
	}
}

func TestShow(t *testing.T) {
	res := result{
		Scenario: "s", Clients: 2, Seconds: 1.5, figures: figures{Requests: 3, P50: 1.25},
		Steps:  []stepResult{{"first", figures{Requests: 2}}, {"second", figures{Requests: 1}}},
		Server: &serverUse{CPUSeconds: 0.5},
	}
	var text, line strings.Builder
	if err := errors.Join(show(&text, res, false), show(&line, res, true)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "\n"); n != 3 {
		t.Errorf("there are %d lines for a scenario of two steps:\n%s", n, &text)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(line.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got["scenario"] != "s" || got["p50Ms"] != 1.25 || len(got["steps"].([]any)) != 2 || got["server"].(map[string]any)["cpuSeconds"] != 0.5 {
		t.Errorf("JSON lacks something: %s", &line)
	}
}
