package sync

import (
	"netkeep/internal/fabric/control"
	"netkeep/internal/line/message"
	"netkeep/internal/line/wire"
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
		_ = r.Send(s.formOf(r).removed(message.TypeAPISessionsRemoved, gone))
	}
}

// onValidate answers a router that wonders which sessions still are.
func (s *Sync) onValidate(r *control.Router, _ *wire.Frame, m *message.ValidateSessions) {
	snap, form := s.State.Snapshot(), s.formOf(r)
	var gone message.Removed
	for n, named := range m.Sessions {
		if n == maxNamed {
			break
		}
		if _, byID := model.Sessions.Get(snap, named); byID {
			continue
		}
		if _, byToken := s.Permits.Recognise(snap, named); !byToken {
			gone.Tokens, gone.IDs = append(gone.Tokens, named), append(gone.IDs, form.text(named))
		}
	}
	if len(gone.IDs) > 0 {
		_ = r.Send(form.removed(message.TypeSessionsRemoved, gone))
	}
}
