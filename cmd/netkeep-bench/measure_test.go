package main

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// A round that has begun is finished, so that nothing is left behind by one
// that is interrupted.
func TestMeasureFinishesRounds(t *testing.T) {
	s, err := startBare()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	c := newClient(&target{url: "https://" + s.listener.Addr().String(), timeout: time.Minute}, s.roots)
	defer c.close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	get := request{method: http.MethodGet, path: "/"}
	res, err := measure(ctx, []*client{c}, nil, load{name: "two steps", steps: []string{"one", "two"}, round: func(w *worker) {
		w.send(0, get)
		if w.done == 1 {
			cancel()
		}
		w.send(1, get)
	}}, bounds{duration: time.Hour, rounds: 100})
	if err != nil {
		t.Fatal(err)
	}
	if res.Requests != 4 || len(res.Errors) > 0 || res.Steps[0].Requests != 2 || res.Steps[1].Requests != 2 {
		t.Errorf("two rounds of two steps give %s", res)
	}
}
