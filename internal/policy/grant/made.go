package grant

import (
	"sync"

	"netkeep.internal/internal/model"
)

// mostMade is how many tokens are kept twice over, somewhat less than a kilobyte
// each.
const mostMade = 1024

// made keeps the tokens that were made last: each is asked for when it is given
// out, at every use of it and when it is over, and is the same each time.
type made struct {
	mu          sync.Mutex
	young, aged map[facts]string
}

// facts is all that a token says of its session, and who signed it. None of it ever
// changes.
type facts struct {
	id, service, apiSession, identity, typ, by string
	created                                    int64
}

func factsOf(s *model.Session, by string) facts {
	return facts{s.ID, s.ServiceID, s.APISessionID, s.IdentityID, s.Type, by, s.CreatedAt.Time().Unix()}
}

// of returns the token that says something, and makes it if it is not at hand.
func (m *made) of(what facts, sign func() string) string {
	if known, ok := m.known(what); ok {
		return known
	}
	text := sign()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.young) >= mostMade || m.young == nil {
		m.young, m.aged = map[facts]string{}, m.young
	}
	m.young[what] = text
	return text
}

func (m *made) known(what facts) (text string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text, ok = m.young[what]; !ok {
		text, ok = m.aged[what]
	}
	return text, ok
}
