package takeover

import (
	"cmp"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/terse"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/takeover/zitidb"
)

// precedences are those of hosts, by number.
var precedences = []string{model.PrecedenceDefault, model.PrecedenceRequired, model.PrecedenceFailed}

func precedence(n int32) string {
	if n < 0 || int(n) >= len(precedences) {
		return model.PrecedenceDefault
	}
	return precedences[n]
}

func (r *reading) readIdentities() error {
	return each(r, zitidb.Identities, func(i *zitidb.Identity) {
		at := "identities/" + i.ID + " " + i.Name
		rec := model.Identities.New()
		rec.Meta, rec.Name, rec.Type = r.meta("identities", i.Common), i.Name, i.Type
		rec.System = false
		if rec.Type != model.TypeRouter {
			rec.Type = "Default"
		}
		if name, edge := r.edges[i.ID]; edge && name != i.Name {
			rec.Name = name
			r.note(Renamed, at)
		}
		rec.IsAdmin, rec.IsDefaultAdmin, rec.ExternalID = i.IsAdmin, i.IsDefaultAdmin, text(i.ExternalID)
		rec.AuthPolicyID, rec.RoleAttributes = cmp.Or(i.AuthPolicyID, model.DefaultAuthPolicy), said(i.RoleAttributes)
		if len(i.AppData) > 0 {
			rec.AppData = jsonOf(i.AppData)
		}
		rec.DefaultHostingCost, rec.DefaultHostingPrecedence = int(i.DefaultHostingCost), precedence(i.DefaultHostingPrecedence)
		rec.ServiceHostingCosts, rec.ServiceHostingPrecedences = map[string]int{}, map[string]string{}
		for id, cost := range values(i.ServiceHostingCosts) {
			if r.hasService(id, at) {
				rec.ServiceHostingCosts[id] = int(cost)
			}
		}
		for id, p := range values(i.ServiceHostingPrecedences) {
			if r.hasService(id, at) {
				rec.ServiceHostingPrecedences[id] = precedence(p)
			}
		}
		rec.DisabledAt, rec.DisabledUntil = i.DisabledAt, i.DisabledUntil
		r.identities[i.ID] = rec
		add(r, model.Identities, rec, i.Name)
		r.addOverrides(i, at)
		r.addClient(i, at)
		rec.Permissions = filtered(i.Permissions, func(word string) bool { _, known := model.PermissionRole(word); return known }, func(word string) {
			r.note(NoPermission, at+": "+word)
		})
		if len(rec.Permissions) > 0 {
			r.note(Permissions, at+": "+strings.Join(rec.Permissions, ", "))
		}
		if len(i.Interfaces) > 0 {
			r.note(NoField, at+" interfaces")
		}
	})
}

func (r *reading) hasService(id, at string) bool {
	if !r.services[id] {
		r.note(Dangling, at+" service "+id)
	}
	return r.services[id]
}

// addOverrides adds the configs that an identity gets instead of those of services.
func (r *reading) addOverrides(i *zitidb.Identity, at string) {
	for service, types := range values(i.ServiceConfigs) {
		for typeID, config := range values(types) {
			if !r.services[service] || r.configs[config] != typeID {
				r.note(Dangling, at+" config "+config+" for service "+service)
				continue
			}
			rec := &model.ServiceConfig{IdentityID: i.ID, ServiceID: service, ConfigID: config, ConfigTypeID: typeID}
			rec.Meta = kind.Meta{ID: model.ServiceConfigID(i.ID, service, typeID), CreatedAt: kind.MomentOf(i.CreatedAt), UpdatedAt: kind.MomentOf(i.UpdatedAt)}
			add(r, model.ServiceConfigs, rec, i.Name)
		}
	}
}

// addClient adds what the client of an identity last said of itself.
func (r *reading) addClient(i *zitidb.Identity, at string) {
	rec := &model.ClientInfo{
		IdentityID: i.ID,
		EnvInfo:    model.EnvInfo{Arch: i.EnvArch, Domain: i.EnvDomain, Hostname: i.EnvHostname, OS: i.EnvOS, OSRelease: i.EnvRelease, OSVersion: i.EnvVersion},
		SDKInfo:    model.SDKInfo{AppID: i.SDKAppID, AppVersion: i.SDKAppVersion, Branch: i.SDKBranch, Revision: i.SDKRevision, Type: i.SDKType, Version: i.SDKVersion},
	}
	if rec.EnvInfo == (model.EnvInfo{}) && rec.SDKInfo == (model.SDKInfo{}) {
		return
	}
	r.clients[i.ID] = rec.SDKInfo
	updated := kind.MomentOf(i.UpdatedAt)
	rec.Meta = kind.Meta{ID: i.ID, CreatedAt: updated, UpdatedAt: updated}
	add(r, model.ClientInfos, rec, i.Name)
	if r.net.Settings.OIDC && byOIDC(i.SDKType, i.SDKVersion) {
		r.note(OIDC, at+", "+i.SDKType+" "+i.SDKVersion)
	}
}

