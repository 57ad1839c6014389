package client

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"netkeep/internal/tool/remote"
	"netkeep/internal/transit/device"
)

// lookEvery is how often one looks whether there is something new to report of
// the device.
const lookEvery = 15 * time.Second

// query is what a posture check asks for.
type query struct {
	ID        string    `json:"id"`
	Type      string    `json:"queryType"`
	Process   program   `json:"process"`
	Processes []program `json:"processes"`
}

type program struct {
	Path string `json:"path"`
}

// questions are what the checks of all services ask for: each check once.
type questions map[string]query

func (q *questions) add(queries []query) {
	for _, one := range queries {
		if *q == nil {
			*q = questions{}
		}
		(*q)[one.ID] = one
	}
}

// paths are those of the programs that are asked for.
func (q questions) paths() (all []string) {
	for _, one := range q {
		for _, p := range one.programs() {
			all = append(all, p.Path)
		}
	}
	return all
}

// programs are those that a check asks for.
func (q *query) programs() []program {
	switch q.Type {
	case "PROCESS":
		return []program{q.Process}
	case "PROCESS_MULTI":
		return q.Processes
	}
	return nil
}

// report is what the controller is told for a check.
type report struct {
	ID   string `json:"id"`
	Type string `json:"typeId"`

	System  string `json:"type,omitempty"`
	Version string `json:"version,omitempty"`

	Addresses []string `json:"macAddresses,omitempty"`

	Path    string `json:"path,omitempty"`
	Running bool   `json:"isRunning"`
	Hash    string `json:"hash,omitempty"`
}

// reporter tells the controller of the device what checks ask for, when that
// changes.
type reporter struct {
	client   *Client
	programs device.Programs

	mu     sync.Mutex
	looked time.Time
	to     string // the token of the API session that was told
	told   []report
}

// tend tells what is new, if it is time to look.
func (r *reporter) tend(ctx context.Context) error {
	r.mu.Lock()
	since := r.client.opt.Now().Sub(r.looked)
	late := r.to != r.client.api.session.Load().Token || since < 0 || since >= min(lookEvery, 3*r.client.opt.Poll)
	r.mu.Unlock()
	if !late {
		return nil
	}
	return r.tell(ctx, r.client.known().asked)
}

// tell tells what the API session does not know.
func (r *reporter) tell(ctx context.Context, asked questions) error {
	if len(asked) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = r.client.opt.Now()
	all := r.look(asked)
	if token := r.client.api.session.Load().Token; len(all) == 0 || r.to == token && reflect.DeepEqual(all, r.told) {
		return nil
	}
	err := r.client.api.call(ctx, http.MethodPost, "/posture-response-bulk", all, nil)
	if e, refused := errors.AsType[*remote.Error](err); refused && e.Status == http.StatusBadRequest {
		r.client.log.Warn("the controller does not take what is said of this device; services with posture checks cannot be used", "identity", r.client.Name(), "error", plainly(err))
		err = nil
	}
	if err == nil {
		// The session may be a new one by now, which was told all the same.
		r.to, r.told = r.client.api.session.Load().Token, all
	}
	return err
}

// look returns the answers to all questions, in order. What a check asks for
// that nobody can see here is not answered.
func (r *reporter) look(asked questions) (all []report) {
	running := r.programs.Look(asked.paths())
	for _, id := range slices.Sorted(maps.Keys(asked)) {
		q := asked[id]
		switch q.Type {
		case "OS":
			system := device.OS()
			all = append(all, report{ID: id, Type: q.Type, System: system.Type, Version: system.Version})
		case "MAC":
			all = append(all, report{ID: id, Type: q.Type, Addresses: device.Addresses()})
		}
		for _, p := range q.programs() {
			all = append(all, report{ID: id, Type: "PROCESS", Path: p.Path, Running: running[p.Path].Running, Hash: running[p.Path].Hash})
		}
	}
	return all
}
