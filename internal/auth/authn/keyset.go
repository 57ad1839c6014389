package authn

import (
	"context"
	"crypto"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

const (
	// fetchEvery is how often at most the keys of one issuer are fetched,
	// whatever key ids strangers make up.
	fetchEvery = 5 * time.Second
	// keepKeys is how long keys are used without asking again, so that one
	// that its issuer has withdrawn stops to count.
	keepKeys = 15 * time.Minute
	// staleKeys is how long keys are used at most while their issuer cannot be
	// asked. Nobody knows what it has withdrawn by then.
	staleKeys = 24 * time.Hour
	// fetchTime bounds a fetch, besides what get itself does.
	fetchTime = 10 * time.Second
)

// keySets are the keys of issuers, fetched from their endpoints. They are
// fetched again when a key is asked for that they lack and when they are old;
// if that fails the old ones stay for a while.
type keySets struct {
	get func(ctx context.Context, url string) ([]byte, http.Header, error)
	now func() time.Time
	log *slog.Logger

	mu   sync.Mutex
	sets map[string]*keySet // by endpoint
}

// keySet is the keys of one endpoint.
type keySet struct {
	mu      sync.Mutex
	keys    map[string]crypto.PublicKey
	good    time.Time     // when the fetch of keys began
	begun   time.Time     // when the last fetch began
	pending chan struct{} // closed when it ends; nil if none is under way
}

// key returns a signer's key with an id, or nil.
func (s *keySets) key(ctx context.Context, signer *model.ExtJWTSigner, kid string) crypto.PublicKey {
	if signer.CertPEM != "" {
		return staticKey(signer, kid, s.now())
	}
	set := s.set(signer.JWKSEndpoint)
	key, pending := s.look(ctx, set, signer, kid)
	if pending == nil {
		return key
	}
	select {
	case <-pending:
	case <-ctx.Done():
		return nil
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	return set.key(kid, s.now())
}

// key returns one of the keys, unless they are too old to be any good. The
// caller holds mu.
func (set *keySet) key(kid string, now time.Time) crypto.PublicKey {
	if now.Sub(set.good) > staleKeys {
		return nil
	}
	return set.keys[kid]
}

// look returns a key that may be used, or else the fetch to wait for. Nobody
// whose key is known waits because somebody else's is not.
func (s *keySets) look(ctx context.Context, set *keySet, signer *model.ExtJWTSigner, kid string) (crypto.PublicKey, <-chan struct{}) {
	set.mu.Lock()
	defer set.mu.Unlock()
	key, age := set.key(kid, s.now()), s.now().Sub(set.begun)
	old := age >= keepKeys
	if key != nil && !old {
		return key, nil
	}
	if set.pending == nil && (old || age >= fetchEvery) {
		set.begun, set.pending = s.now(), make(chan struct{})
		// The fetch serves everybody, so it does not end with the request
		// that happened to start it.
		go s.fetch(context.WithoutCancel(ctx), set, signer)
	}
	return key, set.pending
}

// fetch replaces the keys of a set with those that its endpoint has now.
func (s *keySets) fetch(ctx context.Context, set *keySet, signer *model.ExtJWTSigner) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	var keys map[string]crypto.PublicKey
	data, _, err := s.get(ctx, signer.JWKSEndpoint)
	if err == nil {
		keys, err = parseKeySet(data)
	}
	if err != nil {
		s.log.Warn("fetching the keys of an issuer failed", "signer", signer.Name, "error", err)
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	if err == nil {
		set.keys, set.good = keys, set.begun
	}
	close(set.pending)
	set.pending = nil
}

// maxSets bounds how many endpoints are remembered.
const maxSets = 1000

func (s *keySets) set(endpoint string) *keySet {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.sets[endpoint]
	if set == nil {
		if len(s.sets) >= maxSets || s.sets == nil {
			s.sets = map[string]*keySet{}
		}
		set = &keySet{}
		s.sets[endpoint] = set
	}
	return set
}

// staticKey returns the key of the signer's certificate, as long as that is
// good.
func staticKey(signer *model.ExtJWTSigner, kid string, now time.Time) crypto.PublicKey {
	if kid != signer.KID {
		return nil
	}
	certs, err := pki.ParseCertificates([]byte(signer.CertPEM), 1)
	if err != nil || now.Before(certs[0].NotBefore) || now.After(certs[0].NotAfter) {
		return nil
	}
	pub, err := usable(certs[0].PublicKey)
	if err != nil {
		return nil
	}
	return pub
}
