package apisync

import (
	"context"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// maxNamed is how many sessions a router may name in one frame.
const maxNamed = 10_000

// maxGone is how many of them an answer names: it must fit into a frame.
const maxGone = 1000

// onHeartbeat hears whose clients are connected: their sessions are in use. The
// router is told of those that are no more.
func (s *Sync) onHeartbeat(r *control.Router, _ *wire.Frame, m *message.APISessionHeartbeat) {
	s.aside(r, func() {
		form := s.formOf(r)
		missing := s.unknown(s.State.Snapshot(), form, first(m.Tokens))
		if len(missing) == 0 {
			return
		}
		// They may have been opened at another controller a moment ago.
		snap, err := s.current(r)
		if err != nil {
			return
		}
		var gone message.Removed
		for _, token := range s.unknown(snap, form, missing) {
			gone.Tokens, gone.IDs = append(gone.Tokens, token), append(gone.IDs, "")
		}
		if len(gone.Tokens) > 0 {
			_ = r.Send(form.removed(message.TypeAPISessionsRemoved, gone))
		}
	})
}

// unknown keeps the API sessions with tokens, and returns those that there are
// none of. Who was told the id of one in place of its token names it by that.
func (s *Sync) unknown(snap *state.Snapshot, f form, tokens []string) (missing []string) {
	for _, named := range tokens {
		token := named
		if api, ok := model.APISessions.Get(snap, named); ok && f.names && api.Client != "" {
			token = s.Sessions.Token(api)
		}
		if !s.Sessions.Keep(snap, token) {
			missing = append(missing, named)
		}
	}
	return missing
}

// currentWait is how long it may take to find out what there is.
const currentWait = 5 * time.Second

// current is all that there is now. Who cannot find out says of nothing that it is
// gone.
func (s *Sync) current(r *control.Router) (*state.Snapshot, error) {
	ctx, cancel := context.WithTimeout(r.Context(), currentWait)
	defer cancel()
	return s.State.Current(ctx)
}

// onValidate answers a router that wonders which sessions still are.
func (s *Sync) onValidate(r *control.Router, _ *wire.Frame, m *message.ValidateSessions) {
	s.aside(r, func() {
		form := s.formOf(r)
		snap, err := s.current(r)
		if err != nil {
			return
		}
		var gone message.Removed
		tell := func() {
			if len(gone.IDs) > 0 {
				_ = r.Send(form.removed(message.TypeSessionsRemoved, gone))
				gone = message.Removed{}
			}
		}
		defer tell()
		for _, named := range first(m.Sessions) {
			if r.Context().Err() != nil {
				return // nobody hears the answer
			}
			if _, byID := model.Sessions.Get(snap, named); byID {
				continue
			}
			if _, byToken := s.Permits.Recognise(snap, named); !byToken {
				gone.Tokens, gone.IDs = append(gone.Tokens, named), append(gone.IDs, form.text(named))
			}
			if len(gone.IDs) == maxGone {
				tell()
			}
		}
	})
}

// first is as many as a router may name.
func first(named []string) []string { return named[:min(len(named), maxNamed)] }

// maxAsking is how many questions of one router wait for their turn.
const maxAsking = 8

// aside works on a question of a router while it is heard on: to recognise a
// token takes a signature, and a router may name many. It works on one at a time
// for each router; what is too much is left unanswered, and a router asks again
// by itself.
func (s *Sync) aside(r *control.Router, work func()) {
	if !r.Edge {
		return
	}
	s.mu.Lock()
	p := s.of(r)
	much := p.asking == maxAsking
	if !much {
		p.asking++
	}
	s.mu.Unlock()
	answered := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		p.asking--
	}
	if !much && !r.Go(func(context.Context) {
		defer answered()
		p.turn.Lock()
		defer p.turn.Unlock()
		work()
	}) {
		answered()
	}
}
