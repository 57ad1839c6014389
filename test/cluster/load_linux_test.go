package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// load is what people do at all controllers at the same time: they write and read
// registers, and create records under names that others want too.
type load struct {
	*team
	name      string
	registers []*register
	stop      chan struct{}
	done      sync.WaitGroup

	mu       sync.Mutex
	acks     []ack
	names    map[string][]claim
	problems []string
	doubts   [3]string // the last of each controller

	failed  [3]atomic.Int64 // reads that were not answered, by controller
	reads   [3]atomic.Int64
	unknown [3]atomic.Int64 // writes of which it is not known
}

// ack is a write that was acknowledged.
type ack struct {
	at   int
	time time.Time
}

// claim is an attempt to create a record under a name.
type claim struct {
	at, status int
	id         string
}

// pace is how long somebody waits between two requests.
const pace = 15 * time.Millisecond

// begin starts to put load on the controllers, each with some who read and write.
func (c *team) begin(t *testing.T, name string) *load {
	t.Helper()
	l := &load{team: c, name: name, stop: make(chan struct{}), names: map[string][]claim{}}
	for i := range 8 {
		r := &register{}
		c.eventually(t, "a register", func() bool {
			id, status := c.nodes[0].create(fmt.Sprintf("%s-register-%d", name, i))
			if r.id = id; status == http.StatusBadRequest {
				t.Fatal("a register cannot be made")
			}
			return status == http.StatusCreated
		})
		l.registers = append(l.registers, r)
	}
	for _, n := range c.nodes {
		for _, r := range l.registers {
			c.eventually(t, "the registers at every controller", func() bool { _, status := n.read(r.id); return status == http.StatusOK })
		}
		for worker := range 2 {
			l.done.Go(func() { l.work(n, rand.New(rand.NewPCG(uint64(n.n), uint64(worker)))) })
		}
	}
	return l
}

// create makes a record under a name.
func (n *node) create(name string) (id string, status int) {
	id, status, _ = n.creating(name)
	return id, status
}

func (n *node) creating(name string) (id string, status int, text string) {
	var made struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	status, text = n.hear(http.MethodPost, "services", M{"name": name, "encryptionRequired": true, "tags": M{"v": "0"}}, &made)
	return made.Data.ID, status, text
}

// read reads a register.
func (n *node) read(id string) (value byte, status int) {
	var got struct {
		Data struct {
			Tags struct {
				V byte `json:"v,string"`
			} `json:"tags"`
		} `json:"data"`
	}
	status = n.ask(http.MethodGet, "services/"+id, nil, &got)
	return got.Data.Tags.V, status
}

// work does one thing after the other at a controller.
func (l *load) work(n *node, random *rand.Rand) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for serial := 0; ; serial++ {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		r := l.registers[random.IntN(len(l.registers))]
		switch dice := random.IntN(10); {
		case dice < 4:
			l.write(n, r)
		case dice < 8:
			l.read(n, r)
		case dice < 9: // a name that everybody wants at about the same time
			l.create(n, fmt.Sprintf("%s-wanted-%d", l.name, time.Now().UnixMilli()/100))
		default:
			l.create(n, fmt.Sprintf("%s-own-%d-%d-%d", l.name, n.n, serial, random.IntN(1_000_000_000)))
		}
	}
}

func (l *load) write(n *node, r *register) {
	value, ok := r.next()
	if !ok {
		l.read(n, r)
		return
	}
	e := event{at: n.n, value: value, write: true, call: time.Now()}
	status, text := n.hear(http.MethodPatch, "services/"+r.id, M{"tags": M{"v": fmt.Sprint(value)}}, nil)
	e.back = time.Now()
	switch status {
	case http.StatusOK:
		l.acknowledged(n)
	case 0, http.StatusServiceUnavailable:
		e.unknown = true
		l.doubt(n, text)
	default:
		l.problem("a write at controller %d answers %d", n.n, status)
		return
	}
	r.add(e)
}

func (l *load) read(n *node, r *register) {
	e := event{at: n.n, call: time.Now()}
	var status int
	e.value, status = n.read(r.id)
	e.back = time.Now()
	l.reads[n.n].Add(1)
	switch status {
	case http.StatusOK:
		r.add(e)
	case 0, http.StatusServiceUnavailable:
		l.failed[n.n].Add(1)
	default:
		l.problem("a read at controller %d answers %d", n.n, status)
	}
}

