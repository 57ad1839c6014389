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

// Measured is TypeMetrics with all that has a name.
type Measured struct {
	Tags       map[string]string  `pb:"4"`
	Ints       map[string]int64   `pb:"5"`
	Floats     map[string]float64 `pb:"6"`
	Meters     map[string]Meter   `pb:"7"`
	Histograms map[string]Spread  `pb:"8"`
	Timers     map[string]Timer   `pb:"10"`
	Copy       bool               `pb:"12"`
}

// Meter is how often something happened.
type Meter struct {
	Count    int64   `pb:"1"`
	Rate1    float64 `pb:"2"` // a second, over the last minute
	Rate5    float64 `pb:"3"`
	Rate15   float64 `pb:"4"`
	RateMean float64 `pb:"5"`
}

// Spread is how a measure was spread.
type Spread struct {
	Count    int64   `pb:"1"`
	Max      int64   `pb:"2"`
	Mean     float64 `pb:"3"`
	Min      int64   `pb:"4"`
	StdDev   float64 `pb:"5"`
	Variance float64 `pb:"6"`
	P50      float64 `pb:"7"`
	P75      float64 `pb:"8"`
	P95      float64 `pb:"9"`
	P99      float64 `pb:"10"`
	P999     float64 `pb:"11"`
	P9999    float64 `pb:"12"`
}

// Timer is how often something happened, and how long it took.
type Timer struct {
	Count    int64   `pb:"1"`
	Max      int64   `pb:"2"`
	Mean     float64 `pb:"3"`
	Min      int64   `pb:"4"`
	StdDev   float64 `pb:"5"`
	Variance float64 `pb:"6"`
	P50      float64 `pb:"7"`
	P75      float64 `pb:"8"`
	P95      float64 `pb:"9"`
	P99      float64 `pb:"10"`
	P999     float64 `pb:"11"`
	P9999    float64 `pb:"12"`
	Rate1    float64 `pb:"13"`
	Rate5    float64 `pb:"14"`
	Rate15   float64 `pb:"15"`
	RateMean float64 `pb:"16"`
}
