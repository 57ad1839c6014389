package authn

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
)

// TestSessionsEndByTime uses sessions all the time, which does not keep them
// beyond the end of what they rest on.
func TestSessionsEndByTime(t *testing.T) {
	const long, short = 5 * time.Hour, 40 * time.Minute
	for name, test := range map[string]struct {
		lifetime time.Duration
		tolerant bool // of certificates that have ended
		byToken  bool
		end      time.Duration // from the start; 0 for none
	}{
		"certificate":                           {end: long},
		"certificate whose end does not matter": {tolerant: true},
		"lifetime before the certificate's":     {lifetime: short, end: short},
		"lifetime after the certificate's":      {lifetime: 2 * long, end: long},
		"lifetime alone":                        {lifetime: long, tolerant: true, end: long},
		"token":                                 {byToken: true, tolerant: true, end: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.Lifetime = test.lifetime
				update(t, w.State, func(tx *state.Tx) error {
					return model.AuthPolicies.Edit(tx, model.DefaultAuthPolicy, func(p *model.AuthPolicy) error {
						p.Primary.Cert.AllowExpiredCerts = test.tolerant
						return nil
					})
				})
				start := time.Now()
				who, err := w.Open(t.Context(), state.Nobody, w.shown(t, test.byToken, start.Add(long)), Request{})
				if err != nil {
					t.Fatal(err)
				}
				stop := run(func(ctx context.Context) { w.Sweep(ctx, 5*time.Second) })
				defer stop()
				time.Sleep(time.Second) // every record has a time of its own, a little after the moment
				for time.Since(start) < long+time.Hour {
					over := test.end != 0 && time.Since(start) >= test.end
					again, err := w.Verify(t.Context(), w.State.Snapshot(), Credentials{Token: who.Token()})
					if (err != nil) != over {
						t.Fatalf("after %s: %v", time.Since(start), err)
					}
					if err == nil && test.end != 0 && again.Expires().After(start.Add(test.end+time.Millisecond)) {
						t.Fatalf("after %s: said to end at %s", time.Since(start), again.Expires().Sub(start))
					}
					time.Sleep(10 * time.Minute)
					synctest.Wait()
				}
				if w.stored(who) == (test.end != 0) {
					t.Errorf("stored after the end: %v", w.stored(who))
				}
			})
		})
	}
}

// shown returns the proof of somebody with a certificate that ends at a moment,
// or a token that does in an hour.
func (w *world) shown(t *testing.T, byToken bool, end time.Time) (proof Proof) {
	t.Helper()
	i := w.add(t, "visitor")
	var err error
	if byToken {
		issuer := newIssuer(t)
		w.trust(t)
		proof, err = issuer.tokens(t).Check(t.Context(), w.State.Snapshot(), issuer.token(t, claims{"sub": i.ID}))
	} else {
		root := issue(t, nil, x509.Certificate{Subject: pkix.Name{CommonName: "theirs"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now(), NotAfter: end.Add(time.Hour)})
		w.register(t, root)
		leaf := issue(t, root, x509.Certificate{Subject: pkix.Name{CommonName: i.ExternalID}, NotBefore: time.Now(), NotAfter: end})
		proof, err = (&Certificates{Bundle: func() []*x509.Certificate { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler)}).Check(w.State.Snapshot(), []*x509.Certificate{leaf.cert})
	}
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

// TestEnforceTriesAgain takes something back while the store fails.
func TestEnforceTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := storetest.NewMemory()
		faults := storetest.NewFaulty(memory.Another())
		here, there := newController(t, faults), newController(t, memory)
		update(t, there.State, func(tx *state.Tx) error { return model.Seed(tx) })
		there.proof = there.vouched(t, there.add(t, "visitor"))
		who := there.open(t)
		for _, job := range []func(context.Context){here.Enforce, func(ctx context.Context) { here.Sweep(ctx, 5*time.Second) }} {
			defer run(job)()
		}
		synctest.Wait()
		faults.FailNext(storetest.Put, errors.New("no"))
		update(t, there.State, func(tx *state.Tx) error {
			return model.Authenticators.Edit(tx, who.Session().AuthenticatorID, func(a *model.Authenticator) error {
				a.SetPassword(a.PasswordHash)
				return nil
			})
		})
		synctest.Wait()
		if !here.stored(who) {
			t.Fatal("the store did not fail")
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if here.stored(who) {
			t.Error("the session is still stored")
		}
	})
}
