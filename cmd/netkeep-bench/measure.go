package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// load is what clients do over and over during a measurement.
type load struct {
	name  string
	steps []string // names of what a round consists of, if it is several requests
	token string   // of the session that requests carry; empty for none
	round func(w *worker)
}

// worker is one client at its rounds.
type worker struct {
	*client
	*rand.Rand
	number  int // among the workers
	done    int // rounds
	tallies []tally
}

// send makes a measured request as a step of the round. ok reports whether it
// succeeded; the data is valid until the next request.
func (w *worker) send(step int, r request) (data []byte, ok bool) {
	start := time.Now()
	status, data, err := w.do(r)
	w.tallies[step].add(time.Since(start), status, err)
	return data, err == nil && status/100 == 2
}

// measure runs rounds on all clients until the bounds are reached or ctx ends.
// A round that has begun is always finished, so that what it made is gone
// again at the end.
func measure(ctx context.Context, clients []*client, server *process, l load, b bounds) (result, error) {
	workers := make([]*worker, len(clients))
	for i, c := range clients {
		c.token = l.token
		workers[i] = &worker{
			client: c, Rand: rand.New(rand.NewPCG(uint64(i), 1)), number: i, tallies: make([]tally, max(len(l.steps), 1)),
		}
	}
	connect(workers)
	ctx, cancel := context.WithTimeout(ctx, b.duration)
	defer cancel()
	used := server.begin()
	start := time.Now()
	var rounds atomic.Int64
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			for ctx.Err() == nil && rounds.Add(1) <= int64(b.rounds) {
				l.round(w)
				w.done++
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	res := sum(l, workers, elapsed)
	var err error
	res.Server, err = used(res.Requests)
	return res, err
}

// connect makes every client's connection, so that no measured request has to.
// A server that cannot be reached shows in the measured requests.
func connect(workers []*worker) {
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() { _, _, _ = w.do(request{method: http.MethodGet, path: managementRoot + "/version"}) })
	}
	wg.Wait()
}

// sum adds up what the workers saw.
func sum(l load, workers []*worker, elapsed time.Duration) result {
	res := result{Scenario: l.name, Clients: len(workers), Seconds: elapsed.Seconds()}
	var all tally
	for step, name := range l.steps {
		var one tally
		for _, w := range workers {
			one.merge(w.tallies[step])
		}
		res.Steps = append(res.Steps, stepResult{name, one.figures(elapsed)})
	}
	for _, w := range workers {
		for _, t := range w.tallies {
			all.merge(t)
		}
	}
	res.figures = all.figures(elapsed)
	return res
}
