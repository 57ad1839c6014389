package sdk

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/client/device"
	"netkeep.internal/internal/client/remote"
)

// lookEvery is how often one looks whether there is something new to report of
// the device.
const lookEvery = 15 * time.Second

// query is what a posture check asks for.
type query struct {
	ID        string    `json:"id"`
	Type      string    `json:"queryType"`
	Passing   bool      `json:"isPassing"`
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

// Device is what posture checks are told of the machine: what each function says,
// or what can be seen here where there is none.
type Device struct {
	OS        func() device.System
	Addresses func() []string
	Domain    func() string
	Program   func(path string) device.Program
}

// report is what the controller is told for a check, as it is sent.
type report map[string]any

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
	_, err := r.tell(ctx, r.client.known().asked)
	return err
}

// tell tells what the API session does not know, and reports whether there was
// anything.
func (r *reporter) tell(ctx context.Context, asked questions) (news bool, err error) {
	if len(asked) == 0 {
		return false, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = r.client.opt.Now()
	all, token := r.look(asked), r.client.api.session.Load().Token
	if len(all) == 0 || r.to == token && reflect.DeepEqual(all, r.told) {
		return false, nil
	}
	err = r.client.api.call(ctx, http.MethodPost, "/posture-response-bulk", all, nil)
	if e, refused := errors.AsType[*remote.Error](err); refused && e.Status == http.StatusBadRequest {
		r.client.log.Warn("the controller does not take what is said of this device; services with posture checks cannot be used", "identity", r.client.Name(), "error", plainly(err))
		err = nil
	}
	if err != nil {
		return false, err
	}
	// If the session has become another one meanwhile, that is told the next time.
	r.to, r.told = token, all
	return true, nil
}

// look returns the answers to all questions, in order. What a check asks for
// that nobody can see here is not answered.
func (r *reporter) look(asked questions) (all []report) {
	seen := r.client.opt.Device
	running := r.running(asked.paths())
	for _, id := range slices.Sorted(maps.Keys(asked)) {
		q := asked[id]
		switch {
		case q.Type == "OS":
			system := orElse(seen.OS, device.OS)()
			all = append(all, report{"id": id, "typeId": q.Type, "type": system.Type, "version": system.Version})
		case q.Type == "MAC":
			addresses := orElse(seen.Addresses, device.Addresses)()
			all = append(all, report{"id": id, "typeId": q.Type, "macAddresses": append([]string{}, addresses...)})
		case q.Type == "DOMAIN" && seen.Domain != nil:
			all = append(all, report{"id": id, "typeId": q.Type, "domain": seen.Domain()})
		}
		for _, p := range q.programs() {
			found := running[p.Path]
			all = append(all, report{
				"id": id, "typeId": "PROCESS", "path": p.Path, "isRunning": found.Running, "hash": found.Hash,
				"signerFingerprints": append([]string{}, found.Signers...),
			})
		}
	}
	return all
}

// orElse is the first of two functions that is there.
func orElse[F func() T, T any](one, other F) F {
	if one != nil {
		return one
	}
	return other
}

// running is what there is to say of programs, by their paths.
func (r *reporter) running(paths []string) map[string]device.Program {
	say := r.client.opt.Device.Program
	if say == nil {
		return r.programs.Look(paths)
	}
	all := make(map[string]device.Program, len(paths))
	for _, path := range paths {
		if _, said := all[path]; !said {
			all[path] = say(path)
		}
	}
	return all
}
