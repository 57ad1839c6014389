package lint

import (
	"strings"
	"time"

	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/advice"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// checks is all that is looked for.
var checks = []check{
	{"policy-idle", "a policy that gives nobody anything is a mistake, or was forgotten", idlePolicies},
	{"role-unknown", "a role that nobody has may be misspelled: who was meant is left out, or a posture check is", unknownRoles},
	{"policy-shadowed", "two policies give the same, so that whoever ends one of them has ended no access", shadowed},
	{"policy-overlapping", "two policies give much of the same, so that whoever ends one of them has not ended all of the access", overlaps},
	{"policy-ending", "access that ends unnoticed is missed, and what is over only stands in the way", timedPolicies},
	{"service-not-dialed", "no policy lets anybody dial the service", notDialed},
	{"service-not-hosted", "no policy lets anybody host the service, and it has no terminators", notHosted},
	{"service-unencrypted", "routers can read what the service carries", unencrypted},
	{"identity-not-enrolled", "nobody can become the identity: it has no credential and no invitation that is open", notEnrolled},
	{"identity-not-seen", "a credential that nobody uses is missed by nobody when somebody else does", notSeen},
	{"grant-ending", "access that ends unnoticed is missed", endingGrants},
	{"token-ending", "a program whose token ends stops working, and one that has ended only stands in the way", endingTokens},
	{"signer-without-audience", "tokens that the issuer made for any other application are accepted", withoutAudience},
	{"ca-unverified", "nobody can enroll or log in with a certificate of a CA that nobody has shown to hold", unverified},
	{"password-old", "a password that is never changed is known to whoever ever learned it", oldPasswords},
}

// given is the services that policies of a type give somebody.
func (l *look) given(typ string) *cow.Bitmap {
	all := new(cow.Bitmap)
	for p := range model.ServicePolicies.All(l.snap) {
		if p.Type == typ && p.Counts() && !access.ServicePolicyIdentities.Members(l.snap, p).IsEmpty() {
			all.Or(access.ServicePolicyServices.Members(l.snap, p))
		}
	}
	return all
}

func (l *look) notGiven(typ, what string, unless func(*model.Service) bool, found func(Finding)) {
	given := l.given(typ)
	for s := range model.Services.All(l.snap) {
		if ord, ok := l.snap.Ordinal(model.Services.Def, s.ID); ok && !given.Contains(ord) && !unless(s) {
			found(l.remove(model.Services.Def, s, what))
		}
	}
}

func notDialed(l *look, found func(Finding)) {
	l.notGiven(model.Dial, "may be dialed by nobody", func(*model.Service) bool { return false }, found)
}

func notHosted(l *look, found func(Finding)) {
	l.notGiven(model.Bind, "may be hosted by nobody", func(s *model.Service) bool {
		for range model.Terminators.Select(l.snap, "service", s.ID) {
			return true
		}
		return false
	}, found)
}

// unencrypted services stay so: they have to be made anew.
func unencrypted(l *look, found func(Finding)) {
	for s := range model.Services.All(l.snap) {
		if s.EncryptionRequired {
			continue
		}
		f := l.remove(model.Services.Def, s, "does not ask for encryption, which stays as it was created; policies that name it by @ have to name the new one")
		words := []string{"create", model.Services.Name, s.Name, "--encryption-required", "--terminator-strategy", s.TerminatorStrategy}
		if len(s.RoleAttributes) > 0 {
			words = append(words, "--roles", strings.Join(s.RoleAttributes, ","))
		}
		if len(s.Configs) > 0 {
			words = append(words, "--configs", strings.Join(s.Configs, ","))
		}
		f.Command += " && " + advice.Command(words...)
		found(f)
	}
}

// notEnrolled are those whom nobody can become. Routers' identities enroll with them.
func notEnrolled(l *look, found func(Finding)) {
	// One look at all credentials costs less than one for each identity.
	enrolled, invited := map[string]bool{}, map[string]*model.Enrollment{}
	for a := range model.Authenticators.All(l.snap) {
		enrolled[a.IdentityID] = true
	}
	for e := range model.Enrollments.All(l.snap) {
		if last := invited[e.IdentityID]; last == nil || e.ExpiresAt.After(last.ExpiresAt) {
			invited[e.IdentityID] = e
		}
	}
	for i := range model.Identities.All(l.snap) {
		if i.ExternalID != "" || i.EnrolledBy != "" || i.Type == model.TypeRouter || i.IsDefaultAdmin || enrolled[i.ID] {
			continue
		}
		switch last := invited[i.ID]; {
		case last == nil:
			found(l.of(model.Identities.Def, i, "has no credential and no invitation", "invite", l.called(model.Identities.Def, i), "--no-qr"))
		case !last.ExpiresAt.After(l.now):
			found(l.of(model.Identities.Def, i, "did not enroll before its invitation ended on "+day(last.ExpiresAt), "refresh", model.Enrollments.Name, last.ID))
		}
	}
}

// notSeen are those who were not there for long, as far as anybody can know: what was not
// noted may have been before it was begun to note. Who answers for a token that is used is
// there by it, and who is disabled was thought of.
func notSeen(l *look, found func(Finding)) {
	last, since := map[string]time.Time{}, time.Time{}
	seen := func(id string, at time.Time) {
		if at.After(last[id]) {
			last[id] = at
		}
	}
	for c := range model.ClientInfos.All(l.snap) {
		seen(c.IdentityID, c.SeenAt)
		if !c.SeenSince.IsZero() && (since.IsZero() || c.SeenSince.Before(since)) {
			since = c.SeenSince
		}
	}
	if since.IsZero() {
		return
	}
	for s := range model.APISessions.All(l.snap) {
		seen(s.IdentityID, s.LastActivityAt.Time())
	}
	for u := range model.TokenUses.All(l.snap) {
		if t, ok := model.Tokens.Get(l.snap, u.TokenID); ok {
			seen(t.OwnerID, u.At)
		}
	}
	able := map[string]kind.Moment{} // since when they may come
	for a := range model.Authenticators.All(l.snap) {
		if a.CreatedAt.After(able[a.IdentityID]) {
			able[a.IdentityID] = a.CreatedAt
		}
	}
	for i := range model.Identities.All(l.snap) {
		enrolled, is := able[i.ID]
		if !is && i.ExternalID == "" && i.EnrolledBy == "" || i.Type == model.TypeRouter || i.IsDefaultAdmin || i.Disabled(l.now) {
			continue
		}
		at, what := last[i.ID], "was last seen on "
		if at.IsZero() {
			at, what = latest(since, i.CreatedAt.Time()), "was not seen since "
		}
		if l.now.Sub(latest(at, enrolled.Time())) >= Unseen {
			found(l.of(model.Identities.Def, i, what+day(at), "disable", model.Identities.Name, l.called(model.Identities.Def, i)))
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// endingGrants were given for long and end soon. Who is given something for less knows
// that it ends. Those that are over are forgotten by themselves.
func endingGrants(l *look, found func(Finding)) {
	for rec := range l.snap.Ranked(model.Grants.Def).In(model.ToEnd) {
		g := rec.(*model.Grant)
		if g.ValidUntil.Sub(l.now) > EndsSoon {
			return // as all that come after it
		}
		began := g.CreatedAt.Time()
		if g.ValidFrom != nil {
			began = *g.ValidFrom
		}
		if g.ValidUntil.Sub(began) <= EndsSoon || !g.ValidUntil.After(l.now) {
			continue
		}
		who := g.IdentityID
		if i, ok := model.Identities.Get(l.snap, who); ok {
			who = i.Name
		}
		found(l.update(model.Grants.Def, g, "gives "+who+" the attribute "+g.Attribute+" and ends on "+day(g.ValidUntil),
			"--valid-until", moment(l.now.Add(90*24*time.Hour))))
	}
}

func endingTokens(l *look, found func(Finding)) {
	for t := range model.Tokens.All(l.snap) {
		switch {
		case t.Ended(l.now):
			found(l.remove(model.Tokens.Def, t, "has ended on "+day(t.ExpiresAt)))
		case t.Ending(l.now):
			found(l.update(model.Tokens.Def, t, "ends on "+day(t.ExpiresAt), "--expires-at", moment(l.now.Add(90*24*time.Hour))))
		}
	}
}

// withoutAudience are signers that take whatever their issuers sign. What their tokens
// have as the audience is usually what the provider calls the application.
func withoutAudience(l *look, found func(Finding)) {
	for s := range model.ExtJWTSigners.All(l.snap) {
		if s.Enabled && s.Audience == "" {
			audience := s.ClientID
			if audience == "" {
				audience = "netkeep"
			}
			found(l.update(model.ExtJWTSigners.Def, s, "has no audience; give it the one that its tokens have", "--audience", audience))
		}
	}
}

// unverified CAs are there by name and certificate alone, as those are that came in files.
func unverified(l *look, found func(Finding)) {
	for ca := range model.CAs.All(l.snap) {
		if !ca.IsVerified {
			found(l.of(model.CAs.Def, ca, "is not verified, and counts for nothing before it is", "verify", model.CAs.Name, l.called(model.CAs.Def, ca), "--ca-cert", "ca.crt", "--ca-key", "ca.key"))
		}
	}
}

// oldPasswords are those of authenticators that nobody has written for long.
func oldPasswords(l *look, found func(Finding)) {
	for a := range model.Authenticators.All(l.snap) {
		if a.Method != model.MethodUPDB || l.now.Sub(a.UpdatedAt.Time()) < OldPassword {
			continue
		}
		if i, ok := model.Identities.Get(l.snap, a.IdentityID); ok {
			found(l.of(model.Identities.Def, i, "has a password of "+day(a.UpdatedAt.Time()), "password", l.called(model.Identities.Def, i)))
		}
	}
}
