package link

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/internal/wire/stream"
)

// hazard loses, doubles and delays what comes over a link, by a seed.
type hazard struct {
	mu  sync.Mutex
	rng *rand.Rand
	to  *stream.End
}

func (h *hazard) meet(p *wire.Packet) {
	h.mu.Lock()
	fate, late := h.rng.IntN(100), time.Duration(h.rng.IntN(20))*time.Millisecond
	h.mu.Unlock()
	deliver := func(p *wire.Packet) {
		switch p.Type {
		case message.TypePayload:
			if m, err := stream.ParsePayload(p); err == nil {
				h.to.Payload(m)
			}
		case message.TypeAck:
			if m, err := stream.ParseAck(p); err == nil {
				h.to.Acked(m)
			}
		}
	}
	switch {
	case fate < 5: // lost
	case fate < 10:
		again := *p
		again.Memory = p.Memory.More()
		deliver(p)
		deliver(&again)
	case fate < 25:
		time.AfterFunc(late, func() { deliver(p) })
	default:
		deliver(p)
	}
}

// speaker is one end of a stream: it says what its seed says, and hears the
// other.
type speaker struct {
	end   *stream.End
	ready chan struct{}
	done  chan error
	said  hash.Hash
	heard hash.Hash
}

func newSpeaker(circuit string, terminator bool, send func(p *wire.Packet) bool) *speaker {
	s := &speaker{ready: make(chan struct{}, 1), done: make(chan error, 1), said: sha256.New(), heard: sha256.New()}
	s.end = stream.New(stream.Options{
		Circuit: circuit, Terminator: terminator, Now: time.Now,
		Send: func(p *stream.Payload, _ bool) bool { return send(p.Packet()) },
		Ack:  func(a *stream.Ack) { send(a.Packet()) },
		Ready: func() {
			select {
			case s.ready <- struct{}{}:
			default:
			}
		},
		Done: func(reason error) { s.done <- reason },
	})
	return s
}

// talk says some messages and hears all that come, until both have ended.
func (s *speaker) talk(ctx context.Context, seed uint64) error {
	spoken := make(chan error, 1)
	go func() {
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 60 {
			data := make([]byte, rng.IntN(20_000))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			s.said.Write(data)
			if err := s.end.Write(ctx, stream.Message{Data: data}); err != nil {
				spoken <- err
				return
			}
		}
		spoken <- s.end.CloseWrite()
	}()
	for {
		m, ok := s.end.Next()
		switch {
		case ok && m.Err != nil:
			return m.Err
		case ok && m.End:
			if err := <-spoken; err != nil {
				return err
			}
			select {
			case err := <-s.done:
				return err
			case <-ctx.Done():
				return fmt.Errorf("an end that has said and heard everything is not done: %w", ctx.Err())
			}
		case ok:
			s.heard.Write(m.Data)
			continue
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return fmt.Errorf("nothing comes: %+v: %w", s.end.Stats(), ctx.Err())
		}
	}
}

// TestSeeds has streams go over a real link that loses, doubles and delays, each
// by a seed, and is cut in between: every byte arrives once and in order, and
// both ends come to an end.
func TestSeeds(t *testing.T) {
	n := newNetwork(t)
	a, b := n.node("a", ""), n.node("b", "")
	const seeds = 24
	hazards := map[*node]map[string]*hazard{a: {}, b: {}}
	for _, d := range []*node{a, b} {
		d.listen()
		d.set(func() {
			d.forward = func(_ string, p *wire.Packet) {
				if circuit, ok := stream.CircuitOf(p); ok {
					hazards[d][string(circuit)].meet(p)
				}
			}
		})
	}
	over := func(from, to *node) func(p *wire.Packet) bool {
		return func(p *wire.Packet) bool {
			for _, k := range from.All() {
				if k.Peer() == to.id {
					return k.Offer(p)
				}
			}
			return false
		}
	}
	pairs := make([][2]*speaker, seeds)
	for seed := range pairs {
		circuit := fmt.Sprintf("seed-%d", seed)
		pairs[seed] = [2]*speaker{newSpeaker(circuit, false, over(a, b)), newSpeaker(circuit, true, over(b, a))}
		for i, d := range []*node{a, b} {
			hazards[d][circuit] = &hazard{rng: rand.New(rand.NewPCG(uint64(seed), uint64(i))), to: pairs[seed][i].end}
		}
	}
	a.meets(b)
	b.meets(a)
	first := linked(t, a, b)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for seed, pair := range pairs {
		pair[0].end.Start()
		for i, s := range pair {
			all.Go(func() {
				if err := s.talk(ctx, uint64(2*seed+i)); err != nil {
					t.Errorf("seed %d, end %d: %v", seed, i, err)
				}
			})
		}
	}
	first.close(errUnwanted)
	all.Wait()
	for seed, pair := range pairs {
		for i := range pair {
			if said, heard := pair[i].said.Sum(nil), pair[1-i].heard.Sum(nil); !bytes.Equal(said, heard) {
				t.Errorf("seed %d: end %d said %x, and %x was heard", seed, i, said, heard)
			}
		}
	}
}
