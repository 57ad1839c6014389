package management

import (
	"net/http"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
)

// summaryOut is how many there are of everything.
type summaryOut struct {
	APISessions               int `json:"apiSessions" doc:"How many API sessions there are."`
	APISessionCertificates    int `json:"apiSessionCertificates" doc:"How many certificates of API sessions there are."`
	AuthPolicies              int `json:"authPolicies" doc:"How many authentication policies there are."`
	Authenticators            int `json:"authenticators" doc:"How many authenticators there are."`
	CAs                       int `json:"cas" doc:"How many CAs there are."`
	Controllers               int `json:"controllers" doc:"How many controllers there are, this one among them."`
	Configs                   int `json:"configs" doc:"How many configs there are."`
	ConfigTypes               int `json:"configTypes" doc:"How many config types there are."`
	EdgeRouterPolicies        int `json:"edgeRouterPolicies" doc:"How many edge router policies there are."`
	Enrollments               int `json:"enrollments" doc:"How many outstanding enrollments there are."`
	EventualEvents            int `json:"eventualEvents" doc:"Always 0; other controllers put work off."`
	ExternalJWTSigners        int `json:"externalJwtSigners" doc:"How many external JWT signers there are."`
	Identities                int `json:"identities" doc:"How many identities there are."`
	IdentityTypes             int `json:"identityTypes" doc:"How many types of identities there are."`
	MFAs                      int `json:"mfas" doc:"How many second factors there are."`
	PostureChecks             int `json:"postureChecks" doc:"How many posture checks there are."`
	PostureCheckTypes         int `json:"postureCheckTypes" doc:"How many types of posture checks there are."`
	Revocations               int `json:"revocations" doc:"Always 0: API sessions are deleted, which counts at once."`
	Routers                   int `json:"routers" doc:"How many routers, edge routers among them, there are."`
	EdgeRouters               int `json:"routers.edge" doc:"How many edge routers there are."`
	ServiceEdgeRouterPolicies int `json:"serviceEdgeRouterPolicies" doc:"How many service edge router policies there are."`
	ServicePolicies           int `json:"servicePolicies" doc:"How many service policies there are."`
	Services                  int `json:"services" doc:"How many services there are."`
	EdgeServices              int `json:"services.edge" doc:"How many services that clients can use there are."`
	Sessions                  int `json:"sessions" doc:"How many sessions to dial or host there are."`
	Terminators               int `json:"terminators" doc:"How many terminators there are."`
}

func mountSummary(a *rest.API) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/summary", Name: "listSummary", Tag: "informational",
		Doc: "Count everything.", Auth: rest.Admin, Need: "status:read",
	}, func(c *rest.Call, _ rest.None) (summaryOut, error) {
		n := c.Snap.Len
		return summaryOut{
			MFAs: n(model.MFAs.Def), APISessionCertificates: n(model.SessionCertificates.Def),
			APISessions: n(model.APISessions.Def), AuthPolicies: n(model.AuthPolicies.Def),
			Authenticators: n(model.Authenticators.Def), CAs: n(model.CAs.Def), Controllers: n(model.Controllers.Def), Configs: n(model.Configs.Def),
			ConfigTypes: n(model.ConfigTypes.Def), EdgeRouterPolicies: n(model.EdgeRouterPolicies.Def),
			Enrollments: n(model.Enrollments.Def), ExternalJWTSigners: n(model.ExtJWTSigners.Def),
			Identities: n(model.Identities.Def), IdentityTypes: n(model.IdentityTypes.Def),
			PostureChecks: n(model.PostureChecks.Def), PostureCheckTypes: n(model.PostureCheckTypes.Def),
			Routers: n(model.Routers.Def), EdgeRouters: n(model.EdgeRouters.Def),
			ServiceEdgeRouterPolicies: n(model.ServiceEdgeRouterPolicies.Def), ServicePolicies: n(model.ServicePolicies.Def),
			Services: n(model.Services.Def), EdgeServices: n(model.Services.Def), Sessions: n(model.Sessions.Def),
			Terminators: n(model.Terminators.Def),
		}, nil
	})
}

// attributeSchema lets filters name the attribute itself, as id.
var attributeSchema = filter.NewSchema(filter.Symbol[string]{
	Name: "id", Type: filter.String, One: filter.StringValue,
})

// mountRoleAttributes offers the role attributes in use by a kind.
func mountRoleAttributes(a *rest.API) {
	for _, r := range []struct {
		path, name string
		of         *kind.Def
	}{
		{"/edge-router-role-attributes", "listEdgeRouterRoleAttributes", model.EdgeRouters.Def},
		{"/identity-role-attributes", "listIdentityRoleAttributes", model.Identities.Def},
		{"/service-role-attributes", "listServiceRoleAttributes", model.Services.Def},
		{"/posture-check-role-attributes", "listPostureCheckRoleAttributes", model.PostureChecks.Def},
	} {
		rest.Handle(a, rest.Op{
			Method: http.MethodGet, Path: r.path, Name: r.name, Tag: "role-attributes",
			Doc: "List the role attributes that " + r.of.Path + " have.", Auth: rest.Admin, Need: r.of.Name + ":read",
		}, func(c *rest.Call, _ rest.None) (rest.Texts, error) {
			q, page, err := rest.Query(c, attributeSchema)
			if err != nil {
				return rest.Texts{}, err
			}
			list, total := q.Select(filter.Rows[string]{Seq: c.Snap.Attributes(r.of), ByID: true}, page)
			return rest.Texts{Page: page, Total: total, Items: list}, nil
		})
	}
}
