package management

import (
	"netkeep/internal/api"
	"netkeep/internal/kind"
	"netkeep/internal/model"
	"netkeep/internal/rest"
)

// Schemas of derived members.
var (
	boolean = kind.Schema{"type": "boolean"}
	text    = kind.Schema{"type": "string"}
	integer = kind.Schema{"type": "integer"}
	anyMap  = kind.Schema{"type": "object"}
	moment  = kind.Schema{"type": "string", "format": "date-time"}
)

// constant is a member that is the same for every record.
func constant(name string, schema kind.Schema, json string) rest.Derived {
	return rest.Derived{Name: name, Schema: schema, Append: func(dst []byte, _ *rest.Call, _ kind.Record) []byte {
		return append(dst, json...)
	}}
}

// flag is a member that holds or does not.
func flag[T any](name string, holds func(c *rest.Call, rec *T) bool) rest.Derived {
	return rest.Derived{Name: name, Schema: boolean, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
		if holds(c, any(rec).(*T)) {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	}}
}

// systemColumn says whether the system keeps the record.
var systemColumn = []rest.Derived{{Name: "isSystem", Schema: boolean, Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
	return kind.AppendAny(dst, rec.Base().System)
}}}

// postureCheckColumns are what answers show of a posture check beyond its
// record.
var postureCheckColumns = []rest.Derived{constant("version", integer, "1")}

// terminatorColumns are what answers show of a terminator beyond its record.
var terminatorColumns = []rest.Derived{constant("dynamicCost", integer, "0")}

// edgeRouterColumns are what answers show of an edge router beyond its record.
var edgeRouterColumns = append([]rest.Derived{
	constant("hostname", text, `""`),
	constant("isOnline", boolean, "false"),
	constant("syncStatus", text, `"SYNC_UNKNOWN"`),
	constant("supportedProtocols", anyMap, "{}"),
	constant("versionInfo", anyMap, `{"arch":"","buildDate":"","os":"","revision":"","version":""}`),
}, enrollmentColumns("edgeRouterId", func(rec kind.Record) bool { return rec.(*model.EdgeRouter).IsVerified })...)

// routerColumns are what answers show of a router beyond its record.
var routerColumns = append([]rest.Derived{
	constant("isOnline", boolean, "false"),
}, enrollmentColumns("transitRouterId", func(rec kind.Record) bool { return rec.(*model.Router).IsVerified })...)

// enrollmentColumns show the outstanding enrollment of a router until it is
// verified.
func enrollmentColumns(index string, verified func(kind.Record) bool) []rest.Derived {
	column := func(name string, schema kind.Schema, show func(dst []byte, e *model.Enrollment) []byte) rest.Derived {
		schema = kind.Schema{"type": schema["type"], "format": schema["format"], "nullable": true}
		if schema["format"] == nil {
			delete(schema, "format")
		}
		return rest.Derived{Name: name, Schema: schema, Optional: true, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			if verified(rec) {
				return dst
			}
			if e, ok := model.Enrollments.Find(c.Snap, index, rec.Base().ID); ok {
				return show(dst, e)
			}
			return dst
		}}
	}
	return []rest.Derived{
		column("enrollmentToken", text, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendText(dst, e.Token) }),
		column("enrollmentJwt", text, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendText(dst, e.JWT) }),
		column("enrollmentCreatedAt", moment, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendTime(dst, e.CreatedAt) }),
		column("enrollmentExpiresAt", moment, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendTime(dst, e.ExpiresAt) }),
	}
}

// identityColumns are what answers show of an identity beyond its record.
func identityColumns(s *api.Service) []rest.Derived {
	return []rest.Derived{
		flag("disabled", func(_ *rest.Call, i *model.Identity) bool { return i.Disabled(s.Sessions.Now()) }),
		flag("hasApiSession", func(c *rest.Call, i *model.Identity) bool {
			_, has := model.APISessions.Find(c.Snap, "identityId", i.ID)
			return has
		}),
		constant("hasEdgeRouterConnection", boolean, "false"),
		constant("isMfaEnabled", boolean, "false"),
		{Name: "authenticators", Schema: anyMap, Append: appendAuthenticators},
		{Name: "enrollment", Schema: anyMap, Append: appendEnrollments},
	}
}

