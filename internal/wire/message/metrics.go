package message

// Metrics is TypeMetrics: what a router has measured lately, as far as anything
// here looks at it.
type Metrics struct {
	Histograms map[string]Histogram `pb:"8"`
	Usage      []Usage              `pb:"11"`
	// Copy is said to all controllers but one, so that nothing is counted twice.
	Copy bool `pb:"12"`
}

// Histogram is how a measure was spread.
type Histogram struct {
	Count int64   `pb:"1"`
	Max   int64   `pb:"2"`
	Mean  float64 `pb:"3"`
	Min   int64   `pb:"4"`
}

// Usage is what circuits carried in a span of time.
type Usage struct {
	Start   int64                   `pb:"1"` // s
	Length  uint64                  `pb:"2"` // s
	Buckets map[string]CircuitUsage `pb:"3"`
}

// CircuitUsage is what one circuit carried, by direction.
type CircuitUsage struct {
	Bytes map[string]uint64 `pb:"1"`
	Tags  map[string]string `pb:"2"`
}
