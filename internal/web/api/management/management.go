// Package management is the Edge Management API: everything that those who
// run the network need. Its operations are for admins unless they say
// otherwise.
package management

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/history"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/validity"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// Mount adds the operations.
func Mount(a *rest.API, s *api.Service) {
	past := history.New(s.Audit, s.Sessions.Now)
	a.Past = func(ctx context.Context, at string) (*state.Snapshot, error) {
		if moment, ahead := toCome(at, s.Sessions.Now()); ahead {
			will, _, err := validity.At(ctx, a.State, a.State.Snapshot(), moment)
			return will, err
		}
		then, err := past.At(ctx, "at", at)
		if err != nil {
			return nil, err
		}
		return then.Snapshot, nil
	}
	a.Override = mayOverride
	api.Mount(a, s)
	mounted := map[*kind.Def]*rest.Mounted{}
	for _, r := range resources(s) {
		r.Auth = rest.Admin
		if r.Kind.Attributes != nil {
			r.Params = append(r.Params, api.RoleParams...)
			if r.Narrow == nil {
				r.Narrow = narrowByRoles(r.Kind)
			}
		}
		mounted[r.Kind] = r.Mount(a)
	}
	mountAliases(a, s)
	for _, r := range access.Relations {
		if to := mounted[r.To]; to != nil {
			mountRelation(a, r, to.View)
		}
	}
	mountExplain(a, s)
	mountIdentities(a, s)
	mountPreview(a, s)
	mountAuthenticators(a, s)
	mountEnrollments(a, s)
	mountReenroll(a, s)
	mountTokens(a, s)
	mountSessions(a, s)
	mountRoleAttributes(a)
	mountSummary(a)
	mountDatabase(a, s)
	mountAudit(a, s)
	mountHistory(a, s, past)
	mountUndo(a, s, mounted)
	mountCluster(a, s)
	mountStatus(a, s)
	mountRecent(a, s)
	mountAlerts(a, s)
	mountRequests(a)
	mountChanges(a, s, mounted)
	mountAssertions(a)
	mountLint(a, s)
	mountEvents(a, s, mounted)
	mountLater(a)
}

// toCome is a moment that is yet to come, if a text is one.
func toCome(at string, now time.Time) (moment time.Time, is bool) {
	moment, err := time.Parse(time.RFC3339, at)
	return moment, err == nil && moment.After(now)
}

// resources are the kinds that are offered as they are.
func resources(s *api.Service) []rest.Resource {
	readOnly := kind.Lists | kind.Gets
	return []rest.Resource{
		{Kind: model.AccessRequests.Def},
		{Kind: model.AdminRoles.Def, Derived: systemColumn},
		{Kind: model.Assertions.Def},
		{Kind: model.AuditEntries.Def, Log: s.Audit},
		{Kind: model.AuthPolicies.Def},
		{Kind: model.Authenticators.Def, Verbs: readOnly, Derived: []rest.Derived{api.IssuedColumn}, Joins: api.AuthenticatorJoins},
		{Kind: model.CAs.Def, Prepare: prepareCA, Derived: caColumns},
		{Kind: model.ConfigTypes.Def},
		{Kind: model.Controllers.Def, Derived: api.ControllerColumns(s)},
		{Kind: model.Configs.Def},
		{Kind: model.EdgeRouterPolicies.Def, Derived: slices.Concat(systemColumn, insideColumn(func(p *model.EdgeRouterPolicy) bool { return p.Inside }))},
		{Kind: model.EdgeRouters.Def, Derived: edgeRouterColumns(s), Prepare: prepareEdgeRouter(s)},
		{Kind: model.Enrollments.Def, Verbs: readOnly | kind.Deletes},
		{Kind: model.ExtJWTSigners.Def, Noun: "externalJwtSigner", Announce: warnOfSigner(s)},
		{Kind: model.Grants.Def, Prepare: prepareGrant},
		{Kind: model.Identities.Def, Derived: api.IdentityColumns(s), Joins: api.IdentityJoins, Prepare: prepareIdentity(s), Inputs: identityInput.Fields},
		{Kind: model.IdentityTypes.Def},
		{Kind: model.PostureCheckTypes.Def},
		{Kind: model.PostureChecks.Def, Derived: postureCheckColumns},
		{Kind: model.RoleBindings.Def},
		{Kind: model.Routers.Def, Derived: routerColumns(s), Prepare: prepareRouter(s), Refuse: refuseEdge},
		{Kind: model.ServiceEdgeRouterPolicies.Def, Derived: insideColumn(func(p *model.ServiceEdgeRouterPolicy) bool { return p.Inside })},
		{Kind: model.ServicePolicies.Def, Asked: policySymbols},
		{Kind: model.Services.Def, Derived: api.ServiceColumns(s), Asked: api.ServiceSymbols, Narrow: narrowServices(s), Params: []rest.Parameter{api.AsIdentityParam}},
		{Kind: model.Terminators.Def, Derived: []rest.Derived{api.DynamicCost(s)}, Asked: api.TerminatorSymbols},
		{Kind: model.Tokens.Def, Derived: tokenColumns(s)},
	}
}

// mountAliases offers resources under the other names that clients know.
func mountAliases(a *rest.API, s *api.Service) {
	for _, r := range resources(s) {
		switch r.Kind {
		case model.Routers.Def:
			r.Path, r.Noun = "transit-routers", "transitRouter"
		case model.ExtJWTSigners.Def:
			r.Path, r.Noun = "ext-jwt-signers", ""
		default:
			continue
		}
		r.Auth = rest.Admin
		r.Mount(a)
	}
}

// mountRelation offers the records of one kind that belong to a record of
// another.
func mountRelation(a *rest.API, r access.Relation, view *rest.View) {
	op := rest.Op{
		Method: http.MethodGet, Path: "/" + r.From.Path + "/{id}/" + r.Path, Name: r.Name, Tag: r.From.Path,
		Doc: "List the " + r.Path + " of one of the " + r.From.Path + ".", Auth: rest.Admin, Need: r.From.Name + ":read",
	}
	if r.To.Noted {
		op.Params = append(op.Params, rest.AtParam)
	}
	if r.Through != nil {
		op.Params = append(op.Params, policyTypeParam)
	}
	rest.ShowList(a, op, view, func(c *rest.Call) (rest.Records, error) {
		if r.Through != nil && policyTypeParam.Of(c) != "" {
			return r.Through(c.Snap, c.Param("id"), policyTypeParam.Of(c)).Records(), nil
		}
		return r.Find(c.Snap, c.Param("id")).Records(), nil
	})
}

var policyTypeParam = rest.ChoiceParam("policyType",
	"Whether only service policies count that let identities dial (Dial) or host (Bind); both do if not given.",
	strings.EqualFold, model.Dial, model.Bind)
