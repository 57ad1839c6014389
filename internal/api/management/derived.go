package management

import (
	"netkeep/internal/api"
	"netkeep/internal/kind"
	"netkeep/internal/model"
	"netkeep/internal/rest"
)

// systemColumn says whether the system keeps the record.
var systemColumn = []rest.Derived{{Name: "isSystem", Schema: api.Boolean, Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
	return kind.AppendAny(dst, rec.Base().System)
}}}

// postureCheckColumns are what answers show of a posture check beyond its
// record.
var postureCheckColumns = []rest.Derived{api.Constant("version", api.Integer, "1")}

// terminatorColumns are what answers show of a terminator beyond its record.
var terminatorColumns = []rest.Derived{api.Constant("dynamicCost", api.Integer, "0")}

// edgeRouterColumns are what answers show of an edge router beyond its record.
var edgeRouterColumns = append([]rest.Derived{
	api.Constant("hostname", api.Text, `""`),
	api.Constant("isOnline", api.Boolean, "false"),
	api.Constant("syncStatus", api.Text, `"SYNC_UNKNOWN"`),
	api.Constant("supportedProtocols", api.AnyMap, "{}"),
	api.Constant("versionInfo", api.AnyMap, `{"arch":"","buildDate":"","os":"","revision":"","version":""}`),
}, enrollmentColumns("edgeRouterId", func(rec kind.Record) bool { return rec.(*model.EdgeRouter).IsVerified })...)

// routerColumns are what answers show of a router beyond its record.
var routerColumns = append([]rest.Derived{
	api.Constant("isOnline", api.Boolean, "false"),
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
		column("enrollmentToken", api.Text, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendText(dst, e.Token) }),
		column("enrollmentJwt", api.Text, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendText(dst, e.JWT) }),
		column("enrollmentCreatedAt", api.Moment, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendTime(dst, e.CreatedAt) }),
		column("enrollmentExpiresAt", api.Moment, func(dst []byte, e *model.Enrollment) []byte { return kind.AppendTime(dst, e.ExpiresAt) }),
	}
}

// serviceColumns are what answers show of a service beyond its record, to an
// admin: all permissions, and the configs of the types that the session asked
// for.
var serviceColumns = []rest.Derived{
	api.Constant("permissions", kind.ListOf(api.Text), `["Bind","Dial"]`),
	{Name: "config", Schema: api.AnyMap, Append: appendServiceConfig},
	api.Constant("postureQueries", kind.ListOf(api.AnyMap), "[]"),
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
