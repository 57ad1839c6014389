package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/router/edge"
	"netkeep.internal/internal/router/uplink"
	"netkeep.internal/internal/wire/message"
)

// asker asks controllers for clients.
type asker struct {
	*uplink.Uplink
	log *slog.Logger
}

// Enter lets a client in that has shown that the API session is its own.
func (a asker) Enter(ctx context.Context, e edge.Entrant) (edge.Entry, error) {
	session, ok := a.Sessions().Await(ctx, e.Token)
	if !ok {
		return edge.Entry{}, errors.New("there is no API session with its token")
	}
	stop, ok := a.Sessions().Watch(session.ID, pki.Fingerprint(e.Leaf), e.Ended)
	if !ok {
		return edge.Entry{}, errors.New("its certificate does not belong to the API session whose token it shows")
	}
	renewed, gone := a.Arrived(uplink.Client{Token: e.Token, IdentityID: session.IdentityID, Source: e.Remote, Destination: e.Local})
	return edge.Entry{
		IdentityID: session.IdentityID,
		Renew: func(ctx context.Context, token string) error {
			if next, ok := a.Sessions().Await(ctx, token); !ok || next.ID != session.ID {
				return errors.New("the token is of no API session, or not of the one that the client came in with")
			}
			renewed(token)
			return nil
		},
		Leave: func() {
			stop()
			gone()
		},
	}, nil
}

// Host is asked again by who hosts, unless the controller has said no or the
// request is not one to be sent.
func (a asker) Host(ctx context.Context, m *message.CreateTerminator) (*message.TerminatorCreated, error) {
	answer, err := a.Uplink.Host(ctx, m)
	if refused, final := uplink.Final(err); final {
		return &message.TerminatorCreated{
			ID: m.Address, Result: message.TerminatorFailed, Message: refused.Error(), ErrorCode: refused.Code, Retry: refused.Retry,
		}, nil
	}
	return answer, err
}

func (a asker) Health(m *message.HealthEvent) {
	if err := a.Uplink.Health(m); err != nil {
		a.log.Warn("the controller was not told how a check of a host went", "error", err)
	}
}

// reportAgain is how long after a report could not be passed on it is tried
// again.
const reportAgain = 3 * time.Second

// Report is done when the controller has heard, or does not want to.
func (a asker) Report(ctx context.Context, apiToken string, body []byte) error {
	for {
		err := a.Uplink.Report(ctx, apiToken, body)
		if _, final := uplink.Final(err); err == nil || final {
			return err
		}
		select {
		case <-time.After(reportAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Fault is told to whom the circuit belongs.
func (a asker) Fault(owner string, m message.Fault) { a.FaultOf(owner, m) }
