package zitidb_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"netkeep.internal/internal/takeover/zitidb"
	"netkeep.internal/test/zititest"
)

type M = zititest.M

// all are the records of a store, as the API tells of them; what say returns nil for is
// left out.
func all[T any](t *testing.T, d *zitidb.DB, s zitidb.Store[T], say func(*T) M) []M {
	t.Helper()
	var list []M
	n := 0
	for rec, err := range s.All(d) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if m := say(rec); m != nil {
			list = append(list, m)
		}
	}
	if n != s.Len(d) {
		t.Errorf("there are %d and not %d", n, s.Len(d))
	}
	return list
}

// with adds what most records have.
func with(c zitidb.Common, m M) M {
	tags := c.Tags
	if tags == nil {
		tags = M{}
	}
	m["id"], m["createdAt"], m["updatedAt"], m["tags"] = c.ID, at(&c.CreatedAt), at(&c.UpdatedAt), tags
	return m
}

// at is a time as the API writes it.
func at(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func or[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}

func text(v *string) any {
	if v == nil {
		return nil
	}
	return *v
}

func set(list []string) any {
	if list == nil {
		return []string{}
	}
	return list
}

func object(m M) M {
	if m == nil {
		return M{}
	}
	return m
}

var precedences = []string{"default", "required", "failed"}

// told is what the database says, in the words of the API.
func told(t *testing.T, d *zitidb.DB) map[string][]M {
	types := map[int32]string{zitidb.Dial: "Dial", zitidb.Bind: "Bind"}
	return map[string][]M{
		"identities": all(t, d, zitidb.Identities, func(i *zitidb.Identity) M {
			costs := M{}
			for id, n := range i.ServiceHostingCosts {
				costs[id] = n
			}
			return with(i.Common, M{
				"name": i.Name, "typeId": i.Type, "isAdmin": i.IsAdmin, "isDefaultAdmin": i.IsDefaultAdmin, "authPolicyId": i.AuthPolicyID, "externalId": text(i.ExternalID),
				"roleAttributes": set(i.RoleAttributes), "appData": object(i.AppData), "defaultHostingCost": i.DefaultHostingCost,
				"defaultHostingPrecedence": precedences[i.DefaultHostingPrecedence], "serviceHostingCosts": costs, "disabledAt": at(i.DisabledAt), "disabledUntil": at(i.DisabledUntil),
			})
		}),
		"services": all(t, d, zitidb.Services, func(s *zitidb.Service) M {
			if s.Edge == nil {
				return nil
			}
			return with(s.Common, M{
				"name": s.Name, "terminatorStrategy": s.TerminatorStrategy, "maxIdleTimeMillis": s.MaxIdle.Milliseconds(), "roleAttributes": set(s.Edge.RoleAttributes),
				"configs": set(s.Edge.Configs), "encryptionRequired": or(s.Edge.EncryptionRequired, true),
			})
		}),
		"edge-routers": all(t, d, zitidb.Routers, func(r *zitidb.Router) M {
			if r.Edge == nil {
				return nil
			}
			return with(r.Common, M{
				"name": r.Name, "cost": r.Cost, "noTraversal": r.NoTraversal, "disabled": r.Disabled, "isVerified": r.Edge.IsVerified, "isTunnelerEnabled": r.Edge.IsTunnelerEnabled,
				"roleAttributes": set(r.Edge.RoleAttributes), "certPem": text(r.Edge.CertPEM), "appData": object(r.Edge.AppData),
			})
		}),
		"fabric routers": all(t, d, zitidb.Routers, func(r *zitidb.Router) M {
			return M{"id": r.ID, "name": r.Name, "fingerprint": text(r.Fingerprint)}
		}),
		"configs": all(t, d, zitidb.Configs, func(c *zitidb.Config) M {
			return with(c.Common, M{"name": c.Name, "configTypeId": c.TypeID, "data": c.Data})
		}),
		"config-types": all(t, d, zitidb.ConfigTypes, func(c *zitidb.ConfigType) M {
			var schema any
			if c.Schema != nil {
				if err := json.Unmarshal([]byte(*c.Schema), &schema); err != nil {
					t.Fatal(err)
				}
			}
			return with(c.Common, M{"name": c.Name, "schema": schema})
		}),
		"service-policies": all(t, d, zitidb.ServicePolicies, func(p *zitidb.ServicePolicy) M {
			return with(p.Common, M{
				"name": p.Name, "semantic": p.Semantic, "type": types[p.Type],
				"identityRoles": set(p.IdentityRoles), "serviceRoles": set(p.ServiceRoles), "postureCheckRoles": set(p.PostureCheckRoles),
			})
		}),
		"edge-router-policies": all(t, d, zitidb.EdgeRouterPolicies, func(p *zitidb.EdgeRouterPolicy) M {
			return with(p.Common, M{"name": p.Name, "semantic": p.Semantic, "identityRoles": set(p.IdentityRoles), "edgeRouterRoles": set(p.EdgeRouterRoles), "isSystem": p.IsSystem})
		}),
		"service-edge-router-policies": all(t, d, zitidb.ServiceEdgeRouterPolicies, func(p *zitidb.ServiceEdgeRouterPolicy) M {
			return with(p.Common, M{"name": p.Name, "semantic": p.Semantic, "serviceRoles": set(p.ServiceRoles), "edgeRouterRoles": set(p.EdgeRouterRoles)})
		}),
		"cas": all(t, d, zitidb.CAs, func(c *zitidb.CA) M {
			m := with(c.Common, M{
				"name": c.Name, "fingerprint": c.Fingerprint, "certPem": c.CertPEM, "identityNameFormat": c.IdentityNameFormat, "isVerified": c.IsVerified,
				"isAuthEnabled": c.IsAuthEnabled, "isAutoCaEnrollmentEnabled": c.IsAutoCAEnrollmentEnabled, "isOttCaEnrollmentEnabled": c.IsOTTCAEnrollmentEnabled,
				"identityRoles": set(c.IdentityRoles),
			})
			if x := c.ExternalIDClaim; x != nil {
				m["externalIdClaim"] = M{"location": x.Location, "matcher": x.Matcher, "matcherCriteria": x.MatcherCriteria, "parser": x.Parser, "parserCriteria": x.ParserCriteria, "index": x.Index}
			}
			return m
		}),
		"external-jwt-signers": all(t, d, zitidb.ExtJWTSigners, func(s *zitidb.ExtJWTSigner) M {
			return with(s.Common, M{
				"name": s.Name, "issuer": s.Issuer, "audience": s.Audience, "claimsProperty": s.ClaimsProperty, "useExternalId": s.UseExternalID, "enabled": s.Enabled,
				"commonName": s.CommonName, "scopes": set(s.Scopes), "targetToken": s.TargetToken,
			})
		}),
		"auth-policies": all(t, d, zitidb.AuthPolicies, func(p *zitidb.AuthPolicy) M {
			return with(p.Common, M{
				"name": p.Name,
				"primary": M{
					"cert": M{"allowed": or(p.CertAllowed, true), "allowExpiredCerts": p.AllowExpiredCerts},
					"updb": M{
						"allowed": or(p.UpdbAllowed, true), "minPasswordLength": p.MinPasswordLength, "requireSpecialChar": p.RequireSpecial, "requireNumberChar": p.RequireNumber,
						"requireMixedCase": p.RequireMixedCase, "maxAttempts": p.MaxAttempts, "lockoutDurationMinutes": p.LockoutMinutes,
					},
					"extJwt": M{"allowed": or(p.ExtJWTAllowed, true), "allowedSigners": set(p.AllowedSigners)},
				},
				"secondary": M{"requireTotp": p.RequireTOTP, "requireExtJwtSigner": text(p.RequireExtJWT)},
			})
		}),
		"authenticators": all(t, d, zitidb.Authenticators, func(a *zitidb.Authenticator) M {
			m := M{"id": a.ID, "method": a.Method, "identityId": a.IdentityID}
			if a.Method == "updb" {
				m["username"] = a.Username
			} else {
				m["certPem"], m["fingerprint"] = a.CertPEM, a.Fingerprint
			}
			return m
		}),
		"enrollments": all(t, d, zitidb.Enrollments, func(e *zitidb.Enrollment) M {
			return M{"id": e.ID, "method": e.Method, "token": e.Token, "jwt": e.JWT, "expiresAt": at(&e.ExpiresAt)}
		}),
		"posture-checks": all(t, d, zitidb.PostureChecks, func(p *zitidb.PostureCheck) M {
			m := with(p.Common, M{"name": p.Name, "typeId": p.TypeID, "roleAttributes": set(p.RoleAttributes), "version": p.Version})
			switch {
			case p.MAC != nil:
				m["macAddresses"] = p.MAC.Addresses
			case p.Domain != nil:
				m["domains"] = p.Domain.Domains
			case p.MFA != nil:
				m["timeoutSeconds"], m["promptOnWake"], m["promptOnUnlock"] = p.MFA.TimeoutSeconds, p.MFA.PromptOnWake, p.MFA.PromptOnUnlock
			case p.Process != nil:
				m["process"] = M{"osType": p.Process.OS, "path": p.Process.Path, "hashes": set(p.Process.Hashes), "signerFingerprint": p.Process.Fingerprint}
			}
			return m
		}),
		"fabric terminators": all(t, d, zitidb.Terminators, func(x *zitidb.Terminator) M {
			return M{"id": x.ID, "serviceId": x.ServiceID, "routerId": x.RouterID, "binding": x.Binding, "address": x.Address, "instanceId": x.InstanceID, "precedence": x.Precedence, "hostId": x.HostID}
		}),
	}
}

// unordered has texts of sets in an order, and everything as JSON has it, but for nothing,
// which the API says in several ways.
func unordered(t *testing.T, v any) any {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(raw, &plain); err != nil {
		t.Fatal(err)
	}
	var order func(any) any
	order = func(v any) any {
		switch v := v.(type) {
		case []any:
			if len(v) == 0 {
				return nil
			}
			for i := range v {
				v[i] = order(v[i])
			}
			if _, is := v[0].(string); is {
				slices.SortFunc(v, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			}
		case M:
			for k := range v {
				if v[k] = order(v[k]); v[k] == nil {
					delete(v, k)
				}
			}
		}
		return v
	}
	return order(plain)
}

// TestReads compares what is read with what the controller said of the same records.
func TestReads(t *testing.T) {
	for i, version := range zititest.Versions {
		t.Run(version, func(t *testing.T) {
			d, err := zitidb.Open(zititest.Database(zititest.Unpack(t, version)))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if want := []int64{38, 41, 44}[i]; d.Version != want {
				t.Errorf("it is of version %d, want %d", d.Version, want)
			}
			if unknown := d.Unknown(); len(unknown) > 0 {
				t.Errorf("nobody knows %v", unknown)
			}
			said, fields := zititest.Lists(t, version), 0
			for path, list := range told(t, d) {
				want := map[any]M{}
				for _, m := range said[path] {
					want[m["id"]] = m
				}
				if len(list) != len(want) || len(list) == 0 {
					t.Errorf("%s: %d are read, %d were told", path, len(list), len(want))
				}
				for _, m := range list {
					w, there := want[m["id"]]
					if !there {
						t.Errorf("%s: nobody told of %v", path, m["id"])
						continue
					}
					for k := range m {
						fields++
						if diff := cmp.Diff(unordered(t, w[k]), unordered(t, m[k])); diff != "" {
							t.Errorf("%s/%v: %s: told (-), read (+):\n%s", path, m["id"], k, diff)
						}
					}
				}
			}
			t.Logf("%d fields are the same", fields)
		})
	}
}

// TestBadFiles shows that what is no database that can be read is refused with a
// sentence, and is left as it is.
func TestBadFiles(t *testing.T) {
	good := zititest.Database(zititest.Unpack(t, "1.6.0"))
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(text []byte) string {
		file := filepath.Join(dir, "some.db")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	change := func(f func(*bbolt.Tx) error) string {
		file := write(whole)
		db, err := bbolt.Open(file, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(f), db.Close()); err != nil {
			t.Fatal(err)
		}
		return file
	}
	version := func(n byte) string {
		return change(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("ziti")).Bucket([]byte("versions")).Put([]byte("edge"), []byte{3, n, 0, 0, 0, 0, 0, 0, 0})
		})
	}
	for _, test := range []struct{ what, file, says string }{
		{"nothing", filepath.Join(dir, "none.db"), "there is no database"},
		{"a directory", dir, "is no database"},
		{"an empty file", write(nil), "is no database"},
	} {
		refused(t, test.what, test.file, test.says)
	}
	refused(t, "another file", write([]byte(strings.Repeat("some text\n", 10_000))), "no database of OpenZiti, or damaged")
	refused(t, "half of it", write(whole[:len(whole)/2]), "damaged")
	refused(t, "an old one", version(37), "version 37", "start OpenZiti 1.6 on a copy")
	refused(t, "a newer one", version(45), "version 45", "newer than this program knows")
	refused(t, "one of somebody else", change(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("ziti")) }), "no database of OpenZiti")

	db, err := bbolt.Open(good, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, "one in use", good, "stop the controller", "snapshot")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	file := change(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("ziti")).Bucket([]byte("identities")).Bucket([]byte("R6RknKDOy")).Put([]byte("isAdmin"), []byte{1})
	})
	d, err := zitidb.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, err = range zitidb.Identities.All(d) {
	}
	if err == nil || err.Error() != "identities/R6RknKDOy: isAdmin: a value of type 1 has 0 bytes" {
		t.Errorf("a damaged record is refused with %v", err)
	}
}

func refused(t *testing.T, what, file string, says ...string) {
	t.Helper()
	before, _ := os.ReadFile(file)
	d, err := zitidb.Open(file)
	if err == nil {
		d.Close()
		t.Errorf("%s: it is taken", what)
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q does not say %q", what, err, text)
		}
	}
	if after, _ := os.ReadFile(file); string(after) != string(before) {
		t.Errorf("%s: the file has changed", what)
	}
}

// FuzzDatabase reads files of which some bytes are others: they are refused, or some
// record is, and nothing else happens.
func FuzzDatabase(f *testing.F) {
	whole, err := os.ReadFile(zititest.Database(zititest.Unpack(f, "1.6.0")))
	if err != nil {
		f.Fatal(err)
	}
	for _, at := range []uint32{0, 16, 4096, 40_000, 200_000} {
		f.Add(at, []byte{0xff, 0, 0xff, 0})
	}
	f.Fuzz(func(t *testing.T, at uint32, with []byte) {
		text := slices.Clone(whole)
		copy(text[int(at)%len(text):], with)
		file := filepath.Join(t.TempDir(), "damaged.db")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := everything(file); err != nil && strings.Contains(err.Error(), "comes with") {
			t.Error(err)
		}
	})
}
