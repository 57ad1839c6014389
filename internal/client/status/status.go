// Package status is what a tunneler that runs tells of itself on its own machine:
// the report, the errors of late, and the socket over which its owner may ask for
// it. Nothing can be changed through it, and nothing in it is a secret of an
// identity. It must not import anything that a tunneler is made of: who has
// something to tell fills a report.
package status

import (
	"slices"
	"sync/atomic"
	"time"
)

// Report is how a tunneler stands at a moment.
type Report struct {
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Began   time.Time `json:"began"`
	At      time.Time `json:"at"`

	Identities []Identity `json:"identities"`
	// Hosted are services that lead to servers here, Ports local ports that lead to
	// services, and Intercepted services that are reached under addresses of theirs.
	Hosted      []Hosted      `json:"hosted"`
	Ports       []Port        `json:"ports"`
	Intercepted []Intercepted `json:"intercepted"`
	// Overlaps are addresses that several services have, with who gets them.
	Overlaps []Overlap `json:"overlaps"`
	// Device is where intercepted addresses lead to; nil if none are.
	Device *Device `json:"device,omitzero"`

	Connections Traffic `json:"connections"`
	// Errors are the last that were logged, the latest last.
	Errors []Error `json:"errors"`
	// Omitted is how many entries of lists there was no room for.
	Omitted int `json:"omitted,omitzero"`
}

// Identity is one that the tunneler acts for.
type Identity struct {
	Name       string `json:"name"` // empty until it has logged in
	File       string `json:"file"`
	Controller string `json:"controller"`
	// Connected says that the controller answered the last time.
	Connected bool   `json:"connected"`
	Error     string `json:"error,omitzero"`
	// Services is how many it may use.
	Services int      `json:"services"`
	Routers  []Router `json:"routers"`
}

// Router is one that an identity is connected with, or was.
type Router struct {
	Name      string    `json:"name"`
	Address   string    `json:"address"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since"`
	Error     string    `json:"error,omitzero"`
}

// Hosted is a service that leads to a server here.
type Hosted struct {
	Service  string `json:"service"`
	Identity string `json:"identity"`
	// Target is where it leads to; "as dialled" stands for a part that dialers say.
	Target string `json:"target"`
	// Routers is at how many it is hosted.
	Routers int     `json:"routers"`
	Error   string  `json:"error,omitzero"`
	Checks  []Check `json:"checks"`
	Traffic
}

// Check is one of health.
type Check struct {
	Name string `json:"name"`
	// Known is false until there was a first.
	Known bool      `json:"known"`
	Well  bool      `json:"well"`
	Since time.Time `json:"since,omitzero"`
	Error string    `json:"error,omitzero"`
}

// Port is a local one that leads to a service.
type Port struct {
	Service  string `json:"service"`
	Address  string `json:"address"`
	Protocol string `json:"protocol"`
	// Identity is who dials; empty if nobody may.
	Identity string `json:"identity"`
	Traffic
}

// Intercepted is a service that programs here reach under addresses of its own.
type Intercepted struct {
	Service   string   `json:"service"`
	Identity  string   `json:"identity"`
	Addresses []string `json:"addresses"`
	Ports     []string `json:"ports"` // such as 80 or 8000-8999
	Protocols []string `json:"protocols"`
	Error     string   `json:"error,omitzero"`
	Traffic
}

// Overlap is an address that several services have.
type Overlap struct {
	Address string `json:"address"`
	Ports   string `json:"ports"`
	Wins    string `json:"wins"`
	Loses   string `json:"loses"`
}

// Device is where intercepted addresses lead to.
type Device struct {
	Name  string `json:"name"`
	Range string `json:"range"` // that names get addresses of
	// Resolver is how the machine is told of names.
	Resolver string `json:"resolver"`
}

// Error is something that was logged as wrong.
type Error struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Traffic is what went through something. Sent went into the network.
type Traffic struct {
	Open     int64 `json:"open"`
	Total    int64 `json:"total"`
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"`
}

// Tally counts what becomes traffic.
type Tally struct{ open, total, sent, received atomic.Int64 }

// Begin counts a connection, and End that it has ended.
func (t *Tally) Begin() {
	t.open.Add(1)
	t.total.Add(1)
}

// End counts the end of a connection.
func (t *Tally) End() { t.open.Add(-1) }

// Sent and Received count bytes.
func (t *Tally) Sent(n int)     { t.sent.Add(int64(n)) }
func (t *Tally) Received(n int) { t.received.Add(int64(n)) }

// Traffic is what was counted.
func (t *Tally) Traffic() Traffic {
	return Traffic{Open: t.open.Load(), Total: t.total.Load(), Sent: t.sent.Load(), Received: t.received.Load()}
}

const (
	// maxEntries is how long a list of a report may be, and maxInner one in an entry.
	maxEntries = 2000
	maxInner   = 100
)

// trim leaves what there is room for.
func (r *Report) trim() {
	r.Omitted = 0
	for i := range r.Identities {
		r.Identities[i].Routers = cut(r, r.Identities[i].Routers, maxInner)
	}
	for i := range r.Hosted {
		r.Hosted[i].Checks = cut(r, r.Hosted[i].Checks, maxInner)
	}
	for i := range r.Intercepted {
		s := &r.Intercepted[i]
		s.Addresses, s.Ports, s.Protocols = cut(r, s.Addresses, maxInner), cut(r, s.Ports, maxInner), cut(r, s.Protocols, maxInner)
	}
	r.Identities, r.Hosted, r.Ports = cut(r, r.Identities, maxEntries), cut(r, r.Hosted, maxEntries), cut(r, r.Ports, maxEntries)
	r.Intercepted, r.Overlaps = cut(r, r.Intercepted, maxEntries), cut(r, r.Overlaps, maxEntries)
	r.Errors = cut(r, r.Errors, maxErrors)
}

func cut[E any](r *Report, list []E, most int) []E {
	if len(list) > most {
		r.Omitted += len(list) - most
		list = list[:most]
	}
	return slices.Clip(list)
}
