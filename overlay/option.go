package overlay

import (
	"context"
	"time"

	"netkeep.internal/internal/client/sdk"
)

// DialOption is what may be said of a dial.
type DialOption interface{ dial(*dialing) }

// ListenOption is what may be said of hosting a service.
type ListenOption interface{ listen(*listening) }

// EndOption is what may be said of both.
type EndOption interface {
	DialOption
	ListenOption
}

// WithInstance names one host among those of a service: a listener hosts under
// the name, which it has alone in its service, and a dial leads to whoever hosts
// under it. A name is no proof of anything: all who may host the service may
// take one that is free. While another identity has it, a listener is refused at
// once (INVALID_INSTANCE); the same identity may have it again at any time.
func WithInstance(name string) EndOption {
	return endOption{func(d *dialing) { d.Instance = name }, func(l *listening) { l.Instance = name }}
}

// AsIdentity is WithInstance with the name of the identity that hosts.
func AsIdentity() ListenOption { return listenOption(func(l *listening) { l.asIdentity = true }) }

// WithSecret lets others host under the same instance's name who know the
// secret.
func WithSecret(secret []byte) ListenOption {
	return listenOption(func(l *listening) { l.Secret = secret })
}

// WithTimeout bounds a dial, or how long it may take until a service is hosted.
func WithTimeout(d time.Duration) EndOption {
	return endOption{func(o *dialing) { o.timeout = timeout(d) }, func(o *listening) { o.timeout = timeout(d) }}
}

// WithData gives a dial some bytes along, which whoever hosts the service finds
// in [Conn.Data] before it reads anything.
func WithData(data []byte) DialOption { return dialOption(func(d *dialing) { d.Data = data }) }

// WithCost says what it costs to be led here, beside the ways through the
// network: dials go to the host with the least.
func WithCost(cost uint16) ListenOption { return listenOption(func(l *listening) { l.Cost = cost }) }

// Precedence is how a host stands beside others of the same service, whatever
// they cost.
type Precedence byte

// The precedences.
const (
	PrecedenceDefault  = Precedence(sdk.Default)
	PrecedenceRequired = Precedence(sdk.Required) // before all that are not
	PrecedenceFailed   = Precedence(sdk.Failed)   // only if there is no other
)

// WithPrecedence says how the host stands beside others.
func WithPrecedence(p Precedence) ListenOption {
	return listenOption(func(l *listening) { l.Precedence = sdk.Precedence(p) })
}

// dialing and listening are all that was said.
type (
	dialing struct {
		sdk.DialOptions
		timeout
	}
	listening struct {
		sdk.ListenOptions
		timeout
		asIdentity bool
	}
)

type timeout time.Duration

// bound is a context that ends in time, if there is one.
func (t timeout) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if t == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(t))
}

type (
	dialOption   func(*dialing)
	listenOption func(*listening)
	endOption    struct {
		dialOption
		listenOption
	}
)

func (o dialOption) dial(d *dialing)       { o(d) }
func (o listenOption) listen(l *listening) { o(l) }
