package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/metrics"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/web/api"
)

// discard is an answer that nobody reads.
type discard struct {
	header http.Header
	status int
	bytes  int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }

// fullNetwork is the handler of a controller with 10,000 services, of which an
// identity may use some, and that identity's token.
func fullNetwork(b *testing.B, visible int) (http.Handler, string) {
	b.Helper()
	memory := storetest.NewMemory()
	s := &Server{figures: metrics.New(time.Now)}
	log := slog.New(slog.DiscardHandler)
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	st, err := state.Open(b.Context(), memory, model.All, state.Options{Stored: s.stored})
	must(err)
	tokens, err := grant.NewTokens([]byte("sessions"))
	must(err)
	sessions := &authn.APISessions{State: st, Keys: func() [][]byte { return [][]byte{[]byte("API sessions")} }, Timeout: time.Hour, Now: time.Now, Log: log}
	grants := newGrants(st, sessions, tokens, log)
	b.Cleanup(st.Close)
	hasher := authn.NewHasher()
	hash, err := hasher.Hash(b.Context(), authn.Claim{}, "secret")
	must(err)
	must(st.Update(b.Context(), state.Program("test"), func(tx *state.Tx) error { return model.Seed(tx) }))
	for from := 0; from < 10_000; from += 500 {
		must(st.Update(b.Context(), state.Program("test"), func(tx *state.Tx) error {
			for i := from; i < from+500; i++ {
				attribute := "hidden"
				if i < visible {
					attribute = "seen"
				}
				err := model.Services.Create(tx, &model.Service{
					Name: fmt.Sprintf("service-%05d", i), EncryptionRequired: true,
					RoleAttributes: []string{attribute, fmt.Sprintf("group-%d", i%50)},
				})
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
	must(st.Update(b.Context(), state.Program("test"), func(tx *state.Tx) error {
		i := &model.Identity{
			Meta: kind.Meta{ID: "someone"}, Name: "someone", Type: "User",
		}
		if err := model.Identities.Create(tx, i); err != nil {
			return err
		}
		err := model.Authenticators.Create(tx, model.NewPassword(i.ID, "someone", hash))
		if err != nil {
			return err
		}
		for _, typ := range []string{model.Dial, model.Bind} {
			err := model.ServicePolicies.Create(tx, &model.ServicePolicy{
				Name: typ, Type: typ, Semantic: model.AnyOf, IdentityRoles: []string{"@someone"}, ServiceRoles: []string{"#seen"},
			})
			if err != nil {
				return err
			}
		}
		return nil
	}))
	passwords := authn.NewPasswords(hasher, sessions, time.Now, 0)
	proof, err := passwords.Check(b.Context(), state.Nobody, st.Snapshot(), authn.Login{Username: "someone", Password: "secret"})
	must(err)
	who, err := sessions.Open(b.Context(), state.Nobody, proof, authn.Request{ConfigTypes: []string{"all"}})
	must(err)
	s.cfg, s.state, s.log = config.Default(), st, log
	h, err := s.newAPIs(nil, &api.Service{
		Sessions: sessions, Passwords: passwords, Grants: grants, Address: "127.0.0.1:1280", Started: time.Now(),
	})
	must(err)
	return h, who.Token()
}

// BenchmarkClient measures what clients ask for most, without the network.
func BenchmarkClient(b *testing.B) {
	for _, test := range []struct {
		name, path string
		visible    int
	}{
		{"services/10 of 10", "services", 10},
		{"services/500 of 1000", "services?limit=500", 1000},
		{"updates", "current-api-session/service-updates", 10},
	} {
		b.Run(test.name, func(b *testing.B) {
			h, token := fullNetwork(b, test.visible)
			req := httptest.NewRequest(http.MethodGet, "/edge/client/v1/"+test.path, nil)
			req.Header.Set("zt-session", token)
			answer := &discard{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(answer.header)
				answer.bytes = 0
				h.ServeHTTP(answer, req)
			}
			if answer.status != http.StatusOK {
				b.Fatalf("status %d", answer.status)
			}
			b.ReportMetric(float64(answer.bytes), "B/answer")
		})
	}
}
