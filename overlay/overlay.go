// Package overlay puts a Go program into a network of netkeep: it dials
// services and hosts them as if they were addresses, wherever they are.
// Nothing listens on a port, and nothing needs to be reachable but an edge
// router.
//
// A program is an identity of the network. Somebody invites it, which makes a
// token; Enroll, or netkeep enroll, makes of the token the file that Open reads:
//
//	netkeep invite my-program --save my-program.jwt
//	netkeep enroll my-program.jwt -o my-program.json
//
// What it may do is what policies say: a service policy of type Dial to dial a
// service, one of type Bind to host it. Who dials a service that the program
// hosts is what the controller says, whatever the dialer calls itself: see
// [Conn.Dialer].
package overlay

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/ops/build"
)

// What errors of Open, Dial and Listen, and of connections that are cut off, may be, for
// errors.Is. Their texts say what to do, and are for people alone.
var (
	ErrNoService   = sdk.ErrNoService   // the identity is offered no such service
	ErrDenied      = sdk.ErrDenied      // a policy, or a posture check, does not let it
	ErrNoRouter    = sdk.ErrNoRouter    // no edge router can be reached
	ErrNoHost      = sdk.ErrNoHost      // nobody hosts the service at present
	ErrUnreachable = sdk.ErrUnreachable // who hosts it could not be reached, or failed
	ErrSession     = sdk.ErrSession     // what let the identity use it was taken away
	ErrBusy        = sdk.ErrBusy        // not now: too much goes on, or a part of the network is away
	ErrRefused     = sdk.ErrRefused     // who hosts it did not want the connection, or any other reason
	ErrFactor      = sdk.ErrFactor      // a code of a second factor is missing, or wrong
)

// CodeOf is the name of why the network said no, such as INVALID_SESSION: finer
// than the errors above, and what to look for in docs/codes.md. It is empty if it
// was not the network that did, or a router that gives no code.
func CodeOf(err error) string { return sdk.CodeOf(err) }

// Network is a network as one identity sees it. All methods may be called at
// any time.
type Network struct{ c *sdk.Client }

// Option changes how a network is used.
type Option func(*sdk.Options)

// WithLog has connections to routers and what becomes of them logged.
func WithLog(log *slog.Logger) Option { return func(o *sdk.Options) { o.Log = log } }

// Open logs in with the file of an identity. What it returns stays logged in,
// follows what the identity may use, and must be closed. The certificate in the
// file is renewed before it ends, for which its directory must be writable.
func Open(ctx context.Context, identityFile string, options ...Option) (*Network, error) {
	opt := sdk.Options{Identity: identityFile, Program: "netkeep-overlay", Version: build.Read().Version, Now: time.Now}
	for _, o := range options {
		o(&opt)
	}
	c, err := sdk.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	return &Network{c}, nil
}

// Close ends all connections and listeners.
func (n *Network) Close() error { return n.c.Close() }

// Name is that of the identity.
func (n *Network) Name() string { return n.c.Name() }

// Dial connects to a service. It takes 30 seconds at most, unless ctx or
// WithTimeout says otherwise. The connection is encrypted from end to end if the
// service says so.
func (n *Network) Dial(ctx context.Context, service string, options ...DialOption) (*Conn, error) {
	var opt dialing
	for _, o := range options {
		o.dial(&opt)
	}
	ctx, cancel := opt.bound(ctx)
	defer cancel()
	c, err := n.c.Dial(ctx, service, opt.DialOptions)
	if err != nil {
		return nil, err
	}
	return &Conn{c}, nil
}

// suffix may follow the name of a service where a host is expected.
const suffix = ".ziti"

// DialContext is Dial for an http.Transport and others who have an address: the
// host is the name of a service, as it is or with .ziti behind it. Whoever hosts
// the service is told the port.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil, net.UnknownNetworkError(network)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	service := host
	if short, ok := strings.CutSuffix(host, suffix); ok && n.c.Find(host) == nil {
		service = short
	}
	data, err := json.Marshal(map[string]string{"dst_protocol": "tcp", "dst_hostname": host, "dst_port": port})
	if err != nil {
		return nil, err
	}
	conn, err := n.Dial(ctx, service, WithData(data))
	if err != nil {
		return nil, err // and no connection that is nil inside
	}
	return conn, nil
}

// Listen hosts a service. It returns when the first edge router has agreed, or
// with why none did, or when ctx ends; without a deadline it waits for 30
// seconds at most. From then on ctx has no part in it: the service is hosted
// again wherever it is lost, until the listener is closed.
func (n *Network) Listen(ctx context.Context, service string, options ...ListenOption) (*Listener, error) {
	var opt listening
	for _, o := range options {
		o.listen(&opt)
	}
	if opt.asIdentity {
		opt.Instance = n.c.Name()
	}
	ctx, cancel := opt.bound(ctx)
	defer cancel()
	l, err := n.c.Listen(ctx, service, opt.ListenOptions)
	if err != nil {
		return nil, err
	}
	return &Listener{l}, nil
}

// Service is one that the identity may use.
type Service struct {
	Name string
	// Dial and Host are what the identity may do with it.
	Dial, Host bool
	// Encrypted says that its connections are, from end to end.
	Encrypted bool
}

func (s Service) String() string {
	var may []string
	if s.Dial {
		may = append(may, "dial")
	}
	if s.Host {
		may = append(may, "host")
	}
	return fmt.Sprintf("%s (%s)", s.Name, strings.Join(may, ", "))
}

// Services returns what the identity may use, by name.
func (n *Network) Services() []Service {
	known, _ := n.c.Services()
	list := make([]Service, len(known))
	for i, s := range known {
		list[i] = Service{Name: s.Name, Dial: s.Dial, Host: s.Bind, Encrypted: s.Encrypted}
	}
	return list
}
