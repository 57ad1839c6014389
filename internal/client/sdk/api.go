package sdk

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/fault"
)

// api is the controller, as clients know it.
type api struct {
	id      *credentials
	opt     Options
	peer    atomic.Pointer[remote.Client]
	opening sync.Mutex
	session atomic.Pointer[apiSession]
	learned time.Time   // when one was told where the controllers are
	seconds atomic.Bool // whether a token has to be shown with every request
	rests   time.Time   // end of the token that the session rests on; for who holds opening
	given   string      // token of the last session that was given up; the same
}

// apiSession is what one is recognised by.
type apiSession struct {
	Token    string `json:"token"`
	Identity struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"identity"`
	Queries []struct {
		Type string `json:"typeId"`
	} `json:"authQueries"`
}

func newAPI(id *credentials, opt Options) *api {
	a := &api{id: id, opt: opt}
	a.session.Store(&apiSession{})
	a.show(id.pair.Load())
	return a
}

func (a *api) remote() *remote.Client { return a.peer.Load() }

// show has connections show a certificate from now on.
func (a *api) show(pair *tls.Certificate) {
	a.id.pair.Store(pair)
	config := a.id.config()
	config.VerifyConnection = func(state tls.ConnectionState) error {
		a.id.shown.Store(&state.PeerCertificates)
		return nil
	}
	if a.opt.Account != nil {
		config.GetClientCertificate = nil // which is for routers
	}
	// Those that are there show another.
	account := remote.Account{Address: a.id.address, Others: a.id.also, Token: a.session.Load().Token, Dialer: a.opt.Dialer}
	old := a.peer.Load()
	if old != nil {
		account.Others, account.Prefer, account.Revision = old.Places(), old.Address(), old.Revision()
	}
	fresh := remote.WithTLS(account, config)
	if a.opt.Second != nil {
		fresh.Bearer = a.bearer
	}
	if old = a.peer.Swap(fresh); old != nil {
		old.Close()
	}
}

// learnEvery is how often one asks where the controllers are.
const learnEvery = time.Minute

// learn asks where the controllers are, now and then. Nobody has to wait for it:
// who cannot say so is asked again.
func (a *api) learn(ctx context.Context) {
	now := a.opt.Now()
	if since := now.Sub(a.learned); !a.learned.IsZero() && since >= 0 && since < learnEvery {
		return
	}
	alone := len(a.remote().Places()) == 1
	if err := a.remote().Learn(ctx, "edge-client", remote.Request{Path: a.path("/controllers"), Stranger: true}); err != nil {
		return
	}
	a.learned = now
	if alone && len(a.remote().Places()) > 1 {
		a.show(a.id.pair.Load()) // over connections that are given up soon
	}
}

// path is one below the root of the Client API.
func (a *api) path(p string) string { return "/" + a.id.root + p }

// login opens a session in the place of one, unless somebody else has done so.
func (a *api) login(ctx context.Context, ended string) error {
	a.opening.Lock()
	defer a.opening.Unlock()
	if a.session.Load().Token != ended {
		return nil
	}
	if a.opt.Account != nil {
		return a.signIn(ctx)
	}
	s, err := a.authenticate(ctx, "cert", "")
	shown := a.id.pair.Load()
	for _, other := range a.id.others(a.opt.Now()) {
		if !unauthorized(err) {
			break
		}
		a.show(other)
		s, err = a.authenticate(ctx, "cert", "")
	}
	if unauthorized(err) {
		a.show(shown)
		return a.denied(shown.Leaf)
	}
	if err != nil {
		return plainly(err)
	}
	if err := a.complete(ctx, s); err != nil {
		return err
	}
	a.session.Store(s)
	a.remote().Use(s.Token)
	return nil
}

// denied says why the controller may not let the identity in.
func (a *api) denied(leaf *x509.Certificate) error {
	if now := a.opt.Now(); now.After(leaf.NotAfter) {
		return say(ErrDenied, "the certificate in %s ended at %s: enroll the identity again, unless this machine's clock is wrong (it says %s)",
			a.id.file, moment(leaf.NotAfter), moment(now))
	}
	return say(ErrDenied, "the controller at %s does not let the identity in %s in: it was deleted, disabled or enrolled again, or its certificate was replaced; look with: netkeep list identities",
		a.id.address, a.id.file)
}

func unauthorized(err error) bool {
	e, ok := errors.AsType[*remote.Error](err)
	return ok && e.Status == http.StatusUnauthorized
}

// authenticate opens a session with the certificate that is shown, or with a token.
func (a *api) authenticate(ctx context.Context, method, token string) (*apiSession, error) {
	s := &apiSession{}
	return s, a.remote().Call(ctx, remote.Request{
		Method: http.MethodPost, Path: a.path("/authenticate?method=" + method), Stranger: true, Repeatable: true, Bearer: token,
		Body: map[string]any{
			"configTypes": []string{"all"},
			"sdkInfo":     map[string]string{"type": cmp.Or(a.opt.Program, "netkeep"), "version": a.opt.Version},
			"envInfo":     map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH},
		},
	}, s)
}

// logoutTime is how long one waits to be let go.
const logoutTime = 2 * time.Second

// logout gives the session up: nobody waits for it to end by itself.
func (a *api) logout() {
	ctx, cancel := context.WithTimeout(context.Background(), logoutTime)
	defer cancel()
	defer a.remote().Close()
	_ = a.remote().Call(ctx, remote.Request{Method: http.MethodDelete, Path: a.path("/current-api-session"), Repeatable: true}, nil)
}

// again does something that needs the session, and does it once more with a
// new one if that has ended.
func (a *api) again(ctx context.Context, do func() error) error {
	token := a.session.Load().Token
	err := do()
	if !unauthorized(err) {
		return err
	}
	if err := a.login(ctx, token); err != nil {
		return err
	}
	return do()
}

func (a *api) call(ctx context.Context, method, path string, in, out any) error {
	return a.again(ctx, func() error {
		return a.remote().Call(ctx, remote.Request{Method: method, Path: a.path(path), Body: in, Repeatable: true}, out)
	})
}

// lastChange is when something changed for the identity.
func (a *api) lastChange(ctx context.Context) (string, error) {
	var data struct {
		LastChangeAt string `json:"lastChangeAt"`
	}
	err := a.call(ctx, http.MethodGet, "/current-api-session/service-updates", nil, &data)
	return data.LastChangeAt, err
}

// services lists what the identity may use.
func (a *api) services(ctx context.Context) ([]*Service, error) {
	var all []*Service
	err := a.again(ctx, func() error {
		all = nil
		_, err := a.remote().Each(ctx, remote.List{Path: a.path("/services"), Sort: "name"}, func(rec jsontext.Value) error {
			s := &serviceRecord{}
			if err := json.Unmarshal(rec, s); err != nil {
				return err
			}
			all = append(all, s.service())
			return nil
		})
		return err
	})
	return all, err
}

// serviceRecord is a service as the controller shows it.
type serviceRecord struct {
	ID                 string                    `json:"id"`
	Name               string                    `json:"name"`
	Permissions        []string                  `json:"permissions"`
	EncryptionRequired bool                      `json:"encryptionRequired"`
	Config             map[string]jsontext.Value `json:"config"`
	PostureQueries     []struct {
		Queries []query `json:"postureQueries"`
	} `json:"postureQueries"`
}

func (r *serviceRecord) service() *Service {
	s := &Service{ID: r.ID, Name: r.Name, Encrypted: r.EncryptionRequired, Config: r.Config}
	for _, policy := range r.PostureQueries {
		s.queries = append(s.queries, policy.Queries...)
	}
	for _, p := range r.Permissions {
		s.Dial = s.Dial || p == toDial
		s.Bind = s.Bind || p == toBind
	}
	return s
}

// Hosting is how an identity hosts unless somebody says otherwise: what it costs
// and how it stands beside others, with what differs for single services by id.
type Hosting struct {
	Cost        uint16            `json:"defaultHostingCost"`
	Precedence  string            `json:"defaultHostingPrecedence"`
	Costs       map[string]uint16 `json:"serviceHostingCosts"`
	Precedences map[string]string `json:"serviceHostingPrecedences"`
}

// Hosting asks for how the identity hosts.
func (c *Client) Hosting(ctx context.Context) (*Hosting, error) {
	h := &Hosting{}
	return h, plainly(c.api.call(ctx, http.MethodGet, "/current-identity", nil, h))
}

// What a session is for.
const (
	toDial = "Dial"
	toBind = "Bind"
)

// session is leave to dial or host a service.
type session struct {
	ID      string         `json:"id"`
	Token   string         `json:"token"`
	Routers []*routerPlace `json:"edgeRouters"`

	made time.Time
}

// routerPlace is where a router can be reached.
type routerPlace struct {
	Name      string            `json:"name"`
	Online    bool              `json:"isOnline"`
	Disabled  bool              `json:"disabled"`
	Cost      int               `json:"cost"`
	Protocols map[string]string `json:"supportedProtocols"`
	URLs      map[string]string `json:"urls"`
}

// address is where a router listens for clients, empty if it does not.
func (p *routerPlace) address() string {
	if !p.Online || p.Disabled {
		return ""
	}
	return cmp.Or(p.Protocols["tls"], p.URLs["tls"])
}

// open asks for leave. Who asks again gets the same, with the routers of now.
func (a *api) open(ctx context.Context, s *Service, purpose string) (*session, error) {
	got := &session{}
	err := a.call(ctx, http.MethodPost, "/sessions", map[string]string{"serviceId": s.ID, "type": purpose}, got)
	e, refused := errors.AsType[*remote.Error](err)
	switch {
	case err == nil:
		got.made = a.opt.Now()
		return got, nil
	case refused && e.Status == http.StatusNotFound:
		return nil, say(ErrNoService, "the service %s is not there any more, or not for this identity", s.Name)
	case refused && fault.Code(e.Code) == fault.CodeNoRouters:
		return nil, say(errUnserved, "no edge router serves both this identity and the service %s; look at: netkeep list edge-router-policies and netkeep list service-edge-router-policies", s.Name)
	case refused && fault.Code(e.Code) == fault.CodePosture:
		return nil, say(errPosture, "this device does not pass the posture checks of the service %s; an admin sees why with: netkeep posture %s --failed", s.Name, a.session.Load().Identity.Name)
	case refused && fault.Code(e.Code) == fault.CodeInvalid:
		return nil, say(ErrDenied, "this identity has no policy to %s the service %s", verb(purpose), s.Name)
	}
	return nil, plainly(err)
}

func verb(purpose string) string {
	if purpose == toBind {
		return "host"
	}
	return "dial"
}

// Temporary reports whether an error is of a controller that cannot be reached
// or cannot answer at present.
func Temporary(err error) bool {
	e, said := errors.AsType[*remote.Error](err)
	return errors.Is(err, remote.ErrUnreachable) || said && (e.Status >= 500 || e.Status == http.StatusTooManyRequests)
}

// plainly leaves out what only people at a terminal can do.
func plainly(err error) error {
	if e, ok := errors.AsType[*remote.Untrusted](err); ok {
		return say(e, "the controller at %s has a certificate of a CA that the identity's file does not name: it is another controller, or was set up anew; enroll the identity again if that is right, and tell an admin if it is not", e.Address)
	}
	e, ok := errors.AsType[*remote.Error](err)
	if !ok {
		return err // nil too
	}
	return say(e, "%s", cmp.Or(e.Reason, e.Message, http.StatusText(e.Status)))
}
