package sdk

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// around is which routers the identity could use. All listeners look at it
// together, so that whoever hosts many services asks once for all of them.
type around struct {
	mu   sync.Mutex
	at   time.Time
	text string
}

// look returns a text that is another one when there are other routers, or when
// something else has changed for the identity; empty if nobody knows.
func (a *around) look(ctx context.Context, c *Client) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := c.opt.Now(); a.at.IsZero() || now.Sub(a.at) >= c.opt.Poll || now.Before(a.at) {
		var routers []*routerPlace
		if err := c.api.call(ctx, http.MethodGet, "/current-identity/edge-routers?limit=500", nil, &routers); err != nil {
			return ""
		}
		var lines []string
		for _, p := range routers {
			lines = append(lines, fmt.Sprintf("%q at %q", p.Name, p.address()))
		}
		slices.Sort(lines)
		a.at, a.text = now, strings.Join(lines, ", ")
	}
	return c.known().change + ": " + a.text
}

// same reports whether nothing speaks for asking where else the service could be
// hosted. A router that was lost lately may be back under the same name and address
// before anybody has said that it was gone.
func (l *Listener) same(around string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.client.opt.Now()
	return around != "" && around == l.around && now.Sub(l.aroundAt) < sameTime && now.Sub(l.droppedAt) >= sameTime
}

// keepAround notes for which routers the service is hosted wherever it can be,
// unless something was lost meanwhile.
func (l *Listener) keepAround(around string, drops int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drops == drops {
		l.around, l.aroundAt = around, l.client.opt.Now()
	}
}

func (l *Listener) dropped() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drops
}
