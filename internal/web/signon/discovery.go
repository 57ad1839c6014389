package signon

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// place is what a provider says of itself.
type place struct {
	Issuer      string   `json:"issuer"`
	Authorize   string   `json:"authorization_endpoint"`
	Token       string   `json:"token_endpoint"`
	Challenges  []string `json:"code_challenge_methods_supported"`
	NamesItself bool     `json:"authorization_response_iss_parameter_supported"`
}

// wellKnown is where a provider says so.
const wellKnown = "/.well-known/openid-configuration"

const (
	// keepPlaces is how long what a provider said of itself is believed.
	keepPlaces = 5 * time.Minute
	// maxPlaces bounds how many are remembered.
	maxPlaces = 100
)

// catalogue is what providers said of themselves lately.
type catalogue struct {
	mu     sync.Mutex
	places map[string]known // by address
}

type known struct {
	place
	until time.Time
}

func (c *catalogue) find(at string, now time.Time) (place, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.places[at]
	return k.place, ok && now.Before(k.until)
}

func (c *catalogue) note(at string, p place, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.places == nil || len(c.places) >= maxPlaces {
		c.places = map[string]known{}
	}
	c.places[at] = known{p, until}
}

// discover asks a provider where people log in and where codes are exchanged.
func (d *Desk) discover(ctx context.Context, p Provider) (place, error) {
	if !p.Usable() {
		return place{}, ErrProvider
	}
	base := strings.TrimSuffix(strings.TrimSuffix(p.URL, wellKnown), "/")
	if at, ok := d.known.find(base, d.Now()); ok {
		return at, nil
	}
	data, _, err := d.Get(ctx, base+wellKnown)
	if err != nil {
		return place{}, fmt.Errorf("asking the provider where to log in: %w", err)
	}
	var at place
	if json.Unmarshal(data, &at) != nil || !at.sound(base) {
		return place{}, ErrProvider
	}
	d.known.note(base, at, d.Now().Add(keepPlaces))
	return at, nil
}

// sound reports whether a provider speaks for itself, over TLS, and knows PKCE unless it
// says nothing of it. One that names another issuer than where it was asked could take
// the place of that one.
func (at place) sound(base string) bool {
	return strings.TrimSuffix(at.Issuer, "/") == base && secure(at.Authorize) && secure(at.Token) &&
		(at.Challenges == nil || slices.Contains(at.Challenges, "S256"))
}

// secure reports whether an address is one over TLS, and nothing but an address.
func secure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil && u.Fragment == ""
}
