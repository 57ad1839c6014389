// Package management is the Edge Management API: everything that those who
// run the network need. Its operations are for admins unless they say
// otherwise.
package management

import (
	"net/http"

	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/policy/access"
	"netkeep/internal/web/api"
	"netkeep/internal/web/rest"
)

// Mount adds the operations.
func Mount(a *rest.API, s *api.Service) {
	api.Mount(a, s)
	views := map[*kind.Def]*rest.View{}
	for _, r := range resources(s) {
		r.Auth = rest.Admin
		if r.Kind.Attributes != nil {
			r.Params = append(r.Params, api.RoleParams...)
			if r.Narrow == nil {
				r.Narrow = narrowByRoles(r.Kind)
			}
		}
		views[r.Kind] = r.Mount(a)
	}
	mountAliases(a, s)
	for _, r := range access.Relations {
		if view := views[r.To]; view != nil {
			mountRelation(a, r, view)
		}
	}
	mountIdentities(a, s)
	mountAuthenticators(a, s)
	mountEnrollments(a, s)
	mountReenroll(a, s)
	mountSessions(a, s)
	mountRoleAttributes(a)
	mountSummary(a)
	mountDatabase(a, s)
}

// resources are the kinds that are offered as they are.
func resources(s *api.Service) []rest.Resource {
	readOnly := rest.Lists | rest.Gets
	return []rest.Resource{
		{Kind: model.AuthPolicies.Def, Noun: "authPolicy", Plural: "authPolicies", Verbs: rest.CRUD},
		{Kind: model.Authenticators.Def, Noun: "authenticator", Verbs: readOnly},
		{Kind: model.CAs.Def, Noun: "ca", Verbs: rest.CRUD, Prepare: prepareCA, Derived: caColumns},
		{Kind: model.ConfigTypes.Def, Noun: "configType", Verbs: rest.CRUD},
		{Kind: model.Configs.Def, Noun: "config", Verbs: rest.CRUD},
		{Kind: model.EdgeRouterPolicies.Def, Noun: "edgeRouterPolicy", Plural: "edgeRouterPolicies", Verbs: rest.CRUD, Derived: systemColumn},
		{Kind: model.EdgeRouters.Def, Noun: "edgeRouter", Verbs: rest.CRUD, Derived: edgeRouterColumns(s), Prepare: prepareEdgeRouter(s)},
		{Kind: model.Enrollments.Def, Noun: "enrollment", Verbs: readOnly | rest.Deletes},
		{Kind: model.ExtJWTSigners.Def, Noun: "externalJwtSigner", Verbs: rest.CRUD, Prepare: prepareSigner(s)},
		{Kind: model.Identities.Def, Noun: "identity", Plural: "identities", Verbs: rest.CRUD, Derived: api.IdentityColumns(s), Prepare: prepareIdentity(s), Inputs: identityInputs},
		{Kind: model.IdentityTypes.Def, Noun: "identityType", Verbs: readOnly},
		{Kind: model.PostureCheckTypes.Def, Noun: "postureCheckType", Verbs: readOnly},
		{Kind: model.PostureChecks.Def, Noun: "postureCheck", Verbs: rest.CRUD, Derived: postureCheckColumns},
		{Kind: model.Routers.Def, Noun: "router", Verbs: rest.CRUD, Derived: routerColumns(s), Prepare: prepareRouter(s), Refuse: refuseEdge},
		{Kind: model.ServiceEdgeRouterPolicies.Def, Noun: "serviceEdgeRouterPolicy", Plural: "serviceEdgeRouterPolicies", Verbs: rest.CRUD},
		{Kind: model.ServicePolicies.Def, Noun: "servicePolicy", Plural: "servicePolicies", Verbs: rest.CRUD},
		{Kind: model.Services.Def, Noun: "service", Verbs: rest.CRUD, Derived: api.ServiceColumns(s), Joins: api.ServiceJoins, Narrow: narrowServices(s), Params: []rest.Parameter{api.AsIdentityParam}},
		{Kind: model.Terminators.Def, Noun: "terminator", Verbs: rest.CRUD, Derived: terminatorColumns, Joins: terminatorJoins},
	}
}

// mountAliases offers resources under the other names that clients know.
func mountAliases(a *rest.API, s *api.Service) {
	for _, r := range resources(s) {
		switch r.Kind {
		case model.Routers.Def:
			r.Path, r.Noun = "transit-routers", "transitRouter"
		case model.ExtJWTSigners.Def:
			r.Path, r.Noun = "ext-jwt-signers", "extJwtSigner"
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
	rest.ShowList(a, rest.Op{
		Method: http.MethodGet, Path: "/" + r.From.Path + "/{id}/" + r.Path, Name: r.Name, Tag: r.From.Path,
		Doc: "List the " + r.Path + " of one of the " + r.From.Path + ".", Auth: rest.Admin,
	}, view, func(c *rest.Call) (rest.Records, error) {
		return r.Find(c.Snap, c.Param("id")).Records(), nil
	})
}
