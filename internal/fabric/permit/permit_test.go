package permit

import (
	"context"
	"errors"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// register knows one session, from a moment on.
type register struct {
	Register
	known bool
}

func (*register) Blind() bool { return false }

func (*register) Timely(snap *state.Snapshot) *state.Snapshot { return snap }

func (r *register) Recognise(*state.Snapshot, string) (*model.Session, bool) {
	return &model.Session{Type: model.Bind}, r.known
}

// TestCertain asks for a session that was made elsewhere a moment ago: nobody says
// that it is not there before a look that is certain to be current.
func TestCertain(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	failed := errors.New("the store is away")
	for name, test := range map[string]struct {
		known, later bool
		look         error
		alone        bool
		code         message.ErrorCode
		looks        int
	}{
		"known":                  {known: true, code: message.CodeWrongSessionType},
		"made a moment ago":      {later: true, code: message.CodeWrongSessionType, looks: 1},
		"made up":                {code: message.CodeInvalidSession, looks: 1},
		"nobody can tell":        {later: true, look: failed, code: message.CodeInternal, looks: 1},
		"no other controller is": {alone: true, code: message.CodeInvalidSession},
	} {
		t.Run(name, func(t *testing.T) {
			sessions, looks := &register{known: test.known}, 0
			look := func(context.Context) (*state.Snapshot, error) {
				looks++
				sessions.known = test.later
				return st.Snapshot(), test.look
			}
			if test.alone {
				look = nil
			}
			_, err := Certain(t.Context(), st, look, sessions, Request{Type: model.Dial})
			if refused, ok := AsRefusal(err); !ok || refused.Code != test.code || looks != test.looks {
				t.Errorf("after %d looks: %v", looks, err)
			}
		})
	}
}
