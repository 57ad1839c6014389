package power_test

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/certtest"
)

// peopled has bob, who may do everything to whatever has to do with power and lacks
// a few powers that have nothing to do with it, and others with more, less or none.
func peopled(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.give(func(tx *state.Tx) error {
		wide := []string{"*:read"}
		for _, k := range []string{"admin-role", "role-binding", "identity", "authenticator", "enrollment", "api-session", "auth-policy", "ca", "ext-jwt-signer", "edge-router", "router"} {
			wide = append(wide, k+":*")
		}
		for _, role := range []*model.AdminRole{
			{Meta: kind.Meta{ID: "wide"}, Name: "wide", Allows: wide},
			{Meta: kind.Meta{ID: "web"}, Name: "web", Allows: []string{"service:*"}, OnlyAttributes: []string{"web"}},
		} {
			if err := model.AdminRoles.Create(tx, role); err != nil {
				return err
			}
		}
		for _, b := range []*model.RoleBinding{
			{Meta: kind.Meta{ID: "ops"}, Name: "ops", RoleID: "operator", Semantic: model.AnyOf, IdentityRoles: []string{"#ops"}},
			{Meta: kind.Meta{ID: "eyes"}, Name: "eyes", RoleID: "viewer", Semantic: model.AnyOf, IdentityRoles: []string{"#eyes"}},
		} {
			if err := model.RoleBindings.Create(tx, b); err != nil {
				return err
			}
		}
		for _, id := range []string{"strict", "loose"} {
			if err := model.AuthPolicies.Create(tx, policyOf(tx, id)); err != nil {
				return err
			}
		}
		for _, id := range []string{"ops-ca", "eyes-ca", "root-ca"} {
			if err := model.CAs.Create(tx, &model.CA{Meta: kind.Meta{ID: id}, Name: id, CertPEM: root(t)}); err != nil {
				return err
			}
		}
		for _, i := range []*model.Identity{
			with(identity("root"), func(i *model.Identity) { i.IsAdmin, i.AuthPolicyID = true, "strict" }),
			identity("bob", "wide"), identity("plain"),
			with(identity("eve", "viewer"), func(i *model.Identity) { i.ExternalIDIssuers = []string{"eyes-ca"} }),
			with(identity("op"), func(i *model.Identity) { i.RoleAttributes, i.ExternalIDIssuers = []string{"ops"}, []string{"ops-ca"} }),
			with(identity("low"), func(i *model.Identity) { i.AuthPolicyID = "loose" }),
		} {
			if err := model.Identities.Create(tx, i); err != nil {
				return err
			}
			if err := ways(tx, i.ID); err != nil {
				return err
			}
		}
		err := model.Enrollments.Create(tx, &model.Enrollment{IdentityID: "root", Method: model.MethodOTTCA, CAID: "root-ca", Token: "ottca"})
		if err != nil {
			return err
		}
		for _, id := range []string{"plainrouter", "oprouter"} {
			r := &model.EdgeRouter{Meta: kind.Meta{ID: id}, Name: id, IsTunnelerEnabled: true}
			if err := model.EdgeRouters.Create(tx, r); err != nil {
				return err
			}
		}
		return model.Identities.Edit(tx, "oprouter", func(i *model.Identity) error {
			i.AdminRoles = []string{"operator"}
			return nil
		})
	})
	return w
}

// root is the certificate of a new CA.
func root(t *testing.T) string {
	t.Helper()
	return string(certtest.New(t, nil, func(c *x509.Certificate) {
		c.Subject, c.IsCA, c.KeyUsage = pkix.Name{CommonName: rand.Text()}, true, x509.KeyUsageCertSign
	}).PEM())
}

// policyOf is an authentication policy like the default one.
func policyOf(r kind.Reader, id string) *model.AuthPolicy {
	p, _ := model.AuthPolicies.Get(r, model.DefaultAuthPolicy)
	c := *p
	c.Meta, c.Name = kind.Meta{ID: id}, id
	return &c
}

// ways gives an identity every way in.
func ways(tx *state.Tx, id string) error {
	password := model.NewPassword(id, "name-"+id, "")
	password.ID = "auth-" + id
	if err := model.Authenticators.Create(tx, password); err != nil {
		return err
	}
	if err := model.Enrollments.Create(tx, &model.Enrollment{Meta: kind.Meta{ID: "inv-" + id}, IdentityID: id, Method: model.MethodOTT, Token: "token-" + id}); err != nil {
		return err
	}
	return model.MFAs.Create(tx, &model.MFA{Meta: kind.Meta{ID: "mfa-" + id}, IdentityID: id})
}

// edit changes one record.
func edit[T any](k *kind.Kind[T], id string, change func(*T)) func(*state.Tx) error {
	return func(tx *state.Tx) error {
		return k.Edit(tx, id, func(rec *T) error {
			change(rec)
			return nil
		})
	}
}

func create[T any](k *kind.Kind[T], rec *T) func(*state.Tx) error {
	return func(tx *state.Tx) error { return k.Create(tx, rec) }
}

func remove[T any](k *kind.Kind[T], id string) func(*state.Tx) error {
	return func(tx *state.Tx) error { return k.Delete(tx, id) }
}

