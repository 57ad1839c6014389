package management

import (
	"net/http"
	"net/url"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// mountSessions offers the sessions of everyone. Their tokens are shown to
// their owners only.
func mountSessions(a *rest.API, s *api.Service) {
	rest.Resource{
		Kind: model.APISessions.Def, Auth: rest.Admin, Verbs: kind.Lists | kind.Gets, Asked: ownToken,
		Derived: append([]rest.Derived{
			api.Constant("token", "Empty: only the session itself is told its token.", api.Text, `""`),
			api.Constant("authQueries", "Empty: only the session itself is told what it lacks.", kind.ListOf(api.AnyMap), "[]"),
			{Name: "cachedLastActivityAt", Doc: api.LastActivityDoc, Schema: api.Moment, Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
				return kind.AppendTime(dst, s.Sessions.LastActivity(rec.(*model.APISession)))
			}},
			rest.Links(func(rec kind.Record) []rest.Link {
				id := rec.Base().ID
				return []rest.Link{
					{Name: "self", Href: model.APISessions.Path + "/" + id},
					{Name: "sessions", Href: model.Sessions.Path + "?filter=" + url.QueryEscape(`apiSession="`+id+`"`)},
				}
			}),
		}, s.CertColumns()...),
	}.Mount(a)
	rest.Handle(a, rest.Op{
		Method: http.MethodDelete, Path: "/api-sessions/{id}", Name: "deleteApiSession", Tag: "api-sessions",
		Doc: "End an API session and all that came with it.", Auth: rest.Admin, Need: "api-session:delete",
	}, func(c *rest.Call, _ rest.None) (rest.Empty, error) {
		return rest.Empty{}, s.Sessions.End(c.Context(), c.Author(), c.Param("id"))
	})
	rest.Resource{
		Kind: model.Sessions.Def, Auth: rest.Admin, Verbs: kind.Lists | kind.Gets | kind.Deletes, Asked: api.SessionTokens(s),
		Derived: append(api.SessionColumns(s), api.PoliciesColumn()),
	}.Mount(a)
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/sessions/{id}/route-path", Name: "detailSessionRoutePath", Tag: "sessions",
		Doc: "Get the routers that a session's traffic takes.", Auth: rest.Admin, Need: "session:read",
	}, func(c *rest.Call, _ rest.None) (routePathOut, error) {
		if _, ok := model.Sessions.Get(c.Snap, c.Param("id")); !ok {
			return routePathOut{}, fault.NotFound("session", c.Param("id"))
		}
		return routePathOut{}, nil
	})
}

// ownToken lets filters name the token of the API session that asks. Those of
// others match nothing, so that nobody finds one out by asking.
func ownToken(c *rest.Call) []filter.Symbol[kind.Record] {
	return []filter.Symbol[kind.Record]{{Name: "token", Type: filter.String, One: func(rec kind.Record) filter.Value {
		if who := api.Caller(c); who != nil && who.Session().ID == rec.Base().ID {
			return filter.StringValue(who.Token())
		}
		return filter.Value{}
	}}}
}

// routePathOut is the routers that a session's traffic takes; none without a
// circuit.
type routePathOut struct {
	RoutePath []string `json:"routePath" doc:"Ids of the routers, from client to host; empty while there is no traffic."`
}
