package fabric

import (
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/web/api"
)

// Under the name metrics an inspection answers what was measured as events of that kind
// say it, whoever has measured it.

// measured is what a router says of itself there.
type measured struct {
	Timestamp struct {
		Seconds int64 `json:"seconds"`
		Nanos   int64 `json:"nanos"`
	} `json:"timestamp"`
	Tags       map[string]string             `json:"tags"`
	Ints       map[string]int64              `json:"intValues"`
	Floats     map[string]float64            `json:"floatValues"`
	Meters     map[string]map[string]float64 `json:"meters"`
	Histograms map[string]map[string]float64 `json:"histograms"`
	Timers     map[string]map[string]float64 `json:"timers"`
}

// maxMeasured is how much of what a router says is gone through, in bytes.
const maxMeasured = 1 << 20

// What routers call a value, and what events do. Routers leave out those that are 0.
var (
	rateWords = map[string]string{
		"count": "count", "meanRate": "mean_rate", "m1Rate": "m1_rate", "m5Rate": "m5_rate", "m15Rate": "m15_rate",
	}
	spreadWords = map[string]string{
		"count": "count", "min": "min", "max": "max", "mean": "mean", "stdDev": "std_dev", "variance": "variance",
		"p50": "p50", "p75": "p75", "p95": "p95", "p99": "p99", "p999": "p999", "p9999": "p9999",
	}
	timerWords = func() map[string]string {
		both := maps.Clone(spreadWords)
		maps.Copy(both, rateWords)
		return both
	}()
)

// figures are what it has measured, in the order of their names.
func (m *measured) figures() (list []herald.Figure) {
	add := func(typ, name string, values map[string]any) {
		list = append(list, herald.Figure{Name: name, Type: typ, Tags: m.Tags, Values: values})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Ints)) {
		add("intValue", name, map[string]any{"value": m.Ints[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Floats)) {
		add("floatValue", name, map[string]any{"value": m.Floats[name]})
	}
	for _, sort := range []struct {
		typ   string
		said  map[string]map[string]float64
		words map[string]string
	}{{"meter", m.Meters, rateWords}, {"histogram", m.Histograms, spreadWords}, {"timer", m.Timers, timerWords}} {
		for _, name := range slices.Sorted(maps.Keys(sort.said)) {
			values := make(map[string]any, len(sort.words))
			for theirs, ours := range sort.words {
				values[ours] = sort.said[name][theirs]
			}
			add(sort.typ, name, values)
		}
	}
	return list
}

// figuresOf is what a router says of what it has measured, as events; as it came if it is
// no such thing.
func figuresOf(s *api.Service, routerID, text string) string {
	var m measured
	if len(text) > maxMeasured || json.Unmarshal([]byte(text), &m) != nil {
		return text
	}
	at := time.Unix(m.Timestamp.Seconds, m.Timestamp.Nanos)
	if m.Timestamp.Seconds == 0 {
		at = s.Sessions.Now()
	}
	events, err := json.Marshal(figureEvents(s, routerID, at, m.figures()))
	if err != nil { // a time that JSON cannot say
		return text
	}
	return string(events)
}

// figureEvents say what somebody has measured.
func figureEvents(s *api.Service, source string, at time.Time, figures []herald.Figure) []map[string]any {
	list, together := make([]map[string]any, 0, len(figures)), rand.Text()
	for _, f := range figures {
		said := figureEvent(s, source, together, f, f.Values)
		stamp(said, s, ofFigures, at)
		list = append(list, said)
	}
	return list
}