// byOIDC reports whether a client logs in by OpenID Connect where that is offered.
func byOIDC(library, version string) bool {
	v, err := semver.NewVersion(strings.TrimPrefix(version, "v"))
	return err == nil && strings.Contains(library, "golang") && !v.LessThan(semver.MustParse("1.2.3"))
}

func (r *reading) readAuthenticators() error {
	names, prints := map[string]string{}, map[string]string{}
	return each(r, zitidb.Authenticators, func(a *zitidb.Authenticator) {
		who, known := r.identities[a.IdentityID]
		name := cmp.Or(a.Username, a.Fingerprint)
		switch {
		case !known:
			r.leave("authenticators", a.ID, name, "it is of an identity that is not there")
			return
		case who.Type == model.TypeRouter:
			r.leave("authenticators", a.ID, name, "it is of the identity of a router, which has its own certificate")
			return
		case names[a.Username] != "" && a.Username != "":
			r.leave("authenticators", a.ID, name, "the user name is that of another, "+names[a.Username])
			return
		case prints[a.Fingerprint] != "" && a.Fingerprint != "":
			r.leave("authenticators", a.ID, name, "the certificate is that of another, "+prints[a.Fingerprint])
			return
		}
		rec := model.Authenticators.New()
		rec.Meta, rec.IdentityID, rec.Method = r.meta("authenticators", a.Common), a.IdentityID, a.Method
		if a.Method == model.MethodUPDB {
			hash, err := passwordHash(a.Password, a.Salt)
			if err != nil {
				r.leave("authenticators", a.ID, name, err.Error())
				return
			}
			names[a.Username] = a.ID
			rec.Username, rec.PasswordHash = a.Username, hash
		} else {
			prints[a.Fingerprint] = a.ID
			r.certificate(rec, a, who)
		}
		r.owned[a.IdentityID] = true
		r.shown[a.ID] = rec
		add(r, model.Authenticators, rec, name)
	})
}

// certificate fills in what is known of the certificate of an authenticator.
func (r *reading) certificate(rec *model.Authenticator, a *zitidb.Authenticator, who *model.Identity) {
	at := "identities/" + who.ID + " " + who.Name
	if r.certs[who.ID]++; r.certs[who.ID] > 1 {
		r.note(Several, at)
	}
	rec.Fingerprint = a.Fingerprint
	rec.IsExtendRequested, rec.IsKeyRollRequested, rec.ExtendRequestedAt, rec.LastExtendRolledKeys = a.IsExtendRequested, a.IsKeyRollRequested, a.ExtendRequestedAt, a.LastExtendRolledKeys
	rec.PendingCertPEM = terse.Of([]byte(first(a.UnverifiedCertPEM)))
	cert := leaf(a.CertPEM)
	if cert == nil {
		return
	}
	rec.CertPEM, rec.NotAfter = terse.Of(pki.EncodeCertificates(cert)), kind.MomentOf(cert.NotAfter)
	for _, ca := range r.cas {
		if !a.IsIssuedByNetwork && signs(ca.cert, a.CertPEM) {
			rec.CAID = ca.rec.ID
		}
	}
	if pki.Usable(cert) != nil {
		r.note(WeakKeys, at)
	}
	if rec.CAID != "" && len(cert.ExtKeyUsage)+len(cert.UnknownExtKeyUsage) > 0 &&
		!slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageClientAuth) && !slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageAny) {
		r.note(Usage, at)
	}
}

// signs reports whether a CA has signed one of the certificates of a chain.
func signs(ca *x509.Certificate, chain string) bool {
	certs, err := pki.ParseCertificates([]byte(chain), maxChain)
	return err == nil && slices.ContainsFunc(certs, func(c *x509.Certificate) bool { return c.CheckSignatureFrom(ca) == nil })
}

