package sdk

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"netkeep.internal/internal/client/remote"
)

// factors shows codes of the identity's second factor, which the program has
// from somebody or something else.
type factors struct {
	client *Client
	asking sync.Mutex // so that those who wait together ask for one code
}

// complete shows a code in a session that is good for nothing before.
func (a *api) complete(ctx context.Context, s *apiSession) error {
	for _, q := range s.Queries {
		if strings.EqualFold(q.Type, "EXT-JWT") {
			if err := a.second(ctx, s); err != nil {
				return err
			}
			continue
		}
		if !strings.EqualFold(q.Type, "MFA") || a.opt.Code == nil {
			return say(ErrFactor, "the identity %s needs a second factor, which a program cannot show by itself; let it ask for a code, give the identity an auth policy that asks for none, or remove its MFA", s.Identity.Name)
		}
		if err := a.prove(ctx, s.Token, s.Identity.Name); err != nil {
			return err
		}
	}
	return nil
}

// prove asks for a code and shows it in a session. It is never shown twice: a
// code is good for once.
func (a *api) prove(ctx context.Context, token, name string) error {
	code, err := a.opt.Code(ctx)
	if err != nil {
		return say(errors.Join(ErrFactor, err), "the identity %s needs a code of its second factor, and there is none: %v", name, err)
	}
	err = a.remote().Call(ctx, remote.Request{
		Method: http.MethodPost, Path: a.path("/authenticate/mfa"), Stranger: true, Header: map[string]string{"zt-session": token},
		Body: map[string]string{"code": code},
	}, nil)
	if e, refused := errors.AsType[*remote.Error](err); refused && e.Status == http.StatusBadRequest {
		return say(ErrFactor, "the code of the second factor is not the identity %s's of now, or was shown before; wait for the next", name)
	}
	return plainly(err)
}

// satisfy shows a code if a check of a service still waits for one, and reports
// whether it did.
func (f *factors) satisfy(ctx context.Context, s *Service) (shown bool, err error) {
	c := f.client
	if c.opt.Code == nil {
		return false, nil
	}
	f.asking.Lock()
	defer f.asking.Unlock()
	// Of now: somebody else may have shown one, and what else is asked for may
	// be the reason.
	now := &serviceRecord{}
	if err := c.api.call(ctx, http.MethodGet, "/services/"+s.ID, nil, now); err != nil {
		return false, plainly(err)
	}
	for _, q := range now.service().queries {
		if q.Type == "MFA" && !q.Passing {
			return true, c.api.prove(ctx, c.api.session.Load().Token, c.Name())
		}
	}
	return false, nil
}

// second makes sure that the controller takes the token that is shown with every request.
func (a *api) second(ctx context.Context, s *apiSession) error {
	if a.opt.Second == nil {
		return say(ErrFactor, "the identity %s needs a token of an identity provider too: sign in with netkeep login, or give the identity an auth policy that asks for none", s.Identity.Name)
	}
	token, err := a.opt.Second(ctx)
	if err != nil {
		return say(errors.Join(ErrFactor, err), "the identity %s needs a token of an identity provider too, and there is none: %v", s.Identity.Name, err)
	}
	now := &apiSession{}
	err = a.remote().Call(ctx, remote.Request{
		Method: http.MethodGet, Path: a.path("/current-api-session"), Stranger: true, Header: map[string]string{"zt-session": s.Token}, Bearer: token,
	}, now)
	if err != nil {
		return plainly(err)
	}
	a.seconds.Store(true)
	for _, q := range now.Queries {
		if strings.EqualFold(q.Type, "EXT-JWT") {
			return say(ErrFactor, "the controller does not take the token of an identity provider that is shown for %s: sign in there with the account that belongs to it", s.Identity.Name)
		}
	}
	return nil
}

// bearer is what is shown with every request, if anything has to be.
func (a *api) bearer(ctx context.Context) (string, error) {
	if !a.seconds.Load() {
		return "", nil
	}
	return a.opt.Second(ctx)
}