// appendAuthenticators adds the credentials of an identity, by method.
func appendAuthenticators(dst []byte, c *rest.Call, rec kind.Record) []byte {
	dst = append(dst, '{')
	for a := range model.Authenticators.Select(c.Snap, "identityId", rec.Base().ID) {
		dst = kind.AppendMember(dst, a.Method, func(dst []byte) []byte {
			dst = append(dst, `{"id":`...)
			dst = kind.AppendText(dst, a.ID)
			if a.Method == model.MethodUPDB {
				dst = append(dst, `,"username":`...)
				dst = kind.AppendText(dst, a.Username)
			} else {
				dst = append(dst, `,"fingerprint":`...)
				dst = kind.AppendText(dst, a.Fingerprint)
			}
			return append(dst, '}')
		})
	}
	return append(dst, '}')
}

// appendEnrollments adds the outstanding enrollments of an identity, by
// method.
func appendEnrollments(dst []byte, c *rest.Call, rec kind.Record) []byte {
	dst = append(dst, '{')
	for e := range model.Enrollments.Select(c.Snap, "identityId", rec.Base().ID) {
		dst = kind.AppendMember(dst, e.Method, func(dst []byte) []byte {
			dst = append(dst, `{"id":`...)
			dst = kind.AppendText(dst, e.ID)
			dst = append(dst, `,"token":`...)
			dst = kind.AppendText(dst, e.Token)
			dst = append(dst, `,"jwt":`...)
			dst = kind.AppendText(dst, e.JWT)
			dst = append(dst, `,"expiresAt":`...)
			dst = kind.AppendTime(dst, e.ExpiresAt)
			if e.CAID != "" {
				dst = append(dst, `,"caId":`...)
				dst = kind.AppendText(dst, e.CAID)
				dst = append(dst, `,"ca":`...)
				dst = kind.AppendRef(dst, c.Snap, model.CAs.Def, e.CAID)
			}
			return append(dst, '}')
		})
	}
	return append(dst, '}')
}

// serviceColumns are what answers show of a service beyond its record, to an
// admin: all permissions, and the configs of the types that the session asked
// for.
var serviceColumns = []rest.Derived{
	constant("permissions", kind.ListOf(text), `["Bind","Dial"]`),
	{Name: "config", Schema: anyMap, Append: appendServiceConfig},
	constant("postureQueries", kind.ListOf(anyMap), "[]"),
}

// appendServiceConfig adds the data of the service's configs by the name of
// their type.
func appendServiceConfig(dst []byte, c *rest.Call, rec kind.Record) []byte {
	wanted := api.ConfigTypes(c)
	dst = append(dst, '{')
	for _, id := range rec.(*model.Service).Configs {
		config, ok := model.Configs.Get(c.Snap, id)
		if !ok || !wanted(config.ConfigTypeID) {
			continue
		}
		typ, ok := model.ConfigTypes.Get(c.Snap, config.ConfigTypeID)
		if !ok {
			continue
		}
		dst = kind.AppendMember(dst, typ.Name, func(dst []byte) []byte { return append(dst, config.Data...) })
	}
	return append(dst, '}')
}

// caColumns link to what can be done with a CA.
var caColumns = []rest.Derived{{Name: "_links", Schema: kind.RefTo("links"), Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
	ca := rec.(*model.CA)
	self := "./cas/" + ca.ID
	dst = append(dst, `{"self":{"href":`...)
	dst = append(kind.AppendText(dst, self), '}')
	if !ca.IsVerified {
		dst = append(dst, `,"verify":{"href":`...)
		dst = append(kind.AppendText(dst, self+"/verify"), '}')
	}
	if ca.IsAutoCAEnrollmentEnabled {
		dst = append(dst, `,"jwt":{"href":`...)
		dst = append(kind.AppendText(dst, self+"/jwt"), '}')
	}
	return append(dst, '}')
}}}
