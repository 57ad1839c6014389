package takeover

import (
	"cmp"
	"net"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/takeover/zitidb"
)

// Clients that are connected to routers stay so where their sessions come along: routers
// close the connections of those that their controller does not know. Whoever is at the APIs
// alone logs in again, and so does everybody of whom the old controller did not keep when
// the session ends.

// usualTimeout is when a session is over that is not used, where the settings do not say.
const usualTimeout = 30 * time.Minute

func (r *reading) readSessions() error {
	opened := map[string]*model.APISession{}
	tokens := map[string]bool{}
	if err := each(r, zitidb.APISessions, func(s *zitidb.APISession) {
		rec := r.apiSession(s)
		if rec == nil || tokens[s.Token] {
			return
		}
		tokens[s.Token] = true
		opened[s.ID] = rec
	}); err != nil {
		return err
	}
	certified, prints := map[string][]*model.SessionCertificate{}, map[string]bool{}
	for _, a := range r.shown { // the old controller lists what a login was made with as well
		prints[a.Fingerprint] = true
	}
	if err := each(r, zitidb.SessionCertificates, func(c *zitidb.SessionCertificate) {
		if opened[c.APISessionID] == nil || prints[c.Fingerprint] || c.ValidAfter == nil || c.ValidBefore == nil || !r.now.Before(*c.ValidBefore) {
			return
		}
		prints[c.Fingerprint] = true
		certified[c.APISessionID] = append(certified[c.APISessionID], &model.SessionCertificate{
			Meta: r.meta("current-api-session/certificates", c.Common), APISessionID: c.APISessionID, Subject: c.Subject, Fingerprint: c.Fingerprint,
			Certificate: first(c.PEM), ValidFrom: *c.ValidAfter, ValidTo: *c.ValidBefore,
		})
	}); err != nil {
		return err
	}
	for id, rec := range values(opened) {
		if rec.Fingerprint == "" && len(certified[id]) == 0 {
			delete(opened, id) // no router lets its holder in
			continue
		}
		add(r, model.APISessions, rec, rec.IdentityID)
		for _, c := range certified[id] {
			add(r, model.SessionCertificates, c, c.Subject)
		}
	}
	r.note(Sessions, "")
	return r.readGrants(opened)
}

// apiSession is one that goes on here, nil if it does not: that of an admin, who could do
// more with its token than use services, of somebody who has shown less than they have to,
// or one that rests on what is not known well enough.
func (r *reading) apiSession(s *zitidb.APISession) *model.APISession {
	who, shown := r.identities[s.IdentityID], r.shown[s.AuthenticatorID]
	used := s.LastActivityAt
	if used.IsZero() {
		used = s.UpdatedAt
	}
	idle := cmp.Or(r.net.Settings.SessionTimeout, usualTimeout)
	switch {
	case who == nil || who.Type == model.TypeRouter || who.Admin() || len(who.Permissions) > 0 || s.Token == "":
		return nil
	case shown == nil || shown.IdentityID != s.IdentityID || s.MFARequired && !s.MFAComplete:
		return nil
	case !r.now.Before(used.Add(idle)):
		return nil
	}
	return &model.APISession{
		Meta: r.meta("api-sessions", s.Common), IdentityID: s.IdentityID, AuthenticatorID: s.AuthenticatorID, CAID: shown.CAID,
		NotAfter: shown.NotAfter, Fingerprint: shown.Fingerprint, Brought: s.Token, TokenHash: model.TokenHash(s.Token), ConfigTypes: list(s.ConfigTypes),
		IPAddress: host(s.IPAddress), IsMFARequired: s.MFARequired, IsMFAComplete: s.MFAComplete, LastActivityAt: kind.MomentOf(used), SDKInfo: r.clients[s.IdentityID],
	}
}

// host is an address without its port.
func host(address string) string {
	if name, _, err := net.SplitHostPort(address); err == nil {
		return name
	}
	return address
}

// readGrants reads what API sessions may dial and host. Those whose tokens are none of a
// random text are made by later releases, which keep no tokens: clients ask for others.
func (r *reading) readGrants(opened map[string]*model.APISession) error {
	taken := map[string]bool{}
	return each(r, zitidb.Sessions, func(s *zitidb.Session) {
		api := opened[s.APISessionID]
		if api == nil || !r.services[s.ServiceID] || s.Token == "" || s.Token == s.ID || strings.Contains(s.Token, ".") || !slices.Contains([]string{model.Dial, model.Bind}, s.Type) {
			return
		}
		key := model.SessionKey(api.ID, s.Type, s.ServiceID)
		if taken[key] || taken[s.Token] {
			return
		}
		taken[key], taken[s.Token] = true, true
		rec := &model.Session{
			Meta: r.meta("sessions", s.Common), APISessionID: api.ID, IdentityID: api.IdentityID, ServiceID: s.ServiceID, Type: s.Type, Key: key,
			Plain: true, Brought: s.Token, BroughtHash: model.TokenHash(s.Token),
		}
		add(r, model.Sessions, rec, s.ServiceID)
		if s.Type == model.Bind {
			key := [2]string{rec.IdentityID, rec.ServiceID}
			r.hosts[key] = append(r.hosts[key], rec)
		}
	})
}

// hosting is the session that a terminator was made with; nil if none of its host for its
// service came along. The old controller did not keep which it was: it is the latest one
// that there was by then.
func (r *reading) hosting(t *zitidb.Terminator) (with *model.Session) {
	by := kind.MomentOf(t.CreatedAt)
	for _, s := range r.hosts[[2]string{t.HostID, t.ServiceID}] {
		if !s.CreatedAt.After(by) && (with == nil || s.CreatedAt.After(with.CreatedAt)) {
			with = s
		}
	}
	return with
}
