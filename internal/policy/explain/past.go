package explain

import (
	"slices"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// Past is Explain for a snapshot of the past: by records alone, since of what came
// and went with use nothing is known. Nobody can mend anything there.
func (n Network) Past(snap *state.Snapshot, identityID, serviceID, typ string) (Explanation, error) {
	n.Online = func(string) bool { return false }
	q, err := n.ask(snap, identityID, serviceID, typ)
	if err != nil {
		return Explanation{}, err
	}
	q.chain = n.Grants.Chain(snap, &model.APISession{IdentityID: identityID}, serviceID, typ)
	q.findRoutes()
	e := q.explanation()
	e.Links = []Link{q.pastIdentityLink(), q.policyLink(), q.routerPolicyLink(), q.servicePathLink(), q.pastRouterLink()}
	e.Unknown = []string{sessionLink, postureLink}
	if typ == model.Dial {
		e.Unknown = append(e.Unknown, terminatorLink)
	}
	e.Allowed = !slices.ContainsFunc(e.Links, func(l Link) bool { return !l.Passed })
	for i := range e.Links {
		l := &e.Links[i]
		l.Because, l.Remedy, l.Changes = l.Because[:min(len(l.Because), maxCauses)], "", []Change{}
	}
	return e, nil
}

// pastIdentityLink holds if the identity was not disabled then.
func (q *question) pastIdentityLink() Link {
	l := Link{Link: identityLink, Because: []Cause{q.cause("")}, Passed: true, What: q.identity.Name + " existed and was enabled"}
	if q.identity.Disabled(q.snap.Time) {
		l.Passed, l.What = false, q.identity.Name+" was disabled"
	}
	return l
}

// pastRouterLink holds if there was a router that both might use.
func (q *question) pastRouterLink() Link {
	l := Link{Link: routerLink, Because: []Cause{}, What: q.identity.Name + " and " + q.service.Name + " had no edge router in common"}
	if q.chain.Routed() != nil {
		return l
	}
	l.Passed, l.What = true, "both might use "+some(names(q.routes.offline))+"; whether it was online is not known"
	for _, router := range q.routes.offline {
		l.Because = append(l.Because, cause(model.EdgeRouters.Def, router.ID, router.Name, ""))
	}
	return l
}
