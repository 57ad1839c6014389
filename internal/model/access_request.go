package model

import (
	"slices"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Requests says how a service may be asked for by those who have no access to it.
type Requests struct {
	Attribute      string `json:"attribute" kind:"required,range=1..256" doc:"The role attribute that an approved request gives for a time, without #; a service policy of the type Dial lets those who have it use the service. No role binding may look for it."`
	Approvers      string `json:"approvers" kind:"required,range=1..256" doc:"The role attribute of those who may approve and deny requests, without #; it cannot be the one that requests give."`
	Approvals      int    `json:"approvals" kind:"range=1..2,default=1" doc:"How many of them have to approve a request, each another one; 1 if not given."`
	LongestMinutes int    `json:"longestMinutes" kind:"range=1..10080,default=480" doc:"For how many minutes somebody may ask at most, up to a week; 480 if not given."`
}

// checkRequests wants attributes that policies can ask for, and somebody else to
// approve than those who were let in.
func (s *Service) checkRequests() error {
	q := s.Requests
	if q == nil {
		return nil
	}
	for _, f := range []struct{ name, attribute string }{{"requests.attribute", q.Attribute}, {"requests.approvers", q.Approvers}} {
		if f.attribute == "" {
			return fault.Invalid(f.name, "is required", nil)
		}
		if f.attribute[0] == '#' || f.attribute[0] == '@' || !kind.Visible(f.attribute) {
			return fault.Invalid(f.name, "must be a role attribute without # before it, and without characters that nobody sees", f.attribute)
		}
	}
	if q.Attribute == q.Approvers {
		return fault.Invalid("requests.approvers", "must be another attribute than the one that requests give: whoever was let in once would decide on others", q.Approvers)
	}
	return nil
}

// Whole refuses an attribute to be asked for that gives power over the network: who
// approves has been trusted with a service, and no more. It looks at the write as a
// whole, in which a binding may come or go.
func (s *Service) Whole(r kind.Reader, old *Service) error {
	if s.Requests == nil || old != nil && old.Requests != nil && old.Requests.Attribute == s.Requests.Attribute {
		return nil
	}
	for b := range RoleBindings.Select(r, "identityRoles", "#"+s.Requests.Attribute) {
		return fault.Invalid("requests.attribute", "gives an admin role, by the role binding "+b.Name+", and cannot be asked for", s.Requests.Attribute)
	}
	return nil
}

// Whole is the same rule from the other side: an attribute that can be asked for
// gives no power.
func (b *RoleBinding) Whole(r kind.Reader, old *RoleBinding) error {
	if len(b.IdentityRoles) == 0 || old != nil && slices.Equal(old.IdentityRoles, b.IdentityRoles) {
		return nil
	}
	for s := range Services.All(r) {
		if s.Requests != nil && slices.Contains(b.IdentityRoles, "#"+s.Requests.Attribute) {
			return fault.Invalid("identityRoles", "must not look for an attribute that can be asked for, as that of the service "+s.Name+" can: whoever is let in there would have the role", "#"+s.Requests.Attribute)
		}
	}
	return nil
}

// Saved ends requests for what the service does not give any more: nobody who was
// asked about one thing decides on another.
func (s *Service) Saved(w kind.Writer, old *Service) error {
	if old == nil || old.Requests == nil || s.Requests != nil && s.Requests.Attribute == old.Requests.Attribute {
		return nil
	}
	var open []string
	for q := range AccessRequests.Select(w, "serviceId", s.ID) {
		if q.Pending() {
			open = append(open, q.ID)
		}
	}
	for _, id := range open {
		if err := AccessRequests.Edit(w, id, func(q *AccessRequest) error { q.Settle(Expired, w.Now()); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// AccessRequest is somebody who asks for access to a service for a time.
type AccessRequest struct {
	kind.Meta

	IdentityID  string     `json:"identityId" kind:"server,ref=identity:cascade,as=identity,alias=identity" doc:"Id of the identity that asks."`
	ServiceID   string     `json:"serviceId" kind:"server,ref=service:cascade,as=service,alias=service" doc:"Id of the service that it asks for."`
	Attribute   string     `json:"attribute" kind:"server" doc:"The role attribute that the identity has for the time, once the request is approved."`
	Minutes     int        `json:"minutes" kind:"server,range=1..10080" doc:"For how many minutes, from the moment of the approval."`
	Reason      string     `json:"reason" kind:"server,range=1..1000,format=visible" doc:"What it is for, in the words of who asks."`
	Standing    string     `json:"standing" kind:"server,index,enum=pending|approved|denied|withdrawn|expired,default=pending" doc:"What became of it: pending until it is approved, denied, withdrawn by who asked, or expired, since nobody decided in time or the service cannot be asked for any more."`
	Approvals   []Approval `json:"approvals" kind:"server,nofilter" doc:"Who has approved it so far, and when. One who may no longer approve when the last one does so does not count."`
	DecidedBy   string     `json:"decidedBy" kind:"server,nullable" doc:"Name of who had the last word, as it was then; null if it is pending or expired."`
	DecidedByID string     `json:"decidedById" kind:"server,nullable" doc:"Id of the identity that had the last word; null if it is pending or expired."`
	DecidedAt   *time.Time `json:"decidedAt" kind:"server,nullable" doc:"When it ceased to be pending; null if it is pending."`
	Answer      string     `json:"answer" kind:"server,nullable,range=0..1000" doc:"Why it was denied, in the words of who did; null if nobody said."`
	GrantID     string     `json:"grantId" kind:"server,nullable,ref=grant:clear,as=grant" doc:"Id of the grant that was made for it; null if there is none, or none any more."`
	ExpiresAt   time.Time  `json:"expiresAt" kind:"server" doc:"Until when it can be decided."`
}

// Approval is one who has approved a request.
type Approval struct {
	IdentityID string    `json:"identityId" doc:"Id of the identity that approved."`
	Name       string    `json:"name" doc:"Its name, as it was then."`
	At         time.Time `json:"at" doc:"When it did."`
}

// AccessRequests is the kind. It is in no files: it comes from the network being used.
var AccessRequests = kind.Define(kind.Spec[AccessRequest]{
	Name:    "access-request",
	Path:    "access-requests",
	Doc:     "Requests for access to services, and what became of them.",
	Verbs:   kind.Lists | kind.Gets,
	Columns: []string{"id", "identity", "service", "minutes", "standing", "reason", "createdAt", "decidedBy"},
})

// What became of a request.
const (
	Pending   = "pending"
	Approved  = "approved"
	Denied    = "denied"
	Withdrawn = "withdrawn"
	Expired   = "expired"
)

const (
	// RequestLife is how long a request waits for somebody to decide.
	RequestLife = 24 * time.Hour
	// RequestsKept is how long one is kept that is decided.
	RequestsKept = 30 * 24 * time.Hour
	// ToExpire is the group of requests that wait for somebody to decide.
	ToExpire = "expire "
)

// Pending reports whether nobody has had the last word.
func (q *AccessRequest) Pending() bool { return q.Standing == Pending }

// Settle says what became of it.
func (q *AccessRequest) Settle(standing string, now time.Time) {
	q.Standing, q.DecidedAt = standing, &now
}

// Check ends a request that nobody has decided in time.
func (q *AccessRequest) Check(r kind.Reader, _ *AccessRequest) error {
	if write, ok := r.(interface{ Now() time.Time }); ok && q.Pending() && !write.Now().Before(q.ExpiresAt) {
		q.Settle(Expired, write.Now())
	}
	return nil
}

// Ranked puts requests in the order of their next moments.
func (q *AccessRequest) Ranked() (group, place string) {
	switch {
	case q.Pending():
		return ToExpire, Place(q.ExpiresAt)
	case q.DecidedAt != nil:
		return ToForget, Place(q.DecidedAt.Add(RequestsKept))
	}
	return "", ""
}

// Has reports whether an identity has a role attribute at a moment. One that only a
// grant gives it counts as long as the grant does, also if it is yet to be written
// that it is over.
func (i *Identity) Has(r kind.Reader, attribute string, now time.Time) bool {
	if !slices.Contains(i.RoleAttributes, attribute) {
		return false
	}
	if !slices.Contains(i.GrantedAttributes, attribute) || slices.Contains(i.Provided(), attribute) {
		return true
	}
	for g := range Grants.Select(r, "identityId", i.ID) {
		if g.Attribute == attribute && g.validity().At(now) == Current {
			return true
		}
	}
	return false
}
