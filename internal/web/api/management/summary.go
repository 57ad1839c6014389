package management

import (
	"net/http"

	"netkeep/internal/lang/filter"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/web/rest"
)

// summaryOut is how many there are of everything.
type summaryOut struct {
	APISessions               int `json:"apiSessions"`
	APISessionCertificates    int `json:"apiSessionCertificates"`
	AuthPolicies              int `json:"authPolicies"`
	Authenticators            int `json:"authenticators"`
	CAs                       int `json:"cas"`
	Configs                   int `json:"configs"`
	ConfigTypes               int `json:"configTypes"`
	EdgeRouterPolicies        int `json:"edgeRouterPolicies"`
	Enrollments               int `json:"enrollments"`
	EventualEvents            int `json:"eventualEvents"`
	ExternalJWTSigners        int `json:"externalJwtSigners"`
	Identities                int `json:"identities"`
	IdentityTypes             int `json:"identityTypes"`
	MFAs                      int `json:"mfas"`
	PostureChecks             int `json:"postureChecks"`
	PostureCheckTypes         int `json:"postureCheckTypes"`
	Routers                   int `json:"routers"`
	EdgeRouters               int `json:"routers.edge"`
	ServiceEdgeRouterPolicies int `json:"serviceEdgeRouterPolicies"`
	ServicePolicies           int `json:"servicePolicies"`
	Services                  int `json:"services"`
	EdgeServices              int `json:"services.edge"`
	Sessions                  int `json:"sessions"`
	Terminators               int `json:"terminators"`
}

func mountSummary(a *rest.API) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/summary", Name: "listSummary", Tag: "informational",
		Doc: "Count everything.", Auth: rest.Admin,
	}, func(c *rest.Call, _ rest.None) (summaryOut, error) {
		n := c.Snap.Len
		return summaryOut{
			MFAs: n(model.MFAs.Def), APISessionCertificates: n(model.SessionCertificates.Def),
			APISessions: n(model.APISessions.Def), AuthPolicies: n(model.AuthPolicies.Def),
			Authenticators: n(model.Authenticators.Def), CAs: n(model.CAs.Def), Configs: n(model.Configs.Def),
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
			Doc: "List the role attributes that " + r.of.Path + " have.", Auth: rest.Admin,
		}, func(c *rest.Call, _ rest.None) (rest.Texts, error) {
			q, page, err := rest.Query(c, attributeSchema)
			if err != nil {
				return rest.Texts{}, err
			}
			list, total := q.Select(filter.Rows[string]{Seq: c.Snap.Attributes(r.of), Ordered: len(q.Sort()) == 0}, page)
			return rest.Texts{Page: page, Total: total, Items: list}, nil
		})
	}
}
