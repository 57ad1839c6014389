package management

import (
	"slices"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// systemColumn says whether the system keeps the record.
var systemColumn = []rest.Derived{{Name: "isSystem", Doc: "Whether the controller keeps the record for itself, so that nobody can change or delete it.", Schema: api.Boolean, Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
	return kind.AppendAny(dst, rec.Base().System)
}}}

// postureCheckColumns are what answers show of a posture check beyond its
// record.
var postureCheckColumns = []rest.Derived{api.Constant("version", "Version of the check's type, which is always 1.", api.Integer, "1")}

// insideColumn says whether a record is there because a router runs inside a
// controller.
func insideColumn[T any](holds func(rec *T) bool) []rest.Derived {
	return []rest.Derived{api.Flag("isInside", "Whether the record is that of a router inside a controller, or a policy that the controller made so that it can be used: files that say nothing of it do not delete it.",
		func(_ *rest.Call, rec *T) bool { return holds(rec) })}
}

// edgeRouterColumns are what answers show of an edge router beyond its record.
func edgeRouterColumns(s *api.Service) []rest.Derived {
	return slices.Concat(api.RouterColumns(s), presenceColumns(s), api.MachineColumns(s), insideColumn(func(e *model.EdgeRouter) bool { return e.Home != "" }),
		enrollmentColumns(model.EdgeRouters.Def, "edgeRouterId", func(rec kind.Record) bool { return rec.(*model.EdgeRouter).IsVerified }))
}

// presenceColumns say since when and where a router is connected.
func presenceColumns(s *api.Service) []rest.Derived {
	column := func(name, doc string, schema kind.Schema, show func(dst []byte, p *model.Presence) []byte) rest.Derived {
		return rest.Derived{Name: name, Doc: doc, Schema: schema, Optional: true, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			if p, ok := model.Presences.Get(s.Fabric, rec.Base().ID); ok && !c.Past() {
				return show(dst, p)
			}
			return dst
		}}
	}
	return []rest.Derived{
		column("onlineSince", "When the router connected; left out while it is not.", api.Moment, func(dst []byte, p *model.Presence) []byte { return kind.AppendTime(dst, p.CreatedAt.Time()) }),
		column("controllerId", "Id of the controller that the router is connected to; left out while it is not.", api.Text, func(dst []byte, p *model.Presence) []byte { return kind.AppendText(dst, p.ControllerID) }),
	}
}

// routerColumns are what answers show of a router beyond its record.
func routerColumns(s *api.Service) []rest.Derived {
	return slices.Concat([]rest.Derived{api.PresenceColumn(s, "isOnline")}, api.MachineColumns(s),
		enrollmentColumns(model.Routers.Def, "transitRouterId", func(rec kind.Record) bool { return rec.(*model.Router).IsVerified }))
}

// enrollmentColumns show the outstanding enrollment of a router until it is
// verified.
func enrollmentColumns(router *kind.Def, index string, verified func(kind.Record) bool) []rest.Derived {
	column := func(name, doc string, schema kind.Schema, show func(dst []byte, e *model.Enrollment) []byte) rest.Derived {
		return rest.Derived{Name: name, Doc: doc, Schema: schema, Optional: true, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			if verified(rec) {
				return dst
			}
			if e, ok := model.Enrollments.Find(c.Snap, index, rec.Base().ID); ok {
				return show(dst, e)
			}
			return dst
		}}
	}
	secret := func(name, doc string, of func(e *model.Enrollment) string) rest.Derived {
		col := column(name, doc, api.Text, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendText(dst, of(e)) })
		show := col.Append
		col.Append = func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			if !c.Reveals(router.Name+":reveal", router, rec) {
				return dst
			}
			return show(dst, c, rec)
		}
		return col
	}
	return []rest.Derived{
		secret("enrollmentToken", "What makes its holder this router; left out once it has enrolled.", func(e *model.Enrollment) string { return e.Token }),
		secret("enrollmentJwt", "The same token with the address of the controller, signed by it, to hand over to the router; left out once it has enrolled.", func(e *model.Enrollment) string { return e.JWT }),
		column("enrollmentCreatedAt", "When the token was made; left out once the router has enrolled.", api.Moment, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendTime(dst, e.CreatedAt.Time()) }),
		column("enrollmentExpiresAt", "When the token ends; left out once the router has enrolled.", api.Moment, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendTime(dst, e.ExpiresAt) }),
	}
}

// caColumns link to what can be done with a CA.
var caColumns = []rest.Derived{rest.Links(func(rec kind.Record) []rest.Link {
	ca := rec.(*model.CA)
	self := model.CAs.Path + "/" + ca.ID
	links := []rest.Link{{Name: "self", Href: self}}
	if !ca.IsVerified {
		links = append(links, rest.Link{Name: "verify", Href: self + "/verify"})
	}
	if ca.IsAutoCAEnrollmentEnabled {
		links = append(links, rest.Link{Name: "jwt", Href: self + "/jwt"})
	}
	return links
})}
