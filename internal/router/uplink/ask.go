package uplink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// How long the controller has to answer. A dial includes that of the host, and
// another one if that fails.
const (
	dialWait   = 30 * time.Second
	hostWait   = 30 * time.Second
	verifyWait = 10 * time.Second
	askWait    = 30 * time.Second
)

// What clients are told when it is not the controller that refuses.
var (
	errBusy  = message.Busy("too many requests wait for the controller; try again")
	errLate  = message.Busy("the controller did not answer in time; try again")
	errLarge = &message.Refusal{Code: message.CodeInternal, Retry: message.RetryNever, Text: "this is more than the controller takes in one request; send less"}
)

// Final returns the refusal that an error is, if to ask again would not help.
func Final(err error) (*message.Refusal, bool) {
	refused, ok := errors.AsType[*message.Refusal](err)
	return refused, ok && refused.Retry == message.RetryNever
}

// ask asks the quickest controller and returns its answer, which must be of a
// type. A refusal is an error. Whoever is asked may be asked twice: if the
// controller is lost or falls silent before it has answered, another one is
// asked, and the first may have done its part all the same. That does no harm to
// terminators, which are known by the id that they are asked for under, nor to
// what sets, removes or only looks; of two circuits, the one is ended whose
// answer is not wanted.
func (u *Uplink) ask(ctx context.Context, wait time.Duration, f *wire.Frame, answer int32) (*wire.Frame, error) {
	select {
	case u.asks <- struct{}{}:
		defer func() { <-u.asks }()
	default:
		return nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	q := &question{u: u, frame: f}
	reply, err := q.ask(ctx)
	if err != nil {
		return nil, err
	}
	return check(reply, answer)
}

// check is an answer if it is of a type and no refusal.
func check(reply *wire.Frame, answer int32) (*wire.Frame, error) {
	switch {
	case reply.Type == message.TypeError && answer != message.TypeError:
		return nil, message.RefusalIn(reply)
	case reply.Type == message.TypeResult && !reply.Headers.Bool(message.HeaderSuccess):
		return nil, message.RefusalIn(reply)
	case reply.Type != answer:
		return nil, fmt.Errorf("the controller answered with a frame of type %d", reply.Type)
	}
	return reply, nil
}

// Dial asks for a circuit in the name of a client.
func (u *Uplink) Dial(ctx context.Context, m *message.CreateCircuit) (*message.CircuitCreated, error) {
	reply, err := u.ask(ctx, dialWait, m.Frame(), message.TypeCircuitCreated)
	if err != nil {
		return nil, err
	}
	d := message.CircuitIn(reply)
	for key := range d.PeerData {
		if !carried(key) {
			delete(d.PeerData, key)
		}
	}
	if d.CircuitID == "" || d.Address == "" {
		return nil, errors.New("the controller's answer names no circuit")
	}
	return d, nil
}

// Host asks for a terminator in the name of a client. What it is told need not
// be success.
func (u *Uplink) Host(ctx context.Context, m *message.CreateTerminator) (*message.TerminatorCreated, error) {
	reply, err := u.ask(ctx, hostWait, frame(message.TypeCreateTerminator, m), message.TypeTerminatorCreated)
	if err != nil {
		return nil, err
	}
	return message.Unmarshal[message.TerminatorCreated](reply.Body)
}

// Update changes what a terminator costs, or its precedence.
func (u *Uplink) Update(ctx context.Context, m *message.UpdateTerminator) error {
	_, err := u.ask(ctx, askWait, frame(message.TypeUpdateTerminator, m), message.TypeTerminatorUpdated)
	return err
}

// Remove ends terminators. Those that there are not are no error.
func (u *Uplink) Remove(ctx context.Context, ids []string) error {
	_, err := u.ask(ctx, askWait, frame(message.TypeRemoveTerminators, &message.RemoveTerminators{IDs: ids}), message.TypeResult)
	return err
}

// Health tells how a client's check of its own host went.
func (u *Uplink) Health(m *message.HealthEvent) error {
	return u.tellOne(frame(message.TypeHealthEvent, m))
}

// Report passes on what a client says of its device.
func (u *Uplink) Report(ctx context.Context, apiToken string, body []byte) error {
	h := wire.Headers{}
	h.SetText(message.HeaderAPISessionToken, apiToken)
	_, err := u.ask(ctx, askWait, &wire.Frame{Type: message.TypeDeviceReport, Headers: h, Body: body}, message.TypeResult)
	return err
}

// ValidateSessions asks which of these sessions to dial or host still are; the
// Handler is told of those that are not.
func (u *Uplink) ValidateSessions(tokens []string) error {
	return u.tellOne(frame(message.TypeValidateSessions, &message.ValidateSessions{Sessions: tokens}))
}

// VerifyRouter asks whether a certificate is that of a router. A nil error says
// so.
func (u *Uplink) VerifyRouter(ctx context.Context, id, fingerprint string) error {
	_, err := u.ask(ctx, verifyWait, frame(message.TypeVerifyRouter, &message.VerifyRouter{RouterID: id, Fingerprints: []string{fingerprint}}), message.TypeResult)
	return err
}

// Quiesce asks that no new circuits end at this router while there is another
// way, or that they may again.
func (u *Uplink) Quiesce(ctx context.Context, quiet bool) error {
	typ := message.TypeDequiesce
	if quiet {
		typ = message.TypeQuiesce
	}
	_, err := u.ask(ctx, askWait, &wire.Frame{Type: typ}, message.TypeResult)
	return err
}

// Extend asks for new certificates. They count once UseCertificates says that
// they are here.
func (u *Uplink) Extend(ctx context.Context, clientCSR, serverCSR string) (*message.Certificates, error) {
	l := u.quickest(nil)
	if l == nil {
		return nil, ErrAway
	}
	answer := make(chan *message.Certificates, 1)
	u.mu.Lock()
	u.renewal, u.renewing = answer, l
	u.mu.Unlock()
	// The answer is a frame of its own.
	if err := l.Send(frame(message.TypeExtend, &message.Extend{ClientCSR: clientCSR, ServerCSR: serverCSR, Verify: true})); err != nil {
		return nil, err
	}
	select {
	case certs := <-answer:
		return certs, nil
	case <-l.Done():
		return nil, ErrAway
	case <-time.After(askWait):
		return nil, errors.New("the controller gave no new certificates; its log says why")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (u *Uplink) onCertificates(from *line, m *message.Certificates) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.renewal != nil && u.renewing == from {
		u.renewal <- m // there is room for the one
		u.renewal = nil
	}
}

// UseCertificates says that a new certificate has arrived: from now on the
// router is known by it. It is said to who has issued it.
func (u *Uplink) UseCertificates(ctx context.Context, client string) error {
	u.mu.Lock()
	l := u.renewing
	u.mu.Unlock()
	if l == nil {
		return ErrAway
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	reply, err := l.request(ctx, frame(message.TypeVerifyExtension, &message.VerifyExtension{Client: client}))
	if err == nil {
		reply, err = check(reply, message.TypeError)
	}
	if err != nil {
		return err
	}
	told, err := message.Unmarshal[message.Error](reply.Body)
	if err == nil && (told.Code != "" || told.Message != "") {
		err = &message.Refusal{Retry: message.RetryNever, Text: fmt.Sprintf("%s (%s)", told.Message, told.Code)}
	}
	return err
}
