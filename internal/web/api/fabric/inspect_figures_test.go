package fabric

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestMeasured reads what a router of OpenZiti says of what it has measured, which leaves
// out what is 0.
func TestMeasured(t *testing.T) {
	said := `{"sourceId": "r1", "timestamp": {"seconds": 1763500000}, "tags": {"a": "b"}, "intValues": {"xgress.active": 3},
		"floatValues": {"load": 0.5}, "meters": {"fabric.rx": {"count": 7, "m1Rate": 1.5}},
		"histograms": {"link.latency": {"count": 2, "p999": 9, "stdDev": 1}}, "timers": {"dial": {"max": 4, "meanRate": 2}}, "usageCounters": []}`
	var m measured
	if err := json.Unmarshal([]byte(said), &m); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"xgress.active": "intValue map[value:3]", "load": "floatValue map[value:0.5]",
		"fabric.rx":    "meter map[count:7 m15_rate:0 m1_rate:1.5 m5_rate:0 mean_rate:0]",
		"link.latency": "histogram map[count:2 max:0 mean:0 min:0 p50:0 p75:0 p95:0 p99:0 p999:9 p9999:0 std_dev:1 variance:0]",
		"dial":         "timer map[count:0 m15_rate:0 m1_rate:0 m5_rate:0 max:4 mean:0 mean_rate:2 min:0 p50:0 p75:0 p95:0 p99:0 p999:0 p9999:0 std_dev:0 variance:0]",
	}
	for _, f := range m.figures() {
		if got := fmt.Sprint(f.Type, " ", f.Values); got != want[f.Name] || f.Tags["a"] != "b" {
			t.Errorf("%s is %s, want %s", f.Name, got, want[f.Name])
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("it leaves out %v", want)
	}
}