func (l *load) create(n *node, name string) {
	id, status, text := n.creating(name)
	if status == http.StatusCreated {
		l.acknowledged(n)
	}
	if status == 0 || status == http.StatusServiceUnavailable {
		l.doubt(n, text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names[name] = append(l.names[name], claim{n.n, status, id})
}

func (l *load) acknowledged(n *node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks = append(l.acks, ack{n.n, time.Now()})
}

// doubt takes note of a write of which it is not known whether it happened.
func (l *load) doubt(n *node, why string) {
	l.unknown[n.n].Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubts[n.n] = why
}

func (l *load) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, fmt.Sprintf(format, args...))
}

// await waits until so many more writes were acknowledged by each of the nodes.
func (l *load) await(t *testing.T, more int, by ...*node) {
	t.Helper()
	count := func(n *node) (c int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, a := range l.acks {
			if a.at == n.n {
				c++
			}
		}
		return c
	}
	for _, n := range by {
		had := count(n)
		l.eventually(t, fmt.Sprintf("%d more writes at controller %d", more, n.n), func() bool { return count(n) >= had+more })
	}
}

// gap is the longest time without a write that was acknowledged, from a moment on.
func (l *load) gap(from time.Time) (longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.acks, func(a, b ack) int { return a.time.Compare(b.time) })
	for _, a := range l.acks {
		if a.time.After(from) {
			longest = max(longest, a.time.Sub(from))
			from = a.time
		}
	}
	return longest
}

// end stops the load and checks all that was said.
func (l *load) end(t *testing.T, healthy ...*node) {
	t.Helper()
	close(l.stop)
	l.done.Wait()
	for _, n := range l.nodes {
		n.serves(t)
	}
	for _, n := range healthy {
		if failed := l.failed[n.n].Load(); failed > 0 {
			t.Errorf("%d of %d reads were not answered by controller %d, which was well", failed, l.reads[n.n].Load(), n.n)
		}
	}
	for _, p := range l.problems {
		t.Error(p)
	}
	for _, r := range l.registers {
		l.agree(t, r)
		r.check(t, grace+time.Second)
	}
	l.checkNames(t)
}

// agree waits until all controllers show the same of a register, which is read
// once more at each.
func (l *load) agree(t *testing.T, r *register) {
	t.Helper()
	l.eventually(t, "one value at all controllers", func() bool {
		var values []byte
		for _, n := range l.nodes {
			e := event{at: n.n, call: time.Now()}
			value, status := n.read(r.id)
			if status != http.StatusOK {
				return false
			}
			e.value, e.back = value, time.Now()
			r.add(e)
			values = append(values, value)
		}
		return values[0] == values[1] && values[1] == values[2]
	})
}

// checkNames looks whether who was told that a record was created finds it, and
// nobody else under its name.
func (l *load) checkNames(t *testing.T) {
	t.Helper()
	var there map[string][]string // ids by name
	l.eventually(t, "the same records at all controllers", func() bool {
		there = l.nodes[0].list(t, l.name+"-")
		return reflect.DeepEqual(there, l.nodes[1].list(t, l.name+"-")) && reflect.DeepEqual(there, l.nodes[2].list(t, l.name+"-"))
	})
	for name, ids := range there {
		if len(ids) > 1 {
			t.Errorf("%s is there %d times", name, len(ids))
		}
	}
	for name, claims := range l.names {
		var won []claim
		open := false
		for _, c := range claims {
			switch c.status {
			case http.StatusCreated:
				won = append(won, c)
			case 0, http.StatusServiceUnavailable:
				open = true
			case http.StatusBadRequest:
			default:
				t.Errorf("creating %s at controller %d answers %d", name, c.at, c.status)
			}
		}
		ids := there[name]
		switch {
		case len(won) > 1:
			t.Errorf("%s was created twice: %+v", name, won)
		case len(won) == 1 && !slices.Equal(ids, []string{won[0].id}):
			t.Errorf("%s was created as %s and is %v", name, won[0].id, ids)
		case len(won) == 0 && !open:
			t.Errorf("%s was refused to everybody: %+v, it is %v", name, claims, ids)
		}
	}
}

// list is the ids of all records whose name begins with a text, by name.
func (n *node) list(t *testing.T, prefix string) map[string][]string {
	t.Helper()
	var got struct {
		Data []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"data"`
	}
	path := "services?limit=-1&filter=" + url.QueryEscape(fmt.Sprintf("name contains %q", prefix))
	n.eventually(t, "a list", func() bool { return n.ask(http.MethodGet, path, nil, &got) == http.StatusOK })
	all := map[string][]string{}
	for _, rec := range got.Data {
		if strings.HasPrefix(rec.Name, prefix) {
			all[rec.Name] = append(all[rec.Name], rec.ID)
		}
	}
	return all
}
