// Package api is the operations that both edge APIs offer: information about the
// controller, authentication, the current session. What only one of them has
// is in its own package below this one.
package api

import (
	"context"
	"crypto/x509"
	"net/http"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/auth/enroll"
	"netkeep.internal/internal/auth/power"
	"netkeep.internal/internal/data/backup"
	"netkeep.internal/internal/data/integrity"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/terse"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/alert"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/health"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/ops/recent"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/web/rest"
)

// Version is the version of both APIs.
const Version = "0.25.15"

// The roots of the APIs.
const (
	ClientRoot     = "/edge/client/v1"
	ManagementRoot = "/edge/management/v1"
	FabricRoot     = "/fabric/v1"
)

// Service is what the operations work with.
type Service struct {
	Sessions  *authn.APISessions
	Passwords *authn.Passwords
	Certs     *authn.Certificates
	Tokens    *authn.Tokens
	Factors   *authn.Factors
	Machines  *authn.Machines
	// Address is the host and port under which clients reach the controller.
	Address string
	// ManagementAddress is the one under which admins do.
	ManagementAddress string
	Specs             *Specs
	Started           time.Time
	Issuer            *enroll.Issuer
	Desk              *enroll.Desk
	// Grants are the sessions to dial and host that clients get, and what is
	// known of their devices.
	Grants *grant.Grants
	// Logins and Enrollments are how often an address may try.
	Logins, Enrollments limit.Rate[limit.Party]
	// Refused is how often an address may show wrong tokens.
	Refused limit.Rate[limit.Party]
	// LoggedIn, if set, is told of every attempt to authenticate by a known
	// method; err is nil if it opened a session.
	LoggedIn func(method string, err error)
	// Routers is the connections of routers.
	Routers seam.Routers
	// Choose says at which terminator a circuit would end.
	Choose func(*state.Snapshot, terminator.Want) (terminator.Candidate, bool)
	// Fabric is what they make between them, and ControllerID how they know this
	// controller; empty if it has none.
	Fabric       seam.Fabric
	ControllerID string
	// Herald tells of what happens among them, as it does.
	Herald *herald.Herald
	// Figures are those that monitoring sees of this controller.
	Figures func() []herald.Figure
	// Controllers says which controllers are there, and Announce whether all
	// clients are told that there are several.
	Controllers seam.Controllers
	Announce    bool
	// Offers reports whether clients are told now that they may log in by OpenID
	// Connect; they never are if it is nil.
	Offers func() bool
	// Network is what tells the network from others, in ids of events.
	Network func() string
	// Settings are those that the controller runs with, as a file has them and without
	// secrets.
	Settings func() string
	// Streams are the answers that go on for as long as their callers like.
	Streams *rest.Streams
	// Integrity scans what is stored, and Snapshots copies it.
	Integrity *integrity.Scanner
	Snapshots *backup.Snapshots
	// Audit is the log of what happened, and Recorder takes note of what is no change.
	Audit    *audit.Log
	Recorder *audit.Recorder
	// Cluster is the controllers that keep the store together.
	Cluster Cluster
	// Health is what it takes to serve, and Certificates are those of the
	// controller. StoreSize and DiskFree are in bytes, not ok if nobody can
	// tell.
	Health              health.Checks
	Certificates        func() []pki.Item
	StoreSize, DiskFree func() (n int64, ok bool)
	// Day is the last one of this controller.
	Day *recent.Day
	// Alerts are those who are sent alerts.
	Alerts []*alert.Receiver
	// Bundle is the certificates of our own authority at present.
	Bundle func() []*x509.Certificate
	// Outdated reports whether a certificate, as PEM, is of a root CA that
	// another takes the place of.
	Outdated func(certificate terse.Text) bool
}

// Cluster is what those need who look after the controllers of a network.
type Cluster interface {
	// Invite makes a token with which one controller may join.
	Invite(ctx context.Context) (token string, expires time.Time, err error)
	// Members are the controllers that keep the store, or if others do, those that
	// share it; none if there can be no other.
	Members(ctx context.Context) ([]Member, error)
	// Promote gives a member a vote, and Remove takes one out for good. Both are
	// named by id or name.
	Promote(ctx context.Context, member string) error
	Remove(ctx context.Context, member string) error
}

