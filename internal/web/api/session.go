package api

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
)

// authenticateIn is the body of an authenticate request.
type authenticateIn struct {
	Username    string         `json:"username" kind:"range=4..100" doc:"User name, for the method password."`
	Password    string         `json:"password" kind:"secret,range=5..100" doc:"Password, for the method password."`
	ConfigTypes []string       `json:"configTypes" doc:"Config types of which services are to show their config in this session, by id or name, or all; none if empty."`
	EnvInfo     *model.EnvInfo `json:"envInfo" doc:"What there is to say of the machine that the client runs on."`
	SDKInfo     *model.SDKInfo `json:"sdkInfo" doc:"What there is to say of the client."`
}

// The ways to authenticate.
const (
	byPassword = "password"
	byCert     = "cert"
	byJWT      = "ext-jwt"
)

var methodParam = rest.ChoiceParam("method",
	"How to show who one is: with the user name and password in the body, the client certificate of the connection, or a bearer token in the Authorization header.",
	rest.Exactly, byPassword, byCert, byJWT).Required()

func mountSession(a *rest.API, s *Service) {
	view := a.View("currentApiSession", model.APISessions.Def, s.sessionColumns()...)
	rest.Show(a, rest.Op{
		Method: http.MethodPost, Path: "/authenticate", Name: "authenticate", Tag: "authenticate",
		Doc: "Authenticate and get an API session.", Auth: rest.Anonymous, Attempts: &s.Logins, MaxBody: 64 << 10, BodyOptional: true,
		Params: []rest.Parameter{methodParam},
	}, view, func(c *rest.Call, in authenticateIn) (kind.Record, error) {
		// Clients of routers authenticate at the Client API: nobody else's
		// session has to be known to any.
		return s.authenticate(c, in, a.Root != ClientRoot)
	})
	rest.Show(a, rest.Op{
		Method: http.MethodGet, Path: "/current-api-session", Name: "getCurrentAPISession", Tag: "current-api-session",
		Doc: "Get the session that this request uses.", Auth: rest.Partial, Polled: true,
	}, view, func(c *rest.Call, _ rest.None) (kind.Record, error) { return Caller(c).Session(), nil })
	rest.Handle(a, rest.Op{
		Method: http.MethodDelete, Path: "/current-api-session", Name: "logout", Tag: "current-api-session",
		Doc: "End the session that this request uses.", Auth: rest.Partial,
	}, func(c *rest.Call, _ rest.None) (rest.Empty, error) {
		return rest.Empty{}, s.Sessions.End(c.Context(), c.Author(), Caller(c).Session().ID)
	})
}

// authenticate lets somebody in, or not.
func (s *Service) authenticate(c *rest.Call, in authenticateIn, apart bool) (kind.Record, error) {
	session, err := s.logIn(c, in, apart)
	if err != nil && !fault.Is(err, fault.CodeInvalid) && methodParam.Of(c) == byPassword {
		c.Tried(in.Username)
	}
	if s.LoggedIn != nil {
		s.LoggedIn(methodParam.Of(c), err)
	}
	s.noteLogin(c, in, err)
	return session, err
}

// logIn checks the credential that the method names and opens a session.
func (s *Service) logIn(c *rest.Call, in authenticateIn, apart bool) (kind.Record, error) {
	proof, err := s.prove(c, in)
	if err != nil {
		return nil, err
	}
	who, err := s.Sessions.Open(c.Context(), c.Author(), proof, authn.Request{
		ConfigTypes: in.ConfigTypes, EnvInfo: in.EnvInfo, SDKInfo: in.SDKInfo,
		Bearer: c.Bearer(), Apart: apart,
	})
	if err != nil {
		return nil, err
	}
	c.Caller, c.Snap = caller{who}, c.Latest()
	c.Header().Set("net-session", who.Token())
	c.Header().Set("zt-session", who.Token())
	s.tellExpiry(c.Header(), who)
	return who.Session(), nil
}