// TestJudge has somebody with much power and not all of it try everything that has
// to do with power: what is within their own they may, and nothing else.
func TestJudge(t *testing.T) {
	t.Parallel()
	w := peopled(t)
	signer := &model.ExtJWTSigner{Name: "idp", Enabled: true, Issuer: "https://idp.example", JWKSEndpoint: "https://idp.example/keys", Audience: "net"}
	for _, try := range []struct {
		name string
		may  bool
		do   func(*state.Tx) error
	}{
		{"make somebody without power", true, create(model.Identities, identity("new"))},
		{"make an admin", false, create(model.Identities, with(identity("new"), func(i *model.Identity) { i.IsAdmin = true }))},
		{"make a viewer", true, create(model.Identities, identity("new", "viewer"))},
		{"make one like oneself", true, create(model.Identities, identity("new", "wide"))},
		{"make an operator", false, create(model.Identities, identity("new", "operator"))},
		{"make a holder of the role admin", false, create(model.Identities, identity("new", "admin"))},
		{"make an operator by attribute", false, create(model.Identities, with(identity("new"), func(i *model.Identity) { i.RoleAttributes = []string{"ops"} }))},
		{"make a viewer by attribute", true, create(model.Identities, with(identity("new"), func(i *model.Identity) { i.RoleAttributes = []string{"eyes"} }))},
		{"become an admin", false, edit(model.Identities, "bob", func(i *model.Identity) { i.IsAdmin = true })},
		{"become an operator", false, edit(model.Identities, "bob", func(i *model.Identity) { i.AdminRoles = append(i.AdminRoles, "operator") })},
		{"become an operator by attribute", false, edit(model.Identities, "bob", func(i *model.Identity) { i.RoleAttributes = []string{"ops"} })},
		{"give up one's own power", true, edit(model.Identities, "bob", func(i *model.Identity) { i.AdminRoles = nil })},
		{"rename an admin", false, edit(model.Identities, "root", func(i *model.Identity) { i.ExternalID = "mallory" })},
		{"name an operator otherwise", false, edit(model.Identities, "op", func(i *model.Identity) { i.ExternalID = "mallory" })},
		{"name a viewer otherwise", true, edit(model.Identities, "eve", func(i *model.Identity) { i.ExternalID = "mallory" })},
		{"take an operator's power", false, edit(model.Identities, "op", func(i *model.Identity) { i.RoleAttributes = nil })},
		{"delete an operator", false, remove(model.Identities, "op")},
		{"delete a viewer", true, remove(model.Identities, "eve")},
		{"give a viewer an operator's power", false, edit(model.Identities, "eve", func(i *model.Identity) { i.RoleAttributes = []string{"ops"} })},

		{"make a role within", true, create(model.AdminRoles, &model.AdminRole{Name: "r", Allows: []string{"service:read"}})},
		{"make a role beyond", false, create(model.AdminRoles, &model.AdminRole{Name: "r", Allows: []string{"database:fix"}})},
		{"make a limited role beyond", false, create(model.AdminRoles, &model.AdminRole{Name: "r", Allows: []string{"service:update"}, OnlyAttributes: []string{"x"}})},
		{"widen one's own role", false, edit(model.AdminRoles, "wide", func(r *model.AdminRole) { r.Allows = append(r.Allows, "database:fix") })},
		{"widen one's own role to all", false, edit(model.AdminRoles, "wide", func(r *model.AdminRole) { r.Allows = []string{"*"} })},
		{"narrow one's own role", true, edit(model.AdminRoles, "wide", func(r *model.AdminRole) { r.Allows = []string{"*:read"} })},
		{"narrow a role beyond", false, edit(model.AdminRoles, "web", func(r *model.AdminRole) { r.Allows = []string{"service:read"} })},
		{"delete a role beyond", false, remove(model.AdminRoles, "web")},

		{"bind a role within", true, create(model.RoleBindings, &model.RoleBinding{Name: "b", RoleID: "viewer", Semantic: model.AnyOf, IdentityRoles: []string{"#all"}})},
		{"bind a role beyond to oneself", false, create(model.RoleBindings, &model.RoleBinding{Name: "b", RoleID: "operator", Semantic: model.AnyOf, IdentityRoles: []string{"@bob"}})},
		{"bind a role beyond to all", false, create(model.RoleBindings, &model.RoleBinding{Name: "b", RoleID: "operator", Semantic: model.AnyOf, IdentityRoles: []string{"#all"}})},
		{"bind a role beyond to nobody yet", false, create(model.RoleBindings, &model.RoleBinding{Name: "b", RoleID: "admin", Semantic: model.AnyOf, IdentityRoles: []string{"#later"}})},
		{"join a binding beyond", false, edit(model.RoleBindings, "ops", func(b *model.RoleBinding) { b.IdentityRoles = append(b.IdentityRoles, "@bob") })},
		{"lead a binding to a role beyond", false, edit(model.RoleBindings, "eyes", func(b *model.RoleBinding) { b.RoleID = "operator" })},
		{"lead a binding beyond to a role within", false, edit(model.RoleBindings, "ops", func(b *model.RoleBinding) { b.RoleID = "viewer" })},
		{"delete a binding beyond", false, remove(model.RoleBindings, "ops")},
		{"delete a binding within", true, remove(model.RoleBindings, "eyes")},

		{"set an admin's password", false, edit(model.Authenticators, "auth-root", func(a *model.Authenticator) { a.PasswordHash = "x" })},
		{"set an operator's password", false, edit(model.Authenticators, "auth-op", func(a *model.Authenticator) { a.PasswordHash = "x" })},
		{"set a viewer's password", true, edit(model.Authenticators, "auth-eve", func(a *model.Authenticator) { a.PasswordHash = "x" })},
		{"set one's own password", true, edit(model.Authenticators, "auth-bob", func(a *model.Authenticator) { a.PasswordHash = "x" })},
		{"take an admin's password", false, remove(model.Authenticators, "auth-root")},
		{"give an admin a password", false, create(model.Authenticators, &model.Authenticator{IdentityID: "root", Method: model.MethodCert, Fingerprint: "f"})},
		{"invite an operator", false, create(model.Enrollments, &model.Enrollment{IdentityID: "op", Method: model.MethodUPDB, Token: "t"})},
		{"invite somebody", true, create(model.Enrollments, &model.Enrollment{IdentityID: "plain", Method: model.MethodUPDB, Token: "t"})},
		{"take an admin's invitation", false, remove(model.Enrollments, "inv-root")},
		{"take an admin's second factor", false, remove(model.MFAs, "mfa-root")},
		{"take a viewer's second factor", true, remove(model.MFAs, "mfa-eve")},
		{"log somebody with power in", false, create(model.APISessions, &model.APISession{IdentityID: "op", TokenHash: "h"})},
		{"log oneself in", true, create(model.APISessions, &model.APISession{IdentityID: "bob", TokenHash: "h"})},

		{"change how an admin authenticates", false, edit(model.AuthPolicies, "strict", func(p *model.AuthPolicy) { p.Name = "stricter" })},
		{"change how others do", true, edit(model.AuthPolicies, "loose", func(p *model.AuthPolicy) { p.Name = "looser" })},
		{"change how an operator authenticates by default", false, edit(model.AuthPolicies, "default", func(p *model.AuthPolicy) { p.Tags = map[string]any{"a": "b"} })},
		{"let a CA make operators", false, create(model.CAs, &model.CA{Name: "c", CertPEM: root(t), IdentityRoles: []string{"ops"}})},
		{"let a CA make viewers", true, create(model.CAs, &model.CA{Name: "c", CertPEM: root(t), IdentityRoles: []string{"eyes"}})},
		{"let a CA of viewers make operators", false, edit(model.CAs, "eyes-ca", func(c *model.CA) { c.IdentityRoles = []string{"ops"} })},
		{"change the CA of viewers", true, edit(model.CAs, "eyes-ca", func(c *model.CA) { c.IsAuthEnabled = false })},
		{"change a CA that may name an operator", false, edit(model.CAs, "ops-ca", func(c *model.CA) { c.IsAuthEnabled = false })},
		{"delete a CA whose certificate an admin has", false, remove(model.CAs, "root-ca")},
		{"verify a CA by which an admin is invited", false, edit(model.CAs, "root-ca", func(c *model.CA) { c.IsVerified = true })},
		{"say who people are", false, create(model.ExtJWTSigners, signer)},
		{"invite a router", true, create(model.Enrollments, &model.Enrollment{EdgeRouterID: "plainrouter", Method: model.MethodErOTT, Token: "t"})},
		{"invite a router that has power", false, create(model.Enrollments, &model.Enrollment{EdgeRouterID: "oprouter", Method: model.MethodErOTT, Token: "t"})},
		{"change a router that has power", false, edit(model.EdgeRouters, "oprouter", func(r *model.EdgeRouter) { r.Cost = 7 })},
		{"change a router", true, edit(model.EdgeRouters, "plainrouter", func(r *model.EdgeRouter) { r.Cost = 7 })},
		{"delete a router that has power", false, remove(model.EdgeRouters, "oprouter")},
	} {
		t.Run(try.name, func(t *testing.T) {
			_, err := w.st.Try(context.Background(), as("bob"), w.st.Snapshot(), try.do)
			switch {
			case try.may && err != nil:
				t.Errorf("it is within one's own power, and refused: %v", err)
			case !try.may && !refused(err):
				t.Errorf("it is beyond one's own power, and answered with %v", err)
			}
			if _, err := w.st.Try(context.Background(), as("root"), w.st.Snapshot(), try.do); err != nil {
				t.Errorf("an admin is refused: %v", err)
			}
			if _, err := w.st.Try(context.Background(), state.Program("test"), w.st.Snapshot(), try.do); err != nil {
				t.Errorf("the program is refused: %v", err)
			}
			if _, err := w.st.Try(context.Background(), as("gone"), w.st.Snapshot(), try.do); !try.may && !refused(err) {
				t.Errorf("somebody who is gone is answered with %v", err)
			}
		})
	}
}
