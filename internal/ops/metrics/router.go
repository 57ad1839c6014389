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
	Expires                                         time.Time // the first of its certificates
	Clients, Terminators, Circuits, Links, Sessions int
	// Entered and Left are bytes that clients and hosts here sent into the
	// network, and got from it.
	Entered, Left uint64
}

// Router answers with what read tells of a router.
func Router(read func() RouterFigures) http.Handler {
	reg := prometheus.NewRegistry()
	gauge := func(name, help string, value func(RouterFigures) float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(read()) }))
	}
	counter := func(name, help string, value func(RouterFigures) uint64) {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(value(read())) }))
	}
	truth := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	gauge("netkeep_router_ready", "Whether the router is connected and its certificates are in force.", func(f RouterFigures) float64 { return truth(f.Ready) })
	gauge("netkeep_router_connected", "Whether the router is connected to its controller.", func(f RouterFigures) float64 { return truth(f.Connected) })
	gauge("netkeep_router_certificate_expiry_seconds", "When the router's certificates run out, in seconds since 1970.", func(f RouterFigures) float64 { return float64(f.Expires.Unix()) })
	gauge("netkeep_router_clients", "Clients that are connected.", func(f RouterFigures) float64 { return float64(f.Clients) })
	gauge("netkeep_router_terminators", "Places where clients host.", func(f RouterFigures) float64 { return float64(f.Terminators) })
	gauge("netkeep_router_circuits", "Circuits that the router carries.", func(f RouterFigures) float64 { return float64(f.Circuits) })
	gauge("netkeep_router_links", "Links to other routers.", func(f RouterFigures) float64 { return float64(f.Links) })
	gauge("netkeep_router_api_sessions", "API sessions that the controller has told of.", func(f RouterFigures) float64 { return float64(f.Sessions) })
	counter("netkeep_router_entered_bytes_total", "Bytes that clients and hosts of this router sent into the network.", func(f RouterFigures) uint64 { return f.Entered })
	counter("netkeep_router_left_bytes_total", "Bytes that clients and hosts of this router got from the network.", func(f RouterFigures) uint64 { return f.Left })
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}