// prove checks the primary credential.
func (s *Service) prove(c *rest.Call, in authenticateIn) (authn.Proof, error) {
	switch methodParam.Of(c) {
	case byPassword:
		switch {
		case in.Username == "":
			return authn.Proof{}, fault.Invalid("username", "is required", nil)
		case in.Password == "":
			return authn.Proof{}, fault.Invalid("password", "is required", nil)
		}
		return s.Passwords.Check(c.Context(), c.Author(), c.Snap, authn.Login{Username: in.Username, Password: in.Password, From: c.From()})
	case byCert:
		proof, err := s.Certs.Check(c.Snap, c.Certificates())
		if err == nil {
			return proof, nil
		}
		// It may have been issued by another controller a moment ago.
		more, blind := c.LookAgain()
		if blind != nil || !more {
			return proof, cmp.Or(blind, err)
		}
		return s.Certs.Check(c.Snap, c.Certificates())
	}
	return s.Tokens.SignIn(c.Context(), c.Author(), c.Latest, c.Bearer())
}

// LastActivityDoc says what cachedLastActivityAt is.
const LastActivityDoc = "When the session was last used, as far as this controller knows."

// CertColumns say what a client can do about the certificate that it logged in
// with, and whether it is asked to: by an admin, or since the root CA that it is
// of is being replaced.
func (s *Service) CertColumns() []rest.Derived {
	return []rest.Derived{
		Flag("isCertExtendable", "Whether the session rests on a certificate that this network issued, so that the client can have it extended.",
			func(c *rest.Call, session *model.APISession) bool { return extendable(c, session) != nil }),
		Flag("isCertExtendRequested", "Whether the client is asked to have it extended now, before it is time.",
			func(c *rest.Call, session *model.APISession) bool {
				a := extendable(c, session)
				return a != nil && (a.IsExtendRequested || s.Outdated(a.CertPEM))
			}),
		Flag("isCertKeyRollRequested", "Whether the client is asked to make a new key for that.",
			func(c *rest.Call, session *model.APISession) bool {
				a := extendable(c, session)
				return a != nil && a.IsKeyRollRequested
			}),
	}
}

// extendable is the authenticator that a session rests on if its certificate is
// one that this network issued, and else nil.
func extendable(c *rest.Call, s *model.APISession) *model.Authenticator {
	if a, ok := model.Authenticators.Get(c.Snap, s.AuthenticatorID); ok && a.IssuedHere() {
		return a
	}
	return nil
}

// sessionColumns are what a caller sees of its own session beyond the record.
func (s *Service) sessionColumns() []rest.Derived {
	return append([]rest.Derived{
		{Name: "token", Doc: "What requests of the session carry in the header net-session.", Schema: Text, Append: func(dst []byte, c *rest.Call, _ kind.Record) []byte {
			return kind.AppendText(dst, Caller(c).Token())
		}},
		{Name: "authQueries", Doc: "What is still to be shown before the session is good for more than showing it.", Schema: kind.ListOf(queryOutput.Schema()), Append: func(dst []byte, c *rest.Call, _ kind.Record) []byte {
			return appendQueries(dst, Caller(c).Queries())
		}},
		{Name: "cachedLastActivityAt", Doc: LastActivityDoc, Schema: Moment, Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
			return kind.AppendTime(dst, s.Sessions.LastActivity(rec.(*model.APISession)))
		}},
		{Name: "expiresAt", Doc: "When the session ends if no request uses it before.", Schema: Moment, Append: func(dst []byte, c *rest.Call, _ kind.Record) []byte {
			return kind.AppendTime(dst, Caller(c).Expires())
		}},
		{Name: "expirationSeconds", Doc: "For how many seconds a session lives without a request.", Schema: Integer, Append: func(dst []byte, c *rest.Call, _ kind.Record) []byte {
			return strconv.AppendInt(dst, int64(Caller(c).Lasts()/time.Second), 10)
		}},
		rest.Links(func(kind.Record) []rest.Link {
			return []rest.Link{{Name: "self", Href: "current-api-session"}, {Name: "current-identity", Href: "current-identity"}}
		}),
	}, s.CertColumns()...)
}

var queryOutput = kind.NewOutput[authn.Query]()

func appendQueries(dst []byte, queries []authn.Query) []byte {
	dst = append(dst, '[')
	for i := range queries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = queryOutput.Append(dst, &queries[i])
	}
	return append(dst, ']')
}
