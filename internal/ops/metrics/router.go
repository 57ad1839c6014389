package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// RouterFigures are those of a router at one moment.
type RouterFigures struct {
	Connected, Ready                                bool
	Controllers, ControllersConnected               int           // that it knows, and that it is connected to
	Remaining                                       time.Duration // of the first of its certificates that ends
	Clients, Terminators, Circuits, Links, Sessions int
	// Entered and Left are bytes that clients and hosts here sent into the
	// network, and got from it.
	Entered, Left uint64
	Lost          uint64 // payloads that found no room on their way
}

// figure is one of them as monitoring sees it.
type figure struct {
	name, help string
	kind       prometheus.ValueType
	value      func(RouterFigures) float64
}

var routerFigures = []figure{
	{"ready", "Whether the router is connected and its certificates are in force.", prometheus.GaugeValue, func(f RouterFigures) float64 { return truth(f.Ready) }},
	{"connected", "Whether the router is connected to a controller.", prometheus.GaugeValue, func(f RouterFigures) float64 { return truth(f.Connected) }},
	{"controllers", "Controllers that the router knows.", prometheus.GaugeValue, func(f RouterFigures) float64 { return float64(f.Controllers) }},
	{"controllers_connected", "Controllers that the router is connected to.", prometheus.GaugeValue, func(f RouterFigures) float64 { return float64(f.ControllersConnected) }},
	{"certificate_remaining_seconds", "Time until the router's certificates run out.", prometheus.GaugeValue, func(f RouterFigures) float64 { return f.Remaining.Seconds() }},
	{"clients", "Clients that are connected.", prometheus.GaugeValue, func(f RouterFigures) float64 { return float64(f.Clients) }},
	{"terminators", "Places where clients host.", prometheus.GaugeValue, func(f RouterFigures) float64 { return float64(f.Terminators) }},
	{"circuits", "Circuits that the router carries.", prometheus.GaugeValue, func(f RouterFigures) float64 { return float64(f.Circuits) }},
	{"links", "Links to other routers.", prometheus.GaugeValue, func(f RouterFigures) float64 { return float64(f.Links) }},
	{"api_sessions", "API sessions that the controller has told of.", prometheus.GaugeValue, func(f RouterFigures) float64 { return float64(f.Sessions) }},
	{"entered_bytes_total", "Bytes that clients and hosts of this router sent into the network.", prometheus.CounterValue, func(f RouterFigures) float64 { return float64(f.Entered) }},
	{"left_bytes_total", "Bytes that clients and hosts of this router got from the network.", prometheus.CounterValue, func(f RouterFigures) float64 { return float64(f.Left) }},
	{"lost_payloads_total", "Payloads that found no room on their way, because somebody reads more slowly than others send. They are sent again.", prometheus.CounterValue, func(f RouterFigures) float64 { return float64(f.Lost) }},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// routerCollector reads the figures of a router once for all of them.
type routerCollector struct {
	read  func() RouterFigures
	descs []*prometheus.Desc
}

func newRouterCollector(read func() RouterFigures) *routerCollector {
	c := &routerCollector{read: read}
	for _, f := range routerFigures {
		c.descs = append(c.descs, prometheus.NewDesc("netkeep_router_"+f.name, f.help, nil, nil))
	}
	return c
}

// Describe is for Prometheus.
func (c *routerCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
}

// Collect is for Prometheus.
func (c *routerCollector) Collect(to chan<- prometheus.Metric) {
	now := c.read()
	for i, f := range routerFigures {
		to <- prometheus.MustNewConstMetric(c.descs[i], f.kind, f.value(now))
	}
}

// WatchRouter adds the figures of a router that is part of the controller. It
// may be called once.
func (m *Metrics) WatchRouter(read func() RouterFigures) {
	m.Registry.MustRegister(newRouterCollector(read))
}

// Router answers with what read tells of a router.
func Router(read func() RouterFigures) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newRouterCollector(read))
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}
