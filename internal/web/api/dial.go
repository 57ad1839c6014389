package api

import (
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/web/rest"
)

// SessionColumns are what answers show of a session to dial or host beyond its
// record. Only its owner gets to see the token.
func SessionColumns(s *Service) []rest.Derived {
	return []rest.Derived{
		{Name: "token", Doc: "What routers recognise the session by; empty for everybody but its owner.", Schema: Text, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			session := rec.(*model.Session)
			if session.IdentityID != c.Author().ID {
				return append(dst, `""`...)
			}
			return kind.AppendText(dst, s.Grants.Tokens.Of(session))
		}},
		{Name: "edgeRouters", Doc: "Edge routers through which the session can be used.", Schema: kind.ListOf(sessionRouterOutput.Schema()), Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			session := rec.(*model.Session)
			return s.appendSessionRouters(dst, c, access.CommonRouters(c.Snap, session.IdentityID, session.ServiceID))
		}},
	}
}

// SessionTokens lets filters name the tokens of one's own sessions, which are
// shown to their owner alone. Those of others match nothing.
func SessionTokens(s *Service) rest.Asked {
	return func(c *rest.Call) []filter.Symbol[kind.Record] {
		return []filter.Symbol[kind.Record]{{Name: "token", Type: filter.String, One: func(rec kind.Record) filter.Value {
			session := rec.(*model.Session)
			if session.IdentityID != c.Author().ID {
				return filter.Value{}
			}
			return filter.StringValue(s.Grants.Tokens.Of(session))
		}}}
	}
}

// PoliciesColumn is the policies that allow a session.
func PoliciesColumn() rest.Derived {
	return rest.Derived{Name: "servicePolicies", Doc: "Service policies that allow the session.", Schema: kind.ListOf(kind.Described(kind.RefTo("entityRef"), "One of them.")), Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
		session := rec.(*model.Session)
		dst = append(dst, '[')
		for i, p := range access.Granting(c.Snap, session.IdentityID, session.ServiceID, session.Type) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = kind.AppendRef(dst, c.Snap, model.ServicePolicies.Def, p.ID)
		}
		return append(dst, ']')
	}}
}
