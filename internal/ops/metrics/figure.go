package metrics

import (
	"math"
	"strconv"

	dto "github.com/prometheus/client_model/go"
)

// Figure is one of the figures, for those who are told of them otherwise than by a scrape.
type Figure struct {
	Name   string
	Spread bool              // whether it is of many measures; else it has one value
	Labels map[string]string // nil if it has none
	Values map[string]any    // numbers by name
}

// Figures are all that a scrape would get now. What cannot be read is left out, and so
// is what JSON has no number for.
func (m *Metrics) Figures() (all []Figure) {
	families, _ := m.Registry.Gather() // what could be read is there beside an error
	for _, family := range families {
		for _, one := range family.GetMetric() {
			f := Figure{Name: family.GetName(), Values: map[string]any{}}
			for _, label := range one.GetLabel() {
				if f.Labels == nil {
					f.Labels = map[string]string{}
				}
				f.Labels[label.GetName()] = label.GetValue()
			}
			f.Spread = family.GetType() == dto.MetricType_HISTOGRAM || family.GetType() == dto.MetricType_SUMMARY
			f.read(one)
			if len(f.Values) > 0 {
				all = append(all, f)
			}
		}
	}
	return all
}

// read takes in what a metric says.
func (f *Figure) read(one *dto.Metric) {
	switch {
	case one.Counter != nil:
		f.set("value", one.Counter.GetValue())
	case one.Gauge != nil:
		f.set("value", one.Gauge.GetValue())
	case one.Untyped != nil:
		f.set("value", one.Untyped.GetValue())
	case one.Histogram != nil:
		f.mean(one.Histogram.GetSampleCount(), one.Histogram.GetSampleSum())
	case one.Summary != nil:
		f.mean(one.Summary.GetSampleCount(), one.Summary.GetSampleSum())
		for _, q := range one.Summary.GetQuantile() {
			switch share := q.GetQuantile(); share {
			case 0:
				f.set("min", q.GetValue())
			case 1:
				f.set("max", q.GetValue())
			default:
				f.set("p"+strconv.FormatFloat(share*100, 'f', -1, 64), q.GetValue())
			}
		}
	}
}

func (f *Figure) mean(count uint64, sum float64) {
	f.Values["count"] = count
	if count > 0 {
		f.set("mean", sum/float64(count))
	}
}

func (f *Figure) set(name string, value float64) {
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		f.Values[name] = value
	}
}
