package model

import (
	"slices"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Grant gives an identity a role attribute for a time.
type Grant struct {
	kind.Meta

	Name       string `json:"name" kind:"unique,range=0..256" doc:"What people call the grant; no two grants have the same name. Its id if not given."`
	IdentityID string `json:"identityId" kind:"required=create,fixed,ref=identity:cascade,as=identity,alias=identity" doc:"Id of the identity that has the attribute for a time."`
	Attribute  string `json:"attribute" kind:"required=create,fixed,range=1..256" doc:"The role attribute, without #: while the grant counts, policies find the identity by it as if it were one of its own."`
	Reason     string `json:"reason" kind:"required=create,keep,range=1..1000,format=visible" doc:"What it is for, in words, for whoever asks later."`
	// As those of a policy, except that a grant has an end.
	ValidFrom   *time.Time `json:"validFrom" kind:"nullable,keep" doc:"When it begins to count, to the millisecond; null if at once. A replace without it leaves it as it is."`
	ValidUntil  time.Time  `json:"validUntil" kind:"required=create,keep" doc:"When it ends to count, to the millisecond: what rests on it ends then. A replace without it leaves it as it is."`
	Standing    string     `json:"standing" kind:"server,enum=current|upcoming|over,default=current" doc:"Whether it counts now (current), not yet (upcoming) or no more (over); only what counts gives anybody anything."`
	GrantedBy   string     `json:"grantedBy" kind:"server,nullable" doc:"Name of who made the grant, as it was then; null if it has none."`
	GrantedByID string     `json:"grantedById" kind:"server,nullable" doc:"Id of the identity that made the grant; null if none did."`
	RequestID   string     `json:"requestId" kind:"server,nullable" doc:"Id of the request that the grant answers; null if somebody made it unasked."`
}

// Grants is the kind.
var Grants = kind.Define(kind.Spec[Grant]{
	Name:    "grant",
	Path:    "grants",
	Doc:     "Create a grant: a role attribute that an identity has for a time.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "identity", "attribute", "standing", "validFrom", "validUntil", "reason", "grantedBy"},
	InFiles: true,
})

// Fill names a grant that nobody has named.
func (g *Grant) Fill() {
	if g.Name == "" {
		g.Name = g.ID
	}
}

// validity is from when and until when it counts.
func (g *Grant) validity() *Validity { return &Validity{g.ValidFrom, &g.ValidUntil, g.Standing} }

// Counts reports whether the identity has the attribute by it.
func (g *Grant) Counts() bool { return g.validity().Counts() }

// Timed reports that every grant ends by itself.
func (g *Grant) Timed() bool { return true }

// Check wants an attribute that a policy can ask for, and keeps the grant what it is
// at the moment.
func (g *Grant) Check(r kind.Reader, old *Grant) error {
	if g.Attribute != "" && (g.Attribute[0] == '#' || g.Attribute[0] == '@' || !kind.Visible(g.Attribute)) {
		return fault.Invalid("attribute", "must be a role attribute without # before it, and without characters that nobody sees", g.Attribute)
	}
	v := g.validity()
	err := v.settle(r, old == nil)
	g.ValidFrom, g.ValidUntil, g.Standing = v.ValidFrom, *v.ValidUntil, v.Standing
	return err
}

// Saved gives the identity the attribute, or takes it.
func (g *Grant) Saved(w kind.Writer, _ *Grant) error { return regrant(w, g.IdentityID) }

// Deleted takes the attribute, if there is somebody left to take it from.
func (g *Grant) Deleted(w kind.Writer) error { return regrant(w, g.IdentityID) }

// GrantsKept is how long a grant that is over is kept, for those who wonder why
// something worked yesterday. The audit log knows of it for longer.
const GrantsKept = 30 * 24 * time.Hour

// ToForget is the group of grants that wait for being forgotten.
const ToForget = "forget "

// Ranked puts grants in the order of their next moments.
func (g *Grant) Ranked() (group, place string) {
	if g.Standing == Over {
		return ToForget, Place(g.ValidUntil.Add(GrantsKept))
	}
	return g.validity().Ranked()
}

// Granted returns the attributes that an identity's grants give it now, in order.
func Granted(r kind.Reader, identityID string) []string {
	var all []string
	for g := range Grants.Select(r, "identityId", identityID) {
		if g.Counts() {
			all = append(all, g.Attribute)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// regrant has an identity look at its grants again.
func regrant(w kind.Writer, identityID string) error {
	i, there := Identities.Get(w, identityID)
	if !there || slices.Equal(without(Granted(w, identityID), i.Own()), i.GrantedAttributes) {
		return nil
	}
	return Identities.Edit(w, identityID, func(*Identity) error { return nil })
}
