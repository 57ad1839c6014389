package sdk

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/spell"
)

// Service is one that the identity may use.
type Service struct {
	ID, Name   string
	Dial, Bind bool // what the identity may do
	Encrypted  bool // from end to end
	// Config is the service's configurations by the name of their type.
	Config map[string]jsontext.Value

	queries []query // of its policies' posture checks
}

// Configured reads a configuration of the service, if there is one.
func (s *Service) Configured(typ string, into any) (bool, error) {
	data, ok := s.Config[typ]
	if !ok {
		return false, nil
	}
	return true, json.Unmarshal(data, into)
}

// catalog is what the identity may use, at one time. It is never changed.
type catalog struct {
	change string // when, as the controller says it
	byName map[string]*Service
	asked  questions
	next   chan struct{} // closed when there is a later one
}

// Services returns what the identity may use, by name, and a channel that is
// closed when that changes.
func (c *Client) Services() ([]*Service, <-chan struct{}) {
	now := c.known()
	all := slices.Collect(maps.Values(now.byName))
	slices.SortFunc(all, func(a, b *Service) int { return strings.Compare(a.Name, b.Name) })
	return all, now.next
}

// Find returns a service that the identity may use, as far as is known; nil if
// there is none.
func (c *Client) Find(service string) *Service { return c.known().byName[service] }

func (c *Client) known() *catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.catalog
}

// catchUp takes up what changed, if anything did.
func (c *Client) catchUp(ctx context.Context) error {
	change, err := c.api.lastChange(ctx)
	if err == nil && change != c.known().change {
		_, err = c.refresh(ctx)
	}
	return err
}

// refresh lists services again.
func (c *Client) refresh(ctx context.Context) (*catalog, error) {
	// Before the list, so that what changes meanwhile is seen the next time.
	change, err := c.api.lastChange(ctx)
	if err != nil {
		return nil, plainly(err)
	}
	list, err := c.api.services(ctx)
	if err != nil {
		return nil, plainly(err)
	}
	fresh := &catalog{change: change, byName: make(map[string]*Service, len(list)), next: make(chan struct{})}
	for _, s := range list {
		fresh.byName[s.Name] = s
		fresh.asked.add(s.queries)
	}
	// Before anybody sees what is new, so that its checks pass.
	if _, err := c.device.tell(ctx, fresh.asked); err != nil {
		return nil, plainly(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.catalog; old != nil {
		close(old.next)
	}
	c.catalog = fresh
	clear(c.sessions) // they may rest on what is gone
	return fresh, nil
}

// service finds one by name that may be used for a purpose.
func (c *Client) service(ctx context.Context, name, purpose string) (*Service, error) {
	s := c.known().byName[name]
	if s == nil || !s.may(purpose) {
		// It may be newer than what is known.
		if err := c.catchUp(ctx); err != nil {
			return nil, plainly(err)
		}
		s = c.known().byName[name]
	}
	switch {
	case s == nil:
		return nil, say(ErrNoService, "the identity %s is offered no service %s%s", c.Name(), name, c.meant(name))
	case !s.may(purpose):
		return nil, say(ErrDenied, "the identity %s may not %s the service %s: a service policy of type %s is missing", c.Name(), verb(purpose), name, purpose)
	}
	return s, nil
}

func (s *Service) may(purpose string) bool {
	return purpose == toDial && s.Dial || purpose == toBind && s.Bind
}

// meant is what a name may stand for.
func (c *Client) meant(name string) string {
	names := slices.Sorted(maps.Keys(c.known().byName))
	if near := spell.Near(name, names); len(near) > 0 {
		return "; is it " + strings.Join(near, " or ") + "?"
	}
	if len(names) == 0 {
		return ", and none else either: a service policy is missing"
	}
	const some = 5
	text := "; it is offered " + strings.Join(names[:min(len(names), some)], ", ")
	if len(names) > some {
		text += " and others"
	}
	return text
}

// sessionKey is what sessions are kept by.
type sessionKey struct{ service, purpose string }

// sessionAge is how long routers of a session are taken for those of now.
const sessionAge = 60e9

// sessionFor returns leave to use a service; fresh says that it must be new,
// and the answer whether it is.
func (c *Client) sessionFor(ctx context.Context, s *Service, purpose string, fresh bool) (*session, bool, error) {
	key := sessionKey{s.ID, purpose}
	c.mu.Lock()
	kept := c.sessions[key]
	c.mu.Unlock()
	if kept != nil && !fresh && c.opt.Now().Sub(kept.made) < sessionAge {
		return kept, false, nil
	}
	got, err := c.api.open(ctx, s, purpose)
	if errors.Is(err, errPosture) {
		// The API session may be a new one, which knew nothing.
		news, _ := c.device.tell(ctx, c.known().asked)
		shown, failed := c.factors.satisfy(ctx, s)
		switch {
		case failed != nil:
			err = failed
		case news || shown:
			got, err = c.api.open(ctx, s, purpose)
		}
	}
	if err != nil {
		return nil, true, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[key] = got
	return got, true, nil
}