// passwordHash is a stored password in the form that it has here: Argon2id with the costs
// that OpenZiti takes, which are raised at the next login.
func passwordHash(key, salt string) (string, error) {
	k, err1 := base64.StdEncoding.DecodeString(key)
	s, err2 := base64.StdEncoding.DecodeString(salt)
	if err1 != nil || err2 != nil || len(k) != 32 || len(s) == 0 {
		return "", fmt.Errorf("its password is stored in a form that is not known")
	}
	return fmt.Sprintf("$argon2id$v=19$m=3072,t=1,p=4$%s$%s", base64.RawStdEncoding.EncodeToString(s), base64.RawStdEncoding.EncodeToString(k)), nil
}

func (r *reading) readMFAs() error {
	return each(r, zitidb.MFAs, func(m *zitidb.MFA) {
		who, known := r.identities[m.IdentityID]
		if !known {
			r.leave("mfas", m.ID, m.IdentityID, "it is of an identity that is not there")
			return
		}
		r.note(PlainSecrets, "second factor of "+who.Name)
		add(r, model.MFAs, &model.MFA{
			Meta: r.meta("mfas", m.Common), IdentityID: m.IdentityID, IsVerified: m.IsVerified, Secret: m.Secret, RecoveryCodes: list(m.RecoveryCodes),
		}, who.Name)
	})
}

func (r *reading) readEnrollments() error {
	outstanding := map[string]bool{}
	return each(r, zitidb.Enrollments, func(e *zitidb.Enrollment) {
		subject := e.IdentityID + e.EdgeRouterID + e.TransitRouterID
		_, isIdentity := r.identities[e.IdentityID]
		same := e.Method + " " + subject
		switch {
		case !e.ExpiresAt.After(r.now):
			r.leave("enrollments", e.ID, subject, "it ended at "+e.ExpiresAt.UTC().Format("2006-01-02"))
			return
		case !slices.Contains([]string{model.MethodOTT, model.MethodOTTCA, model.MethodUPDB, model.MethodErOTT, model.MethodTrOTT}, e.Method):
			r.leave("enrollments", e.ID, subject, "the method "+e.Method+" is not known here")
			return
		case e.IdentityID != "" && !isIdentity, e.EdgeRouterID != "" && r.edges[e.EdgeRouterID] == "", e.TransitRouterID != "" && !r.routers[e.TransitRouterID], subject == "":
			r.leave("enrollments", e.ID, subject, "who is invited is not there")
			return
		case outstanding[same]:
			r.leave("enrollments", e.ID, subject, "there is another of the same method for it")
			return
		}
		outstanding[same] = true
		r.owned[e.IdentityID] = true
		r.note(PlainSecrets, "invitation of "+subject)
		rec := &model.Enrollment{
			Meta: r.meta("enrollments", e.Common), Method: e.Method, Token: e.Token, JWT: e.JWT, ExpiresAt: e.ExpiresAt,
			IdentityID: e.IdentityID, EdgeRouterID: e.EdgeRouterID, TransitRouterID: e.TransitRouterID, CAID: e.CAID, Username: e.Username,
		}
		rec.CreatedAt = kind.MomentOf(e.IssuedAt)
		rec.UpdatedAt = rec.CreatedAt
		add(r, model.Enrollments, rec, subject)
	})
}

// nameIssuers lets those go on to name an identity by its external id who could, where our
// rules would not have it without being told.
func (r *reading) nameIssuers() {
	var issuers []string
	claims := false
	for _, ca := range r.cas {
		if ca.rec.ExternalIDClaim != nil {
			issuers, claims = append(issuers, ca.rec.ID), true
		}
	}
	if !claims {
		return
	}
	for _, it := range r.net.items {
		if signer, is := it.rec.(*model.ExtJWTSigner); is && signer.UseExternalID {
			issuers = append(issuers, signer.ID)
		}
	}
	for _, i := range values(r.identities) {
		if i.ExternalID != "" && (i.Admin() || r.owned[i.ID]) {
			i.ExternalIDIssuers = issuers
			r.note(Issuers, "identities/"+i.ID+" "+i.Name)
		}
	}
}

// readRest says what is to be known of all.
func (r *reading) readRest() error {
	s := r.net.Settings
	for _, file := range s.Open {
		r.note(OpenKeys, file)
	}
	if len(s.Signing) > 1 {
		r.note(RootAway, s.Signing[len(s.Signing)-1].Subject.CommonName)
	}
	others := 0
	if err := each(r, zitidb.Controllers, func(c *zitidb.Controller) {
		if c.ID != s.ID {
			others++
			r.note(Cluster, c.Name+" "+c.CtrlAddress)
		}
	}); err != nil {
		return err
	}
	if s.Clustered && others == 0 {
		r.note(Raft, "")
	}
	for _, path := range r.db.Unknown() {
		r.note(Unknown, path)
	}
	return nil
}
