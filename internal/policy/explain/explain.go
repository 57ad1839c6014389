// Package explain says in words why an identity can or cannot use a service,
// and what would have to change. It decides nothing: each link asks the code
// that gives sessions out, lets them go on and chooses hosts, so that what it
// says is what happens. It must not import rest or api.
package explain

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/grant"
)

// Explanation is the whole chain from an identity to a service.
type Explanation struct {
	IdentityID string `json:"identityId" doc:"Id of the identity."`
	Identity   string `json:"identity" doc:"What people call the identity."`
	ServiceID  string `json:"serviceId" doc:"Id of the service."`
	Service    string `json:"service" doc:"What people call the service."`
	Type       string `json:"type" kind:"required,enum=Dial|Bind" doc:"What is explained: Dial is to use the service, Bind to host it."`
	Allowed    bool   `json:"allowed" doc:"Whether every link holds, so that the identity can use the service now."`
	// Until is about policies alone: what else may end is not known before.
	Until *time.Time `json:"until" kind:"omit" doc:"When service policies end to let it if nobody changes anything; left out if they do not end by themselves, or if none lets it."`
	Links []Link     `json:"links" doc:"What it takes, in the order in which it is looked at; all of it, also after a link that does not hold."`
	// Unknown is for the past.
	Unknown []string `json:"unknown" doc:"Links that are left out since nothing is known of them in the past: who was logged in, what devices reported, which routers were connected and who hosted through them. Empty in the present."`
}

// Link is one of the things that have to hold.
type Link struct {
	Link    string  `json:"link" kind:"required,enum=identity|session|service-policy|posture|edge-router-policy|service-edge-router-policy|router|terminator" doc:"Which link of the chain."`
	Passed  bool    `json:"passed" doc:"Whether it holds."`
	What    string  `json:"what" doc:"Why it holds or does not, in a sentence."`
	Because []Cause `json:"because" doc:"Records that make it so; the first hundred."`
	Remedy  string  `json:"remedy" doc:"The smallest change that would make it hold, as a command where there is one; empty if it holds."`
	// Changes is for programs.
	Changes []Change `json:"changes" doc:"The remedy as what to send to applyChanges, as a plan first; empty if the link holds, or if no change of a record would mend it."`
}

// Change is what a remedy does to a record.
type Change struct {
	Op     string         `json:"op" kind:"enum=create|patch" doc:"What to do."`
	Kind   string         `json:"kind" doc:"Kind of the record to do it to."`
	Target string         `json:"target" kind:"omit" doc:"Id of the record; left out for create."`
	Body   jsontext.Value `json:"body" doc:"What to create it with, or what to change."`
}

// Cause is a record that has a part in a link.
type Cause struct {
	Kind  string     `json:"kind" doc:"Kind of the record, such as service-policy."`
	ID    string     `json:"id" doc:"Id of the record."`
	Name  string     `json:"name" doc:"What people call the record, or what tells it from others."`
	Role  string     `json:"role" doc:"Role by which the policy before it in the list selects the record; empty if it is not about that."`
	Until *time.Time `json:"until" kind:"omit" doc:"When the policy ends, or when the last grant ends that gives the attribute of the role; left out if it does not end by itself."`
	From  string     `json:"from" kind:"omit" doc:"Name of the external JWT signer that provides the attribute of the role, the first of several; left out if it is the record's own."`
}

// The links, in order.
const (
	identityLink      = "identity"
	sessionLink       = "session"
	servicePolicyLink = "service-policy"
	postureLink       = "posture"
	routerPolicyLink  = "edge-router-policy"
	servicePathLink   = "service-edge-router-policy"
	routerLink        = "router"
	terminatorLink    = "terminator"
)

// Bounds of what one link says.
const (
	maxCauses          = 100
	maxNamesInSentence = 5
)

