package api

import (
	"net/http"
	"strings"
	"time"

	"netkeep.internal/internal/auth/mfa"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
)

// codeIn is a one-time or recovery code.
type codeIn struct {
	Code string `json:"code" kind:"required,secret" doc:"A one-time code, or where one may do instead, a recovery code."`
}

// provedOut is what routers believe of when a second factor was shown.
type provedOut struct {
	Token    string    `json:"token" doc:"A JWT that names the API session and the time."`
	IssuedAt time.Time `json:"issuedAt" doc:"When the second factor was shown."`
}

// errUnproved is for sessions that no router judges.
var errUnproved = fault.New(fault.CodeMethod, "a one-time code is shown to authenticate/mfa, and the session itself knows when it was; only sessions of a login by OpenID Connect have a token to pass on")

// codeParam carries a code where a request has no body.
var codeParam = rest.TextParam("mfa-validation-code", "A one-time or recovery code.").InHeader()

// mfaPath is where the caller's second factor is.
const mfaPath = "current-identity/mfa"

func mountMFA(a *rest.API, s *Service) {
	op := func(method, path, name, doc string, auth rest.Access) rest.Op {
		tag, _, _ := strings.Cut(path[1:], "/")
		return rest.Op{Method: method, Path: path, Name: name, Tag: tag, Doc: doc, Auth: auth, MaxBody: 4 << 10}
	}
	const own = "/" + mfaPath
	key := func(k rest.Key, o rest.Op) rest.Op {
		o.Key = k
		return o
	}
	rest.Handle(a, op(http.MethodPost, "/authenticate/mfa", "authenticateMfa", "Complete authentication with a one-time or recovery code.", rest.Partial),
		func(c *rest.Call, in codeIn) (rest.Empty, error) {
			return rest.Empty{}, s.noteCode(c, s.Factors.Show(c.Context(), c.Author(), Caller(c), in.Code))
		})
	rest.Handle(a, op(http.MethodPost, "/current-api-session/totp-token", "createTotpToken", "Show a one-time code, and get a token that tells routers of OpenZiti when it was; the code that was shown last does again. Only for a login by OpenID Connect.", rest.Partial),
		s.proveCode)
	view := a.View("mfa", model.MFAs.Def, s.mfaColumns()...)
	rest.Show(a, op(http.MethodGet, own, "detailMfa", "Get the state of the second factor, and until it is verified what verifying needs.", rest.Partial),
		view, func(c *rest.Call, _ rest.None) (kind.Record, error) { return ownMFA(c) })
	rest.Handle(a, key(rest.KeyOnly, op(http.MethodPost, own, "enrollMfa", "Start to enroll a second factor.", rest.Partial)),
		func(c *rest.Call, _ rest.None) (rest.Created, error) {
			id, err := s.Factors.Start(c.Context(), c.Author(), Caller(c))
			return rest.Created{ID: id, Self: mfaPath}, err
		})
	remove := op(http.MethodDelete, own, "deleteMfa", "Remove the second factor; a verified one needs a code.", rest.Full)
	remove.Params, remove.Key = []rest.Parameter{codeParam}, rest.KeyOrSecret
	rest.Handle(a, remove,
		func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			return rest.Empty{}, s.Factors.Remove(c.Context(), c.Author(), Caller(c), codeParam.Of(c))
		})
	rest.Handle(a, key(rest.KeyOrSecret, op(http.MethodPost, own+"/verify", "verifyMfa", "Complete the enrollment of a second factor with a one-time code.", rest.Partial)),
		func(c *rest.Call, in codeIn) (rest.Empty, error) {
			return rest.Empty{}, s.Factors.Confirm(c.Context(), c.Author(), Caller(c), in.Code)
		})
	qr := op(http.MethodGet, own+"/qr-code", "detailMfaQrCode", "Get the QR code of an enrollment that is not verified yet.", rest.Partial)
	qr.Types, qr.Key = []string{"image/png"}, rest.KeyOnly
	rest.Handle(a, qr, s.qrCode)
	recovery := op(http.MethodGet, own+"/recovery-codes", "detailMfaRecoveryCodes", "Get the recovery codes; the one-time code is in the body or a header.", rest.Full)
	recovery.BodyOptional, recovery.Params, recovery.Key = true, []rest.Parameter{codeParam}, rest.KeyOrSecret
	rest.Show(a, recovery, a.PartialView("mfaRecoveryCodes", model.MFAs.Def,
		[]string{"id", "createdAt", "updatedAt", "tags", "_links", "recoveryCodes"}, recoveryColumn, mfaLinks), s.recoveryCodes)
	rest.Handle(a, key(rest.KeyOrSecret, op(http.MethodPost, own+"/recovery-codes", "createMfaRecoveryCodes", "Replace all recovery codes.", rest.Full)),
		func(c *rest.Call, in codeIn) (rest.Empty, error) {
			return rest.Empty{}, s.Factors.Renew(c.Context(), c.Author(), Caller(c), in.Code)
		})
}

