package fabric

import (
	"maps"
	"math"
	"slices"

	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/wire/message"
)

// Bounds of what is told on of what one router has measured at a time.
const (
	maxFigures    = 1000
	maxFigureName = 256
	maxTags       = 16
)

// figures is what a router says that it has measured, with how much more it said.
func figures(m *message.Measured) (some []herald.Figure, left int) {
	tags := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(m.Tags)) {
		if len(tags) < maxTags && len(name)+len(m.Tags[name]) <= maxFigureName {
			tags[name] = m.Tags[name]
		}
	}
	add := func(typ, name string, values map[string]any) {
		if len(some) == maxFigures || len(name) > maxFigureName {
			left++
			return
		}
		for key, value := range values { // which JSON cannot say
			if f, is := value.(float64); is && (math.IsNaN(f) || math.IsInf(f, 0)) {
				delete(values, key)
			}
		}
		some = append(some, herald.Figure{Name: name, Type: typ, Tags: tags, Values: values})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Ints)) {
		add("intValue", name, map[string]any{"value": m.Ints[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Floats)) {
		add("floatValue", name, map[string]any{"value": m.Floats[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Meters)) {
		v := m.Meters[name]
		add("meter", name, rates(map[string]any{"count": v.Count}, v))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Histograms)) {
		add("histogram", name, spread(m.Histograms[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(m.Timers)) {
		v := m.Timers[name]
		all := spread(message.Spread{
			Count: v.Count, Max: v.Max, Mean: v.Mean, Min: v.Min, StdDev: v.StdDev, Variance: v.Variance,
			P50: v.P50, P75: v.P75, P95: v.P95, P99: v.P99, P999: v.P999, P9999: v.P9999,
		})
		add("timer", name, rates(all, message.Meter{Rate1: v.Rate1, Rate5: v.Rate5, Rate15: v.Rate15, RateMean: v.RateMean}))
	}
	return some, left
}

func rates(into map[string]any, v message.Meter) map[string]any {
	into["mean_rate"], into["m1_rate"], into["m5_rate"], into["m15_rate"] = v.RateMean, v.Rate1, v.Rate5, v.Rate15
	return into
}

func spread(v message.Spread) map[string]any {
	return map[string]any{
		"count": v.Count, "min": v.Min, "max": v.Max, "mean": v.Mean, "std_dev": v.StdDev, "variance": v.Variance,
		"p50": v.P50, "p75": v.P75, "p95": v.P95, "p99": v.P99, "p999": v.P999, "p9999": v.P9999,
	}
}