// Network is what explanations ask.
type Network struct {
	Sessions *authn.APISessions
	Grants   *grant.Grants
	// Locked reports whether the password of an identity is shut out because it
	// was wrong too often.
	Locked func(identityID string) bool
	// Online reports whether a router is connected.
	Online func(routerID string) bool
	// Hosts returns the terminators at which a circuit of a client at a router
	// could end.
	Hosts func(snap *state.Snapshot, service *model.Service, routerID string) []*model.Terminator
}

// question is what is to be explained, with what has been found.
type question struct {
	Network
	snap     *state.Snapshot
	identity *model.Identity
	service  *model.Service
	typ      string
	sessions []apiSession
	chain    *grant.Chain // of the session that gets furthest
	routes   routes
}

// Explain walks the chain of an identity and a service. Unknown ids are not
// found.
func (n Network) Explain(snap *state.Snapshot, identityID, serviceID, typ string) (Explanation, error) {
	q, err := n.ask(snap, identityID, serviceID, typ)
	if err != nil {
		return Explanation{}, err
	}
	q.findSessions()
	q.findRoutes()
	e := q.explanation()
	e.Links = []Link{q.identityLink(), q.sessionLink(), q.policyLink(), q.postureLink(), q.routerPolicyLink(), q.servicePathLink(), q.routerLink()}
	if typ == model.Dial {
		e.Links = append(e.Links, q.terminatorLink())
	}
	e.Allowed = !slices.ContainsFunc(e.Links, func(l Link) bool { return !l.Passed })
	for i := range e.Links {
		l := &e.Links[i]
		l.Because = l.Because[:min(len(l.Because), maxCauses)]
		if l.Passed {
			l.Remedy, l.Changes = "", nil
		}
		if l.Changes == nil {
			l.Changes = []Change{}
		}
	}
	return e, nil
}

// ask is the question about an identity and a service.
func (n Network) ask(snap *state.Snapshot, identityID, serviceID, typ string) (*question, error) {
	identity, ok := model.Identities.Get(snap, identityID)
	if !ok {
		return nil, fault.NotFound(model.Identities.Name, identityID)
	}
	service, ok := model.Services.Get(snap, serviceID)
	if !ok {
		return nil, fault.NotFound(model.Services.Name, serviceID)
	}
	return &question{Network: n, snap: snap, identity: identity, service: service, typ: typ}, nil
}

// explanation is one that has no links yet.
func (q *question) explanation() Explanation {
	return Explanation{IdentityID: q.identity.ID, Identity: q.identity.Name, ServiceID: q.service.ID, Service: q.service.Name, Type: q.typ, Unknown: []string{}, Until: Until(q.snap, q.identity, q.service.ID, q.typ)}
}

// apiSession is one of the identity's, with what is wrong with it.
type apiSession struct {
	*model.APISession
	flaw authn.Flaw
}

// findSessions finds the identity's API sessions, the one that gets furthest
// first: one that is good and whose device passes before one whose device does
// not, before the others, and the latest before the older. Without any, the
// chain is that of a device of which nothing is known.
func (q *question) findSessions() {
	q.chain = q.Grants.Chain(q.snap, &model.APISession{IdentityID: q.identity.ID}, q.service.ID, q.typ)
	var best *apiSession
	rank := -1
	for api := range model.APISessions.Select(q.snap, "identityId", q.identity.ID) {
		q.sessions = append(q.sessions, apiSession{api, q.Sessions.Flaw(q.snap, api)})
	}
	slices.SortFunc(q.sessions, func(a, b apiSession) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for i := range q.sessions {
		s := &q.sessions[i]
		chain, reached := q.Grants.Chain(q.snap, s.APISession, q.service.ID, q.typ), 0
		if s.flaw == "" {
			reached++
			if chain.Cleared() == nil {
				reached++
			}
		}
		if reached > rank {
			best, rank, q.chain = s, reached, chain
		}
	}
	if best != nil {
		q.sessions[0], *best = *best, q.sessions[0]
	}
}

func cause(d *kind.Def, id, name, role string) Cause {
	return Cause{Kind: d.Name, ID: id, Name: name, Role: role}
}
