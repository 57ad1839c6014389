package api

import (
	"strconv"
	"time"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
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
func Constant(name, doc string, schema kind.Schema, json string) rest.Derived {
	return rest.Derived{Name: name, Doc: doc, Schema: schema, Append: func(dst []byte, _ *rest.Call, _ kind.Record) []byte {
		return append(dst, json...)
	}}
}

// Flag is a member that holds or does not.
func Flag[T any](name, doc string, holds func(c *rest.Call, rec *T) bool) rest.Derived {
	return rest.Derived{Name: name, Doc: doc, Schema: Boolean, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
		if holds(c, any(rec).(*T)) {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	}}
}

// IssuedColumn says of an authenticator who issued its certificate.
var IssuedColumn = Flag("isIssuedByNetwork", "Whether it is a client certificate that this network issued, which its holder can renew.",
	func(_ *rest.Call, a *model.Authenticator) bool { return a.IssuedHere() })

// AuthenticatorJoins let filters ask the same.
func AuthenticatorJoins(kind.Reader) []filter.Symbol[kind.Record] {
	return []filter.Symbol[kind.Record]{{Name: IssuedColumn.Name, Type: filter.Bool, One: func(rec kind.Record) filter.Value {
		return filter.BoolValue(rec.(*model.Authenticator).IssuedHere())
	}}}
}

// DynamicCost shows what a terminator costs more.
func DynamicCost(s *Service) rest.Derived {
	return rest.Derived{
		Name: "dynamicCost", Doc: "What the controller adds to the cost at present because circuits could not end at the terminator lately; it gets less with time.",
		Schema: Integer, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			if c.Past() {
				return append(dst, '0')
			}
			return strconv.AppendInt(dst, int64(s.Routers.DynamicCost(rec.(*model.Terminator))), 10)
		},
	}
}

// IdentityColumns are what answers show of an identity beyond its record.
func IdentityColumns(s *Service) []rest.Derived {
	return []rest.Derived{
		{
			Name: "envInfo", Doc: "What its client last said of the machine it runs on; empty if it said nothing.",
			Schema: envOutput.Schema(), Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				env, _ := model.ClientInfoOf(c.Snap, rec.Base().ID)
				return envOutput.Append(dst, &env)
			},
		},
		{
			Name: "sdkInfo", Doc: "What its client last said of itself; empty if it said nothing.",
			Schema: sdkOutput.Schema(), Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				_, sdk := model.ClientInfoOf(c.Snap, rec.Base().ID)
				return sdkOutput.Append(dst, &sdk)
			},
		},
		Flag("disabled", "Whether the identity is disabled now, so that it cannot authenticate.", func(c *rest.Call, i *model.Identity) bool {
			if c.Past() {
				return i.Disabled(c.Snap.Time)
			}
			return i.Disabled(s.Sessions.Now())
		}),
		Flag("hasApiSession", "Whether the identity has an API session.", func(c *rest.Call, i *model.Identity) bool {
			_, has := model.APISessions.Find(c.Snap, "identityId", i.ID)
			return has
		}),
		Flag("hasEdgeRouterConnection", "Whether an edge router has lately named the identity as connected to it.", func(c *rest.Call, i *model.Identity) bool { return !c.Past() && s.Routers.Carries(i.ID) }),
		lastSeenColumn(s),
		{
			Name: "edgeRouterConnectionStatus", Doc: "The same in a word: online or offline.",
			Schema: kind.Schema{"type": "string", "enum": []string{"online", "offline"}}, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				if !c.Past() && s.Routers.Carries(rec.Base().ID) {
					return append(dst, `"online"`...)
				}
				return append(dst, `"offline"`...)
			},
		},
		Flag("isMfaEnabled", "Whether the identity has a verified second factor, so that it is asked for codes.", func(c *rest.Call, i *model.Identity) bool {
			m, has := model.MFAOf(c.Snap, i.ID)
			return has && m.IsVerified
		}),
		{
			Name: "authenticators", Doc: "What the identity can authenticate with, by method.",
			Schema: authenticatorsOutput.Schema(), Append: appendAuthenticators,
		},
		{
			Name: "enrollment", Doc: "How the identity may still enroll, by method; empty once it has.",
			Schema: enrollmentsOutput.Schema(), Append: appendEnrollments,
		},
		PresenceColumn(s, "interfaces"), // the identity of a router has its id
	}
}

// lastSeenColumn shows when an identity was last there, which this controller may know
// better than the store.
func lastSeenColumn(s *Service) rest.Derived {
	return rest.Derived{
		Name: "lastSeenAt", Doc: "When the identity was last there: to some minutes while it has an API session, to the day afterwards; null if nobody knows.",
		Schema: kind.Nullable(Moment), Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			at := model.LastSeen(c.Snap, rec.Base().ID)
			if !c.Past() {
				at = s.Sessions.LastSeen(c.Snap, rec.Base().ID)
			}
			if at.IsZero() {
				return append(dst, "null"...)
			}
			return kind.AppendTime(dst, at)
		},
	}
}

