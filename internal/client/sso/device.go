package sso

import (
	"context"
	"errors"
	"time"

	"golang.org/x/oauth2"
)

// Prompt is what a person needs to sign in on another device.
type Prompt struct {
	Address string // to open
	Code    string // to type there
	Whole   string // address with the code in it; empty if there is none
	Until   time.Time
}

const (
	// usualInterval and mostInterval are how often it is asked whether the person has
	// signed in.
	usualInterval = 5
	mostInterval  = 60
	// mostCode is how long a code may be that a person types.
	mostCode = 64
	// mostBreaks is how often the provider may be away meanwhile.
	mostBreaks = 5
)

// CanDevice reports whether the provider lets people sign in on another device.
func (p *Provider) CanDevice() bool { return p.config.Endpoint.DeviceAuthURL != "" }

// OnDevice has the person sign in on another device: show says how.
func (p *Provider) OnDevice(ctx context.Context, show func(Prompt)) (*Tokens, error) {
	if !p.CanDevice() {
		return nil, say(ErrOdd, "the provider at %s does not let people sign in on another device: sign in where there is a browser", p.issuer)
	}
	given, err := p.config.DeviceAuth(p.with(ctx), p.asking()...)
	if err != nil {
		return nil, p.refused(ctx, err)
	}
	if !secure(given.VerificationURI) || given.VerificationURIComplete != "" && !secure(given.VerificationURIComplete) ||
		given.UserCode == "" || len(given.UserCode) > mostCode || given.DeviceCode == "" {
		return nil, p.odd("it does not say where to type which code")
	}
	if given.Interval <= 0 || given.Interval > mostInterval {
		given.Interval = usualInterval
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Lasts, say(ErrOver, "nobody signed in within %v: begin again with %s", Lasts, p.opt.Again))
	defer cancel()
	show(Prompt{given.VerificationURI, given.UserCode, given.VerificationURIComplete, given.Expiry})
	got, err := p.poll(ctx, given)
	if err != nil {
		return nil, err
	}
	return p.accept(ctx, got, "", "")
}

// poll asks until there is an answer. A provider that is away for a moment is asked again.
func (p *Provider) poll(ctx context.Context, given *oauth2.DeviceAuthResponse) (*oauth2.Token, error) {
	for breaks := 0; ; breaks++ {
		got, err := p.config.DeviceAccessToken(p.with(ctx), given)
		switch {
		case err == nil:
			return got, nil
		case context.Cause(ctx) != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, context.DeadlineExceeded) && !given.Expiry.IsZero() && !p.opt.Now().Before(given.Expiry.Add(-time.Second)):
			return nil, p.declined("expired_token", "")
		}
		if err = p.refused(ctx, err); !errors.Is(err, ErrAway) || breaks == mostBreaks {
			return nil, err
		}
	}
}
