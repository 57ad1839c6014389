package circuit

import (
	"context"
	"errors"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/wire/message"
)

// Dial makes a circuit from a router to where a service is hosted, and tells how
// that went. That the host did not take it is a refusal with the host's reason.
func (c *Circuits) Dial(ctx context.Context, r *control.Router, req Request) (*Circuit, *Answer, error) {
	began := c.Now()
	made, answer, err := c.dial(ctx, r, req)
	c.Dialled(outcome(err), c.Now().Sub(began))
	if failed, ok := errors.AsType[*failure](err); ok {
		err = message.Unreached(failed.code, failed.Error())
	}
	return made, answer, err
}

// outcome is why there is no circuit, in one of a few words; empty if there is.
func outcome(err error) string {
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[*failure](err); ok {
		return "host"
	}
	refused, ok := permit.AsRefusal(err)
	if !ok {
		return "internal"
	}
	switch refused.Code {
	case message.CodeInvalidTerminator:
		return "no-host"
	case message.CodeEncryptionMissing:
		return "encryption"
	case message.CodeInternal:
		return "router"
	}
	return "refused"
}