// Member is one of the controllers that keep the store.
type Member struct {
	ID      string `json:"id" doc:"Id of the member in the store."`
	Name    string `json:"name" kind:"nullable" doc:"Id of the controller; null if it has never been started."`
	Address string `json:"address" doc:"Host and port where the others reach its store."`
	Vote    bool   `json:"vote" doc:"Whether it decides with the others; one without a vote follows."`
	Leader  bool   `json:"leader" doc:"Whether it leads the others at present."`
	Self    bool   `json:"self" doc:"Whether it is the controller that answers."`
	// What it tells of itself, while it does.
	Online    bool   `json:"isOnline" doc:"Whether it is there."`
	Version   string `json:"version" kind:"nullable" doc:"What it runs; null if it has never been started."`
	Behind    int64  `json:"behind" doc:"How many revisions the store had that its memory lacked when it was last seen."`
	StoreSize int64  `json:"storeSize" kind:"nullable" doc:"Size of its store in bytes when it was last seen; null if that is not known."`
	Routers   int    `json:"routers" doc:"How many routers were connected to it when it was last seen."`
	// KeyGeneration tells whether all have the same keys.
	KeyGeneration int        `json:"keyGeneration" doc:"How often the keys that controllers share had changed when it last got some."`
	LastSeen      *time.Time `json:"lastSeenAt" doc:"When the controller that answers last heard of it; null if it never has since it started."`
}

// configTypesParam is read by what shows services.
var configTypesParam = rest.TextsParam("configTypes",
	"Config types of which services show their config, by id or name, or all, each in a parameter of its own or with commas between them; those that the session asked for if not given.",
	func(string) string { return "" })

// shownConfigs returns which configs of services a request is shown: of the types in its
// query, or else of those that its session asked for, what the caller may read.
func shownConfigs(c *rest.Call) (wanted func(*model.Config) bool) {
	var asked []string
	if who := Caller(c); who != nil { // a machine asks for none
		asked = who.Session().ConfigTypes
	}
	if list := strings.Join(configTypesParam.Of(c), ","); list != "" {
		asked = authn.ResolveConfigTypes(c.Snap, strings.Split(list, ","))
	}
	over := c.Reads(model.Configs.Def)
	return func(config *model.Config) bool {
		return model.WantsConfig(asked, config.ConfigTypeID) && over.Has(model.Configs.Def, config)
	}
}

// Mount adds the operations of both APIs to one of them.
func Mount(a *rest.API, s *Service) {
	MountInfo(a, s)
	mountSession(a, s)
	mountCurrentIdentity(a, s)
	mountMFA(a, s)
	mountExtend(a, s)
	mountTrust(a, s)
	mountLater(a)
}

// Caller is the caller of a request that asked for a session.
func Caller(c *rest.Call) *authn.Caller {
	if who, ok := c.Caller.(caller); ok {
		return who.Caller
	}
	return nil
}

// caller is an authn.Caller in the terms of package rest.
type caller struct{ *authn.Caller }

func (c caller) Author() state.Author {
	by := authn.By(c.Identity())
	by.Session, by.Factors = c.Session().ID, c.Shown()
	return by
}

// Access is complete authentication first and rights second: an admin who has
// yet to show a factor is not an admin.
func (c caller) Access() rest.Access {
	switch {
	case !c.Complete():
		return rest.Partial
	case c.Identity().Admin():
		return rest.Admin
	}
	return rest.Full
}

// Over is the part of the network that the caller has a power over.
func (c caller) Over(snap *state.Snapshot, need string) rest.Extent {
	return over(snap, c.power(snap), need)
}

// Knows reports whether the caller knows a record because it is them or a role of theirs.
func (c caller) Knows(snap *state.Snapshot, rec kind.Record) bool {
	return power.Known(snap, c.Author(), rec)
}

// revealed is the records of which somebody may see the secrets: whoever knows those
// of somebody more powerful could be that.
type revealed struct {
	power.Extent
	snap *state.Snapshot
	mine power.Set
}

func (r revealed) Whole() bool { return false }

func (r revealed) Has(d *kind.Def, rec kind.Record) bool {
	return r.Extent.Has(d, rec) && r.mine.Covers(power.Behind(r.snap, rec))
}

