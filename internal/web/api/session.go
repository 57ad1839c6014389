package api

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"netkeep/internal/auth/authn"
	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/web/rest"
)

// authenticateIn is the body of an authenticate request.
type authenticateIn struct {
	Username    string         `json:"username" kind:"range=4..100"`
	Password    string         `json:"password" kind:"secret,range=5..100"`
	ConfigTypes []string       `json:"configTypes"`
	EnvInfo     *model.EnvInfo `json:"envInfo"`
	SDKInfo     *model.SDKInfo `json:"sdkInfo"`
}

// methods are the ways to authenticate.
var methods = []string{"password", "cert", "ext-jwt"}

func mountSession(a *rest.API, s *Service) {
	view := a.View("currentApiSession", model.APISessions.Def, s.sessionColumns()...)
	rest.Show(a, rest.Op{
		Method: http.MethodPost, Path: "/authenticate", Name: "authenticate", Tag: "authenticate",
		Doc: "Authenticate and get an API session.", Auth: rest.Anonymous, Guarded: true, MaxBody: 64 << 10, BodyOptional: true,
		Query: []rest.Param{{
			Name: "method", Doc: "How the identity is shown.", Need: true,
			Schema: kind.Schema{"type": "string", "enum": methods},
		}},
	}, view, s.authenticate)
	rest.Show(a, rest.Op{
		Method: http.MethodGet, Path: "/current-api-session", Name: "getCurrentAPISession", Tag: "current-api-session",
		Doc: "Get the session that this request uses.", Auth: rest.Partial,
	}, view, func(c *rest.Call, _ rest.None) (kind.Record, error) { return Caller(c).Session(), nil })
	rest.Handle(a, rest.Op{
		Method: http.MethodDelete, Path: "/current-api-session", Name: "logout", Tag: "current-api-session",
		Doc: "End the session that this request uses.", Auth: rest.Partial,
	}, func(c *rest.Call, _ rest.None) (rest.Empty, error) {
		return rest.Empty{}, s.Sessions.End(c.Context(), c.Author(), Caller(c).Session().ID)
	})
}

// authenticate lets somebody in, or not.
func (s *Service) authenticate(c *rest.Call, in authenticateIn) (kind.Record, error) {
	session, err := s.logIn(c, in)
	method := c.Request.URL.Query().Get("method")
	if s.LoggedIn != nil && slices.Contains(methods, method) {
		s.LoggedIn(method, err)
	}
	return session, err
}

// logIn checks the credential that the method names and opens a session.
func (s *Service) logIn(c *rest.Call, in authenticateIn) (kind.Record, error) {
	proof, err := s.prove(c, in)
	if err != nil {
		return nil, err
	}
	who, err := s.Sessions.Open(c.Context(), c.Author(), proof, authn.Request{
		ConfigTypes: in.ConfigTypes, EnvInfo: in.EnvInfo, SDKInfo: in.SDKInfo,
		Bearer: bearer(c.Request),
	})
	if err != nil {
		return nil, err
	}
	c.Caller, c.Snap = caller{who}, c.State.Snapshot()
	c.Header().Set("net-session", who.Token())
	c.Header().Set("zt-session", who.Token())
	s.tellExpiry(c.Header(), who)
	return who.Session(), nil
}

// prove checks the primary credential.
func (s *Service) prove(c *rest.Call, in authenticateIn) (authn.Proof, error) {
	switch method := c.Request.URL.Query().Get("method"); method {
	case "password":
		switch {
		case in.Username == "":
			return authn.Proof{}, fault.Invalid("username", "is required", nil)
		case in.Password == "":
			return authn.Proof{}, fault.Invalid("password", "is required", nil)
		}
		return s.Passwords.Check(c.Context(), c.Author(), c.Snap, in.Username, in.Password)
	case "cert":
		return s.Certs.Check(c.Snap, c.Request.TLS.PeerCertificates)
	case "ext-jwt":
		return s.Tokens.Check(c.Context(), c.Snap, bearer(c.Request))
	default:
		return authn.Proof{}, fault.Invalid("method", "must be password, cert or ext-jwt", method)
	}
}

// sessionColumns are what a caller sees of its own session beyond the record.
func (s *Service) sessionColumns() []rest.Derived {
	text := kind.Schema{"type": "string"}
	moment := kind.Schema{"type": "string", "format": "date-time"}
	return []rest.Derived{
		{Name: "token", Schema: text, Append: func(dst []byte, c *rest.Call, _ kind.Record) []byte {
			return kind.AppendText(dst, Caller(c).Token())
		}},
		{Name: "authQueries", Schema: kind.ListOf(queryOutput.Schema()), Append: func(dst []byte, c *rest.Call, _ kind.Record) []byte {
			return appendQueries(dst, Caller(c).Queries())
		}},
		{Name: "cachedLastActivityAt", Schema: moment, Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
			return kind.AppendTime(dst, s.Sessions.LastActivity(rec.(*model.APISession)))
		}},
		{Name: "expiresAt", Schema: moment, Append: func(dst []byte, c *rest.Call, _ kind.Record) []byte {
			return kind.AppendTime(dst, Caller(c).Expires())
		}},
		{Name: "expirationSeconds", Schema: kind.Schema{"type": "integer"}, Append: func(dst []byte, _ *rest.Call, _ kind.Record) []byte {
			return strconv.AppendInt(dst, int64(s.Sessions.Timeout/time.Second), 10)
		}},
	}
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
