package program_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// records are what a writer has, by path and id, in the form of shown.
type records map[string]M

// change is one write: the request, and the records after it.
type change struct {
	method, path string
	body         M
	after        records
	created      M // the new record, whose id is not known before
}

// writer makes changes one after the other and knows what must be there. Its
// records are its own, so its state is the last acknowledged one, or that
// after the one change in flight.
type writer struct {
	mark    string // what the names of its records begin with
	random  *rand.Rand
	serial  int
	have    records
	pending *change
	failure error // an answer that should not have been

	tally
}

func newWriter(mark string, random *rand.Rand) *writer {
	return &writer{mark: mark, random: random, have: records{}}
}

// most is how many records a writer keeps.
const most = 30

// full reports whether an answer says that there is no space for a write, which leaves
// open what became of it.
func (a answer) full() bool {
	return a.status == http.StatusServiceUnavailable && strings.Contains(fmt.Sprint(a.body), "disk space")
}

// write makes changes until one is not answered.
func (w *writer) write(c *client, acknowledged func()) {
	for w.failure == nil {
		next := w.next()
		w.pending = &next
		a, err := c.do(next.method, next.path, next.body)
		switch {
		case err != nil, a.full():
			return
		case a.status >= 300:
			w.failure = fmt.Errorf("%s %s answers %d: %v", next.method, next.path, a.status, a.body)
			return
		case next.created != nil:
			next.after[next.path+"/"+a.id()] = next.created
		}
		w.have, w.pending = next.after, nil
		w.acknowledged++
		acknowledged()
	}
}

// next chooses a change. Every change gives all members that it writes the
// same number, so that one written in part would show.
func (w *writer) next() change {
	w.serial++
	dice := w.random.IntN(10)
	switch {
	case len(w.have) == 0, len(w.have) < most && dice < 5:
		path := []string{"configs", "identities", "services"}[w.random.IntN(3)]
		body := w.body(path)
		maps.Copy(body, map[string]M{
			"configs":    {"configTypeId": "host.v2", "data": body["data"]},
			"identities": {"type": "Device", "isAdmin": false},
			"services":   {"encryptionRequired": true},
		}[path])
		return change{http.MethodPost, path, body, maps.Clone(w.have), shown(path, body)}
	case dice < 8:
		at := w.pick("")
		path, _, _ := strings.Cut(at, "/")
		body := w.body(path)
		after := maps.Clone(w.have)
		after[at] = shown(path, body)
		return change{http.MethodPatch, at, body, after, nil}
	}
	at := w.pick("")
	return change{http.MethodDelete, at, nil, w.without(at), nil}
}

// body is what a write of this serial number says.
func (w *writer) body(path string) M {
	n := fmt.Sprint(w.serial)
	body := M{"name": w.mark + n, "tags": M{"n": n}}
	switch path {
	case "configs":
		body["data"] = M{"terminators": []any{M{"protocol": "tcp", "address": "host" + n, "port": 1.0}}}
	case "identities":
		body["roleAttributes"], body["appData"], body["externalId"] = []any{n}, M{"n": n}, w.mark+n
	case "services":
		body["roleAttributes"], body["configs"] = []any{n}, []any{}
		if config := w.pick("configs/"); config != "" {
			body["configs"] = []any{strings.TrimPrefix(config, "configs/")}
		}
	}
	return body
}

// pick returns where one of the records is, empty if there is none.
func (w *writer) pick(prefix string) string {
	var all []string
	for at := range w.have {
		if strings.HasPrefix(at, prefix) {
			all = append(all, at)
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return all[w.random.IntN(len(all))]
}

// without returns the records after a delete: services let go of a config.
func (w *writer) without(at string) records {
	after := maps.Clone(w.have)
	delete(after, at)
	if config, ok := strings.CutPrefix(at, "configs/"); ok {
		for other, rec := range after {
			if list, _ := rec["configs"].([]any); slices.Contains(list, any(config)) {
				rec = maps.Clone(rec)
				rec["configs"] = []any{}
				after[other] = rec
			}
		}
	}
	return after
}

// shown is what of a record the writers compare.
func shown(path string, rec M) M {
	some := M{}
	for _, name := range map[string][]string{
		"configs":    {"name", "tags", "data"},
		"identities": {"name", "tags", "roleAttributes", "appData", "externalId"},
		"services":   {"name", "tags", "roleAttributes", "configs"},
	}[path] {
		some[name] = rec[name]
	}
	return some
}

// settle finds out whether the change in flight happened, and says what else
// is not as it must be.
func (w *writer) settle(there records) error {
	if w.failure != nil {
		return w.failure
	}
	before := cmp.Diff(w.have, there)
	if w.pending == nil {
		if before != "" {
			return fmt.Errorf("%s has other records (-acknowledged +there):\n%s", w.mark, before)
		}
		return nil
	}
	w.open++
	next := w.pending
	w.pending = nil
	if next.created != nil {
		for at := range there {
			if _, known := w.have[at]; !known {
				next.after[at] = next.created
			}
		}
	}
	after := cmp.Diff(next.after, there)
	switch {
	case before == "":
	case after == "":
		w.have = next.after
		w.happened++
	default:
		return fmt.Errorf("%s has other records than those acknowledged (-acknowledged +there):\n%s\nand than those after %s %s (-after +there):\n%s",
			w.mark, before, next.method, next.path, after)
	}
	return nil
}
