package sync

import (
	"maps"

	"netkeep/internal/data/state"
	"netkeep/internal/fabric/control"
	"netkeep/internal/fabric/message"
	"netkeep/internal/fabric/wire"
	"netkeep/internal/model"
)

// maxNamed is how many sessions a router may name in one frame.
const maxNamed = 10_000

// onHeartbeat hears whose clients are connected: their sessions are in use. The
// router is told of those that are no more.
func (s *Sync) onHeartbeat(r *control.Router, _ *wire.Frame, m *message.APISessionHeartbeat) {
	snap := s.State.Snapshot()
	var gone message.Removed
	for n, token := range m.Tokens {
		if n == maxNamed {
			break
		}
		if !s.Sessions.Keep(snap, token) {
			gone.Tokens, gone.IDs = append(gone.Tokens, token), append(gone.IDs, "")
		}
	}
	if len(gone.Tokens) > 0 {
		_ = r.Send(control.Message(message.TypeAPISessionsRemoved, &gone))
	}
}

// onValidate answers a router that wonders which sessions still are.
func (s *Sync) onValidate(r *control.Router, _ *wire.Frame, m *message.ValidateSessions) {
	snap := s.State.Snapshot()
	var gone message.Removed
	for n, named := range m.Sessions {
		if n == maxNamed {
			break
		}
		if _, byID := model.Sessions.Get(snap, named); byID {
			continue
		}
		if _, byToken := s.Permits.Recognise(snap, named); !byToken {
			gone.Tokens, gone.IDs = append(gone.Tokens, named), append(gone.IDs, named)
		}
	}
	if len(gone.IDs) > 0 {
		_ = r.Send(control.Message(message.TypeSessionsRemoved, &gone))
	}
}

// onSubscribe tells a router of the second generation the keys that it checks
// tokens and certificates with, now and whenever they change. It needs nothing
// else: sessions come to it as to others.
func (s *Sync) onSubscribe(r *control.Router, _ *wire.Frame, m *message.SubscribeToDataModel) {
	if m.Renew && m.Index > 0 {
		return
	}
	s.mu.Lock()
	s.keyed[r] = m.Subscription
	s.mu.Unlock()
	s.sendKeys(r, m.Subscription, s.State.Snapshot())
}

// tellKeys tells all who want to know that the keys have changed. They are few,
// and so are the changes: everything is said again.
func (s *Sync) tellKeys(snap *state.Snapshot) {
	s.mu.Lock()
	keyed := maps.Clone(s.keyed)
	s.mu.Unlock()
	for r, subscription := range keyed {
		s.sendKeys(r, subscription, snap)
	}
}

func (s *Sync) sendKeys(r *control.Router, subscription string, snap *state.Snapshot) {
	all := &message.DataState{Index: uint64(snap.Rev), Timeline: s.Timeline}
	for _, key := range s.Keys(snap) {
		all.Events = append(all.Events, message.DataEvent{PublicKey: &key})
	}
	f := control.Message(message.TypeDataState, all)
	f.Headers = wire.Headers{}
	if subscription != "" {
		f.Headers.SetText(message.HeaderSubscription, subscription)
	}
	_ = r.Send(f)
}