// proveCode has a session show a code and tells routers of it.
func (s *Service) proveCode(c *rest.Call, in codeIn) (provedOut, error) {
	who := Caller(c)
	if who.Session().Client == "" {
		return provedOut{}, errUnproved
	}
	at, err := s.Factors.Prove(c.Context(), c.Author(), who, in.Code)
	if s.noteCode(c, err) != nil {
		return provedOut{}, err
	}
	text, err := s.Sessions.Prove(who.Session(), s.Address, at)
	return provedOut{Token: text, IssuedAt: at}, err
}

// ownMFA returns the caller's second factor.
func ownMFA(c *rest.Call) (*model.MFA, error) {
	m, has := model.MFAOf(c.Snap, Caller(c).Identity().ID)
	if !has {
		return nil, fault.New(fault.CodeNotFound, "the identity has no second factor")
	}
	return m, nil
}

// mfaColumns show what verifying needs, until it is done.
func (s *Service) mfaColumns() []rest.Derived {
	// Who may be a router with a client's token is not told.
	pending := func(c *rest.Call, m *model.MFA) bool { return !m.IsVerified && s.Shows(c) }
	return []rest.Derived{
		{
			Name: "provisioningUrl", Doc: "Address that hands the key to an authenticator app; left out once the factor is verified.",
			Schema: Text, Optional: true, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				if m := rec.(*model.MFA); pending(c, m) {
					return kind.AppendText(dst, s.Factors.ProvisioningURL(Caller(c), m))
				}
				return dst
			},
		},
		{
			Name: "recoveryCodes", Doc: "Codes that work once each in place of a one-time code; empty once the factor is verified.",
			Schema: kind.ListOf(Text), Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
				if m := rec.(*model.MFA); pending(c, m) {
					return kind.AppendTexts(dst, m.RecoveryCodes)
				}
				return append(dst, "[]"...)
			},
		},
		mfaLinks,
	}
}

// mfaLinks lead to what can be done with a second factor as it is.
var mfaLinks = rest.Links(func(rec kind.Record) []rest.Link {
	links := []rest.Link{{Name: "self", Href: mfaPath}, {Name: "current-identity", Href: "current-identity"}}
	if rec.(*model.MFA).IsVerified {
		return append(links, rest.Link{Name: "recovery-codes", Href: mfaPath + "/recovery-codes"})
	}
	return append(links, rest.Link{Name: "verify", Href: mfaPath + "/verify"}, rest.Link{Name: "qr", Href: mfaPath + "/qr-code"})
})

func (s *Service) qrCode(c *rest.Call, _ rest.None) (rest.File, error) {
	m, err := ownMFA(c)
	if err != nil {
		return rest.File{}, err
	}
	if m.IsVerified {
		return rest.File{}, fault.New(fault.CodeNotFound, "the second factor is verified; its QR code is not shown again")
	}
	png, err := mfa.QRCode(s.Factors.ProvisioningURL(Caller(c), m))
	return rest.File{Type: "image/png", Body: png}, err
}

// optionalCode is a code that may be in the header instead.
type optionalCode struct {
	Code string `json:"code" kind:"secret" doc:"A one-time code; it may be in a header instead."`
}

// recoveryColumn is the recovery codes, which only one operation shows of a
// factor that is verified.
var recoveryColumn = rest.Derived{
	Name: "recoveryCodes", Doc: "Codes that work once each in place of a one-time code.", Schema: kind.ListOf(Text),
	Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
		return kind.AppendTexts(dst, rec.(*model.MFA).RecoveryCodes)
	},
}

func (s *Service) recoveryCodes(c *rest.Call, in optionalCode) (kind.Record, error) {
	code := in.Code
	if code == "" {
		code = codeParam.Of(c)
	}
	codes, err := s.Factors.Recover(c.Context(), c.Author(), Caller(c), code)
	if err != nil {
		return nil, err
	}
	c.Snap = c.Latest() // in which the code is spent
	m, err := ownMFA(c)
	if err != nil {
		return nil, err
	}
	shown := *m
	shown.RecoveryCodes = codes
	return &shown, nil
}