// IdentityJoins let filters ask who was not there for long.
func IdentityJoins(r kind.Reader) []filter.Symbol[kind.Record] {
	return []filter.Symbol[kind.Record]{{Name: "lastSeenAt", Type: filter.Time, One: func(rec kind.Record) filter.Value {
		at := model.LastSeen(r, rec.Base().ID)
		if at.IsZero() {
			return filter.Value{}
		}
		return filter.TimeValue(at)
	}}}
}

// NoneOf is a list that others have and that has no entries here. Clients walk
// through it without a look whether it is there.
func NoneOf(name, doc string) rest.Derived {
	none := Constant(name, doc, kind.ListOf(AnyMap), "[]")
	none.Empty = true
	return none
}

// MachineColumns are the lists of what a router has on its machine, for those who look after
// routers.
func MachineColumns(s *Service) []rest.Derived {
	return []rest.Derived{NoneOf("configs", "Empty: a router has its settings from its own machine."), PresenceColumn(s, "interfaces")}
}

// ownAuthenticators is the credentials of an identity.
type ownAuthenticators struct {
	Cert *ownCert     `json:"cert" kind:"omit" doc:"Its client certificate; left out if it has none."`
	UPDB *ownPassword `json:"updb" kind:"omit" doc:"Its user name and password; left out if it has none."`
}

type ownCert struct {
	ID          string `json:"id" doc:"Id of the authenticator."`
	Fingerprint string `json:"fingerprint" doc:"SHA-1 of the client certificate, in hexadecimal."`
}

type ownPassword struct {
	ID       string `json:"id" doc:"Id of the authenticator."`
	Username string `json:"username" doc:"User name to log in with."`
}

// ownEnrollments is the outstanding enrollments of an identity.
type ownEnrollments struct {
	OTT   *ownEnrollment   `json:"ott" kind:"omit" doc:"With a certificate that the controller issues; left out if it may not."`
	OTTCA *ownCAEnrollment `json:"ottca" kind:"omit" doc:"With a certificate of a registered CA; left out if it may not."`
	UPDB  *ownEnrollment   `json:"updb" kind:"omit" doc:"With a password; left out if it may not."`
}

type ownEnrollment struct {
	ID        string    `json:"id" doc:"Id of the enrollment."`
	Token     string    `json:"token" doc:"What makes its holder the identity; it works once."`
	JWT       string    `json:"jwt" doc:"The same token with the address of the controller, signed by it, to hand over to whoever enrolls."`
	ExpiresAt time.Time `json:"expiresAt" doc:"When the token ends."`
}

type ownCAEnrollment struct {
	ownEnrollment
	CAID string   `json:"caId" doc:"Id of the CA of which a certificate is wanted."`
	CA   rest.Ref `json:"ca" doc:"Name and address of that CA."`
}

var (
	authenticatorsOutput = kind.NewOutput[ownAuthenticators]()
	enrollmentsOutput    = kind.NewOutput[ownEnrollments]()
	envOutput            = kind.NewOutput[model.EnvInfo]()
	sdkOutput            = kind.NewOutput[model.SDKInfo]()
)

func appendAuthenticators(dst []byte, c *rest.Call, rec kind.Record) []byte {
	var out ownAuthenticators
	for a := range model.Authenticators.Select(c.Snap, "identityId", rec.Base().ID) {
		if a.Method == model.MethodUPDB {
			out.UPDB = &ownPassword{a.ID, a.Username}
		} else {
			out.Cert = &ownCert{a.ID, a.Fingerprint}
		}
	}
	return authenticatorsOutput.Append(dst, &out)
}

func appendEnrollments(dst []byte, c *rest.Call, rec kind.Record) []byte {
	var out ownEnrollments
	for e := range model.Enrollments.Select(c.Snap, "identityId", rec.Base().ID) {
		own := ownEnrollment{e.ID, e.Token, e.JWT, e.ExpiresAt}
		if !c.Reveals("enrollment:reveal", model.Enrollments.Def, e) {
			own.Token, own.JWT = "", ""
		}
		switch e.Method {
		case model.MethodOTT:
			out.OTT = &own
		case model.MethodOTTCA:
			out.OTTCA = &ownCAEnrollment{own, e.CAID, rest.RefOf(c, model.CAs.Def, e.CAID)}
		case model.MethodUPDB:
			out.UPDB = &own
		}
	}
	return enrollmentsOutput.Append(dst, &out)
}
