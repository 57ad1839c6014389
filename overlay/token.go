package overlay

import (
	"context"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/ops/build"
)

// TokenSource returns a JWT of an external signer that names the identity, as often as
// there has to be one, and its end. The last one may be returned as long as it is good for a
// while; a newer one is shown before it ends, and connections go on.
type TokenSource func(context.Context) (token string, ends time.Time, err error)

// WithAuthority is who vouches for the controller, as PEM, for OpenWithToken. Without it those do
// that the machine trusts.
func WithAuthority(pem string) Option {
	return func(o *sdk.Options) {
		if o.Account != nil {
			o.Account.CA = pem
		}
	}
}

// OpenWithToken is Open for an identity that has no file: it shows a token to the
// controller, whose address is such as https://controller.example.com:1280.
func OpenWithToken(ctx context.Context, controller string, tokens TokenSource, options ...Option) (*Network, error) {
	opt := sdk.Options{
		Account: &sdk.Account{Address: controller, Token: tokens}, Program: "netkeep-overlay", Version: build.Read().Version, Now: time.Now,
	}
	for _, o := range options {
		o(&opt)
	}
	c, err := sdk.Open(ctx, opt)
	if err != nil {
		return nil, err
	}
	return &Network{c}, nil
}
