package management

import (
	"cmp"
	"math"
	"net/http"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/explain"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// typeParam is what somebody would do to a service.
var typeParam = rest.ChoiceParam("type", "Whether to look at using the service (Dial) or at hosting it (Bind); Dial if not given.",
	strings.EqualFold, model.Dial, model.Bind)

func typeOf(c *rest.Call) string { return cmp.Or(typeParam.Of(c), model.Dial) }

// mountExplain offers who can use what, and why or why not.
func mountExplain(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/identities/{id}/explain/{serviceId}", Name: "explainIdentityService", Tag: "identities",
		Doc: "Explain link by link why an identity can or cannot use a service, and what would let it.", Auth: rest.Admin, Need: "access:read",
		Params: []rest.Parameter{typeParam, rest.AtParam},
	}, func(c *rest.Call, _ rest.None) (explain.Explanation, error) {
		if c.Past() {
			return s.Explainer().Past(c.Snap, c.Param("id"), c.Param("serviceId"), typeOf(c))
		}
		return s.Explainer().Explain(c.Snap, c.Param("id"), c.Param("serviceId"), typeOf(c))
	})
	mountWays(a)
	rest.ShowList(a, rest.Op{
		Method: http.MethodGet, Path: "/services/{id}/who-can", Name: "listWhoCanUseService", Tag: "services",
		Doc:    "List the identities that service policies let use or host a service. Admins may without a policy and are not listed for that.",
		Auth:   rest.Admin,
		Need:   "access:read",
		Params: []rest.Parameter{typeParam, rest.AtParam},
	}, a.View("permittedIdentity", model.Identities.Def, append(api.IdentityColumns(s), whoCanUntil())...), func(c *rest.Call) (rest.Records, error) {
		id := c.Param("id")
		if _, ok := model.Services.Get(c.Snap, id); !ok {
			return nil, fault.NotFound(model.Services.Name, id)
		}
		return c.Snap.Within(model.Identities.Def, access.WhoCan(c.Snap, id, typeOf(c))), nil
	})
	rest.ShowList(a, rest.Op{
		Method: http.MethodGet, Path: "/identities/{id}/what-can", Name: "listWhatIdentityCanUse", Tag: "identities",
		Doc: "List the services that an identity may use or host, which for an admin is all of them.", Auth: rest.Admin, Need: "access:read",
		Params: []rest.Parameter{rest.AtParam},
	}, a.View("permittedService", model.Services.Def, permissionColumns()...), func(c *rest.Call) (rest.Records, error) {
		id := c.Param("id")
		if _, ok := model.Identities.Get(c.Snap, id); !ok {
			return nil, fault.NotFound(model.Identities.Name, id)
		}
		g := access.ServicesWithAdmin(c.Snap, id)
		granted.Keep(c, g)
		return c.Snap.Within(model.Services.Def, g.Visible()), nil
	})
}

// The page of those that ways lead to.
var (
	reachedParam = rest.NumberParam("limit", "How many of those that are reached to answer with: 100 if not given, and 500 at most.")
	passedParam  = rest.NumberParam("offset", "How many of them to leave out at the beginning; none if not given.")
)

// mountWays offers through which policies and roles somebody comes to what it may use.
func mountWays(a *rest.API) {
	add := func(path, name, tag, doc string, find func(snap *state.Snapshot, id string, first, end int) (explain.Ways, error)) {
		rest.Handle(a, rest.Op{
			Method: http.MethodGet, Path: path, Name: name, Tag: tag, Doc: doc, Auth: rest.Admin, Need: "access:read",
			Params: []rest.Parameter{reachedParam, passedParam, rest.AtParam},
		}, func(c *rest.Call, _ rest.None) (explain.Ways, error) {
			limit, offset := int64(100), int64(0)
			if n := reachedParam.Of(c); n != nil {
				limit = *n
			}
			if n := passedParam.Of(c); n != nil {
				offset = *n
			}
			switch {
			case limit < 0 || limit > 500:
				return explain.Ways{}, fault.Invalid("limit", "must be from 0 to 500", limit)
			case offset < 0 || offset > math.MaxInt32:
				return explain.Ways{}, fault.Invalid("offset", "must not be below 0 or beyond all that there can be", offset)
			}
			return find(c.Snap, c.Param("id"), int(offset), int(offset+limit))
		})
	}
	add("/identities/{id}/access", "detailIdentityAccess", "identities",
		"Tell through which service policies and roles an identity may use or host which services.", explain.FromIdentity)
	add("/services/{id}/access", "detailServiceAccess", "services",
		"Tell through which service policies and roles which identities may use or host a service.", explain.FromService)
}

// granted is what the identity of a request may.
var granted rest.Memo[access.Grants]

// untilColumn says until when policies let somebody, as far as that is known.
func untilColumn(name, doc string, until func(c *rest.Call, rec kind.Record) *time.Time) rest.Derived {
	return rest.Derived{Name: name, Doc: doc, Schema: api.Moment, Optional: true, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
		if end := until(c, rec); end != nil {
			return kind.AppendTime(dst, *end)
		}
		return dst
	}}
}

// whoCanUntil says it of the identities that may use a service.
func whoCanUntil() rest.Derived {
	return untilColumn("until", "When service policies end to let it use or host the service if nobody changes anything; left out if they do not end by themselves.",
		func(c *rest.Call, rec kind.Record) *time.Time {
			return explain.Until(c.Snap, rec.(*model.Identity), c.Param("id"), typeOf(c))
		})
}

// whatCanUntil says it of the services that an identity may use.
func whatCanUntil(name, typ, doc string) rest.Derived {
	return untilColumn(name, doc, func(c *rest.Call, rec kind.Record) *time.Time {
		who, there := model.Identities.Get(c.Snap, c.Param("id"))
		if !there || who.IsAdmin { // who may without a policy
			return nil
		}
		return explain.Until(c.Snap, who, rec.Base().ID, typ)
	})
}

// permissionColumns say which of the two an identity may.
func permissionColumns() []rest.Derived {
	column := func(name, doc string, set func(g access.Grants) *cow.Bitmap) rest.Derived {
		return api.Flag(name, doc, func(c *rest.Call, service *model.Service) bool {
			g, _ := granted.Of(c)
			ord, _ := c.Snap.Ordinal(model.Services.Def, service.ID)
			return set(g).Contains(ord)
		})
	}
	return []rest.Derived{
		column("dial", "Whether the identity may use the service.", func(g access.Grants) *cow.Bitmap { return g.Dial }),
		column("bind", "Whether the identity may host the service.", func(g access.Grants) *cow.Bitmap { return g.Bind }),
		whatCanUntil("dialUntil", model.Dial, "When service policies end to let the identity use the service if nobody changes anything; left out if they do not end by themselves."),
		whatCanUntil("bindUntil", model.Bind, "When service policies end to let the identity host the service if nobody changes anything; left out if they do not end by themselves."),
	}
}