// power is all that the caller may do to the network. It is looked up anew: a stream
// outlives what its caller was when it began.
func (c caller) power(snap *state.Snapshot) power.Set { return power.OfID(snap, c.Identity().ID) }

// IsToken reports whether a text has the shape of a token, which is that of a UUID
// in small letters. A header of another shape is as good as none.
func IsToken(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f':
		default:
			return false
		}
	}
	return true
}

// Gate recognises callers by their session token, and machines by what they show
// instead.
func (s *Service) Gate(c *rest.Call) (rest.Caller, error) {
	if who, is, err := s.byMachine(c); is {
		return who, err
	}
	token, bearer, err := s.sessionToken(c)
	if err != nil {
		return nil, err
	}
	if err := s.lookFor(c, token); err != nil {
		return nil, err
	}
	who, err := s.Sessions.Verify(c.Context(), c.Snap, authn.Credentials{Token: token, Bearer: bearer})
	if err == nil {
		err = s.held(c, who)
	}
	if err != nil {
		s.noteToken(c, err)
		return nil, err
	}
	s.tellExpiry(c.Header(), who)
	s.tellConnected(c, who)
	return caller{who}, nil
}

// sessionToken returns the token of the session that a request carries, and the JWT
// of another issuer that it may carry beside it. An access token is one of a
// session: no other issuer can make what looks like one, since what tells them apart
// is the key that has signed them.
func (s *Service) sessionToken(c *rest.Call) (token, bearer string, err error) {
	var others []string
	for _, value := range c.Authorizations() {
		text, is := strings.CutPrefix(value, "Bearer ")
		switch {
		case !is || !s.Sessions.IsBearer(text):
			others = append(others, text)
		case token != "":
			return "", "", errManyAccess
		default:
			token = text
		}
	}
	switch {
	case token != "" && c.ShowsSession():
		return "", "", errTwoSessions
	case token != "":
		if len(others) == 1 {
			bearer = others[0]
		}
		return token, bearer, nil
	}
	token, ok := c.Session()
	switch {
	case ok && IsToken(token):
		return token, c.Bearer(), nil
	case c.ShowsSession():
		return "", "", errNoToken
	default:
		return "", "", fault.New(fault.CodeUnauthorized, "the request carries no session token; authenticate and send it as net-session")
	}
}

var (
	errManyAccess  = fault.New(fault.CodeUnauthorized, "the request carries two access tokens of this network; send one")
	errNoToken     = fault.New(fault.CodeUnauthorized, "the request's session header is not the token of one session, as authenticating returns it; authenticate and send that as net-session")
	errTwoSessions = fault.New(fault.CodeUnauthorized, "the request carries an access token and a session token; send one of them")
)

// lookFor makes sure that a session is not taken for none that was opened at
// another controller a moment ago.
func (s *Service) lookFor(c *rest.Call, token string) error {
	if _, known := s.Sessions.Recall(c.Snap, token); known || c.Open() || !s.Sessions.May(token) {
		return nil
	}
	_, err := c.LookAgain()
	return err
}

// held refuses a token that may be a router's and not its holder's, where the
// operation asks for more.
func (s *Service) held(c *rest.Call, who *authn.Caller) error {
	if need := c.Key(); need == rest.NoKey || need == rest.KeyOrSecret && !who.ByCertificate(c.Snap) || s.shows(c, who) {
		return nil
	}
	return authn.ErrHeld
}

// shows reports whether a request shows more than a token that routers may
// know: a certificate of its session, or the JWT that the session rests on.
func (s *Service) shows(c *rest.Call, who *authn.Caller) bool {
	return !who.Known() || who.Holds(c.Snap, c.Certificates()) || who.Repeats(c.Context(), c.Snap, s.Tokens, c.Bearer())
}

// Shows reports the same of the caller of a request.
func (s *Service) Shows(c *rest.Call) bool { return s.shows(c, Caller(c)) }

// tellExpiry says in the answer how long the session lives if nothing more
// happens.
func (s *Service) tellExpiry(h http.Header, who *authn.Caller) {
	h.Set("expires-at", who.Expires().UTC().String())
	h.Set("expiration-seconds", strconv.FormatInt(int64(who.Lasts()/time.Second), 10))
}
