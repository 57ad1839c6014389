package authn

import (
	"log/slog"

	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// mayName reports whether a CA may say that somebody is an identity, by the
// external id in a certificate. Otherwise every CA that may authenticate could
// be everybody, and whoever runs one of them an admin. So an identity that
// names its issuers is named by these alone; and one that does not, only if it
// has no power over the network and no way in of its own: whoever has one does not expect to
// be somebody because of a text.
func mayName(r kind.Reader, i *model.Identity, ca string) bool {
	if len(i.ExternalIDIssuers) > 0 {
		return i.NamedBy(ca)
	}
	return !power.Holds(r, i) && !hasOwnWay(r, i.ID)
}

// hasOwnWay reports whether an identity has an authenticator, or is invited to
// get one.
func hasOwnWay(r kind.Reader, identity string) bool {
	_, has := model.Authenticators.Find(r, "identityId", identity)
	_, invited := model.Enrollments.Find(r, "identityId", identity)
	return has || invited
}

// tellNaming has the log say whom an issuer may not name, and what to do if it
// should.
func tellNaming(log *slog.Logger, issuer string, i *model.Identity) {
	log.Warn("a CA or an external JWT signer named an identity that it may not name; add it to the identity's externalIdIssuers if it should",
		"issuer", issuer, "identity", i.ID)
}
