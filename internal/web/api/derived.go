package api

import (
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/web/rest"
)

// Schemas of derived members.
var (
	Boolean = kind.Schema{"type": "boolean"}
	Text    = kind.Schema{"type": "string"}
	Integer = kind.Schema{"type": "integer"}
	AnyMap  = kind.Schema{"type": "object"}
	Moment  = kind.Schema{"type": "string", "format": "date-time"}
)

// Constant is a member that is the same for every record.
func Constant(name string, schema kind.Schema, json string) rest.Derived {
	return rest.Derived{Name: name, Schema: schema, Append: func(dst []byte, _ *rest.Call, _ kind.Record) []byte {
		return append(dst, json...)
	}}
}

// Flag is a member that holds or does not.
func Flag[T any](name string, holds func(c *rest.Call, rec *T) bool) rest.Derived {
	return rest.Derived{Name: name, Schema: Boolean, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
		if holds(c, any(rec).(*T)) {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	}}
}

// IdentityColumns are what answers show of an identity beyond its record.
func IdentityColumns(s *Service) []rest.Derived {
	return []rest.Derived{
		Flag("disabled", func(_ *rest.Call, i *model.Identity) bool { return i.Disabled(s.Sessions.Now()) }),
		Flag("hasApiSession", func(c *rest.Call, i *model.Identity) bool {
			_, has := model.APISessions.Find(c.Snap, "identityId", i.ID)
			return has
		}),
		Flag("hasEdgeRouterConnection", func(_ *rest.Call, i *model.Identity) bool { return s.Routers.Carries(i.ID) }),
		Flag("isMfaEnabled", func(c *rest.Call, i *model.Identity) bool {
			m, has := model.MFAOf(c.Snap, i.ID)
			return has && m.IsVerified
		}),
		{Name: "authenticators", Schema: AnyMap, Append: appendAuthenticators},
		{Name: "enrollment", Schema: AnyMap, Append: appendEnrollments},
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
