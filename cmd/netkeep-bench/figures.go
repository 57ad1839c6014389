package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tally is what one client, or all together, saw of one step of a scenario.
type tally struct {
	took   []time.Duration // of the requests that succeeded
	failed map[string]int  // by status, or "transport" for none
}

func (t *tally) add(took time.Duration, status int, err error) {
	why := strconv.Itoa(status)
	switch {
	case err != nil:
		why = "transport"
	case status/100 == 2:
		t.took = append(t.took, took)
		return
	}
	if t.failed == nil {
		t.failed = map[string]int{}
	}
	t.failed[why]++
}

func (t *tally) merge(other tally) {
	t.took = append(t.took, other.took...)
	for why, n := range other.failed {
		if t.failed == nil {
			t.failed = map[string]int{}
		}
		t.failed[why] += n
	}
}

// figures sum a tally up. Rate and latencies are of the requests that
// succeeded.
type figures struct {
	Requests  int            `json:"requests"`
	Errors    map[string]int `json:"errors"`
	PerSecond float64        `json:"perSecond"`
	P50       float64        `json:"p50Ms"`
	P95       float64        `json:"p95Ms"`
	P99       float64        `json:"p99Ms"`
	Max       float64        `json:"maxMs"`
}

// figures sorts the tally's latencies.
func (t *tally) figures(elapsed time.Duration) figures {
	slices.Sort(t.took)
	f := figures{
		Requests: len(t.took), Errors: t.failed, PerSecond: float64(len(t.took)) / elapsed.Seconds(),
		P50: ms(percentile(t.took, 50)), P95: ms(percentile(t.took, 95)), P99: ms(percentile(t.took, 99)),
		Max: ms(percentile(t.took, 100)),
	}
	for _, n := range t.failed {
		f.Requests += n
	}
	return f
}

// percentile is the least of the sorted values that p percent of them do not
// exceed; 0 if there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (f figures) String() string {
	return fmt.Sprintf("%8d requests  errors %s  %9.1f/s  p50 %s  p95 %s  p99 %s  max %s",
		f.Requests, f.errors(), f.PerSecond, shown(f.P50), shown(f.P95), shown(f.P99), shown(f.Max))
}

// errors counts all and says which.
func (f figures) errors() string {
	if len(f.Errors) == 0 {
		return "0"
	}
	total := 0
	var each []string
	for _, why := range slices.Sorted(maps.Keys(f.Errors)) {
		total += f.Errors[why]
		each = append(each, fmt.Sprintf("%s:%d", why, f.Errors[why]))
	}
	return fmt.Sprintf("%d (%s)", total, strings.Join(each, " "))
}

func shown(ms float64) string { return fmt.Sprintf("%.2fms", ms) }

// result is the outcome of a scenario. Steps are there if it has several.
type result struct {
	Scenario string  `json:"scenario"`
	Clients  int     `json:"clients"`
	Seconds  float64 `json:"seconds"`
	figures
	Steps  []stepResult `json:"steps,omitempty"`
	Server *serverUse   `json:"server,omitempty"`
}

// stepResult is the outcome of one step of a scenario.
type stepResult struct {
	Step string `json:"step"`
	figures
}

// String is a line for the scenario and one for each step.
func (r result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-26s %s", r.Scenario, r.figures)
	if r.Server != nil {
		fmt.Fprintf(&b, "  %s", r.Server)
	}
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "\n  %-24s %s", s.Step, s.figures)
	}
	return b.String()
}
