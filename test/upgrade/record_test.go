// Package upgrade_test opens what older versions stored, and what newer ones
// did.
package upgrade_test

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/test/upgrade/fixture"
)

// open returns what a fixture stored, record by record, and as memory has it
// when it has the format of this version.
func open(t *testing.T, name string) (map[string][]byte, *state.Snapshot) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	fixture.Restore(t, name, data)
	st, err := etcdstore.Open(t.Context(), etcdstore.Options{Dir: filepath.Join(data, "store")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	stored := map[string][]byte{}
	if _, err := st.Load(t.Context(), func(r store.Record) error { stored[r.Key] = r.Value; return nil }); err != nil {
		t.Fatal(err)
	}
	keys, err := pki.Open(filepath.Join(data, "pki"), pki.Options{Now: time.Now, Algorithm: "P-256"})
	if err != nil {
		t.Fatal(err)
	}
	sealer := keys.Sealer()
	m := format.Migration{
		Store: st, Steps: format.Steps(sealer.Seal), Before: func(context.Context) error { return nil }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
	if err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	memory, err := state.Open(t.Context(), st, model.All, state.Options{
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})), Seal: sealer,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	if log.Len() > 0 {
		t.Errorf("opening it was complained of: %s", log.String())
	}
	return stored, memory.Snapshot()
}

// younger are kinds that came after the fixture was made.
var younger = map[string]bool{
	"access-request": true, "admin-role": true, "alert-receiver": true, "alert-state": true, "assertion": true, "controller": true, "controller-name": true, "device": true, "grant": true, "receipt": true, "role-binding": true, "token": true, "token-use": true,
	"audit-entry": true, "audit-block": true, "audit-chain": true, "audit-outlet": true,
}

// moved are members that are in records of another kind since, under the same id.
var moved = map[string]map[string]*kind.Def{
	"identity": {"envInfo": model.ClientInfos.Def, "sdkInfo": model.ClientInfos.Def},
}

// tidied are members that were stored in another form than they have today.
var tidied = map[string]any{"macAddresses": []any{"001a2b3c4d5e", "aabbccddeeff"}}

// TestEveryRecord reads every record that was stored and finds every member of
// it where it was.
func TestEveryRecord(t *testing.T) {
	stored, snap := open(t, fixture.First)
	for _, d := range model.All.Defs {
		if (snap.Len(d) == 0) != (younger[d.Name] || d.Lane == kind.Volatile) {
			t.Errorf("there are %d of %s", snap.Len(d), d.Name)
		}
		for rec := range snap.All(d) {
			key := d.Name + "/" + rec.Base().ID
			if unknown := rec.Base().Unknown; unknown != nil {
				t.Errorf("%s: nobody knows %s any more", key, *unknown)
			}
			value, err := d.Encode(rec)
			if err != nil {
				t.Fatal(err)
			}
			var was, is map[string]any
			if stored[key] == nil && d == model.ClientInfos.Def {
				continue // it was in the identity
			}
			if err := json.Unmarshal(stored[key], &was); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(value, &is); err != nil {
				t.Fatal(err)
			}
			for name, v := range was {
				if now, ok := tidied[name]; ok {
					v = now
				}
				if d := cmp.Diff(filled(v), filled(memberNow(t, snap, d, rec.Base().ID, name, is))); d != "" {
					t.Errorf("%s: %s was read as something else:\n%s", key, name, d)
				}
			}
			delete(stored, key)
		}
	}
	for key := range stored {
		t.Errorf("%s was not read", key)
	}
}

// memberNow returns a member of a record that was stored under this name and may
// be in another record now.
func memberNow(t *testing.T, snap *state.Snapshot, d *kind.Def, id, name string, is map[string]any) any {
	t.Helper()
	to := moved[d.Name][name]
	if to == nil {
		return is[name]
	}
	rec, ok := snap.Lookup(to, id)
	if !ok {
		return nil
	}
	value, err := to.Encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	var other map[string]any
	if err := json.Unmarshal(value, &other); err != nil {
		t.Fatal(err)
	}
	return other[name]
}

// filled returns a value without lists and objects that are empty: those are
// stored or left out, which is the same.
func filled(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = filled(item)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, member := range v {
			if member = filled(member); member != nil {
				out[name] = member
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return v
}

func TestCounts(t *testing.T) {
	_, snap := open(t, fixture.First)
	got := map[string]int{}
	for _, d := range model.All.Defs {
		if !younger[d.Name] && d.Lane != kind.Volatile {
			got[d.Name] = snap.Len(d)
		}
	}
	want := map[string]int{
		"api-session": 4, "api-session-certificate": 1, "auth-policy": 3, "authenticator": 4, "ca": 2, "client-info": 2, "config": 3, "config-type": 6,
		"edge-router": 2, "edge-router-policy": 2, "enrollment": 5, "ext-jwt-signer": 2, "identity": 10, "identity-type": 4, "mfa": 2,
		"posture-check": 6, "posture-check-type": 6, "router": 3, "service": 2, "service-config": 1, "service-edge-router-policy": 1,
		"service-policy": 3, "session": 2, "terminator": 2,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// named returns the record of a kind that has a name.
func named[T any](t *testing.T, snap *state.Snapshot, k *kind.Kind[T], name string) *T {
	t.Helper()
	rec, ok := k.Find(snap, "name", name)
	if !ok {
		t.Fatalf("there is no %s %q", k.Name, name)
	}
	return rec
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s differs:\n%s", what, d)
	}
}

// TestContents looks at single records.
func TestContents(t *testing.T) {
	_, snap := open(t, fixture.First)
	web := named(t, snap, model.Services, "web")
	person := named(t, snap, model.Identities, "person")
	same(t, "person", person, &model.Identity{
		Meta: kind.Meta{
			ID: person.ID, CreatedAt: kind.MomentOf(moment(50, 111)), UpdatedAt: kind.MomentOf(moment(50, 427)), Tags: kind.Tags{"desk": "4b", "remote": true},
		},
		Name: "person", Type: "User", AuthPolicyID: named(t, snap, model.AuthPolicies, "lenient").ID, ExternalID: "person@example.org",
		RoleAttributes: []string{"eu", "staff"},
		SeldomIdentity: &model.SeldomIdentity{
			AppData:            []byte(`{"nested":{"list":[1,"two",null]}}`),
			DefaultHostingCost: 77, DefaultHostingPrecedence: "required",
			ServiceHostingCosts: map[string]int{web.ID: 12}, ServiceHostingPrecedences: map[string]string{web.ID: "failed"},
		},
	})
	info, _ := model.ClientInfos.Get(snap, person.ID)
	same(t, "what person's client said", *info, model.ClientInfo{
		Meta: kind.Meta{ID: person.ID, CreatedAt: person.CreatedAt, UpdatedAt: person.UpdatedAt}, IdentityID: person.ID,
		EnvInfo: model.EnvInfo{Arch: "amd64", Domain: "example.org", Hostname: "desk", OS: "linux", OSRelease: "6.1", OSVersion: "6.1.0"},
		SDKInfo: model.SDKInfo{AppID: "desk", AppVersion: "3", Branch: "main", Revision: "abc", Type: "sdk", Version: "1.0.0"},
	})
	robot := named(t, snap, model.Identities, "robot")
	if robot.DisabledAt == nil || robot.DisabledUntil != nil || !robot.Disabled(time.Now()) {
		t.Errorf("the robot is disabled at %v until %v", robot.DisabledAt, robot.DisabledUntil)
	}
	same(t, "web's strategy, attributes and configs", []any{web.TerminatorStrategy, web.RoleAttributes, len(web.Configs), web.EncryptionRequired},
		[]any{"smartrouting", []string{"eu", "public"}, 2, true})
	same(t, "a config", string(named(t, snap, model.Configs, "label").Data), `{"label":"Zürich ☂ <&>","size":7}`)
	strict := named(t, snap, model.AuthPolicies, "strict")
	same(t, "the strict policy", []any{strict.Primary.UPDB.MinPasswordLength, strict.Primary.UPDB.MaxAttempts, strict.Primary.Cert.Allowed, strict.Secondary.RequireTOTP},
		[]any{12, 0, false, true})
	same(t, "the second policy's signer", strict.Secondary.RequireExtJWTSigner, named(t, snap, model.ExtJWTSigners, "by endpoint").ID)
	partner := named(t, snap, model.CAs, "partner")
	same(t, "the CA", []any{partner.IsVerified, partner.IdentityNameFormat, partner.ExternalIDClaim.MatcherCriteria},
		[]any{true, "[caName]/[commonName]", "@example.org"})
}

// TestCredentials looks at what lets people in.
func TestCredentials(t *testing.T) {
	_, snap := open(t, fixture.First)
	k := fixture.Read(t, fixture.First)
	web, own := named(t, snap, model.Services, "web"), named(t, snap, model.ConfigTypes, "own.v1")
	person, partner := named(t, snap, model.Identities, "person"), named(t, snap, model.CAs, "partner")
	factor, ok := model.MFAOf(snap, person.ID)
	if !ok || !factor.IsVerified || factor.Secret != k.TOTPSecret || !cmp.Equal(factor.RecoveryCodes, k.RecoveryCodes) || factor.LastStep == 0 {
		t.Errorf("the second factor is not what it was: %v", ok)
	}
	if pending, ok := model.MFAOf(snap, named(t, snap, model.Identities, "clerk").ID); !ok || pending.IsVerified {
		t.Errorf("the factor of the clerk is verified: %v", ok)
	}
	invited := named(t, snap, model.Identities, "invited by CA")
	enrollment, ok := model.Enrollments.Find(snap, "identityId", invited.ID)
	if !ok || enrollment.Method != model.MethodOTTCA || enrollment.CAID != partner.ID || enrollment.JWT == "" {
		t.Errorf("the invitation is %+v", enrollment)
	}
	login, ok := model.Authenticators.Find(snap, "username", "person")
	if !ok || login.IdentityID != person.ID || login.PasswordHash == "" {
		t.Errorf("the authenticator is %+v", login)
	}
	session, ok := model.APISessions.Find(snap, "authenticatorId", login.ID)
	if !ok || !session.IsMFAComplete || session.MFAPassedAt == nil || !cmp.Equal(session.ConfigTypes, []string{own.ID}) {
		t.Errorf("the API session is %+v", session)
	}
	dial, ok := model.Sessions.Find(snap, "key", model.SessionKey(session.ID, "Dial", web.ID))
	if !ok || !cmp.Equal(dial.Tags, kind.Tags{"purpose": "read"}) {
		t.Errorf("the session is %+v", dial)
	}
}

// moment is a time within the minute in which the first fixture was made.
func moment(second, millis int) time.Time {
	return time.Date(2026, 11, 15, 19, 45, second, millis*1e6, time.UTC)
}
