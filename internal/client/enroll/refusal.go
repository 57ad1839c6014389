package enroll

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/method"
)

// Refusal is how a controller said no, and what to do.
type Refusal struct {
	Code fault.Code
	text string
}

func (r *Refusal) Error() string { return r.text }

// when writes a time for people.
func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04 MST") }

// unreachable says why there was no answer.
func (c *Controller) unreachable(err error) error {
	if s := new(suspicion); errors.As(err, &s) {
		return s
	}
	return remote.Explain(c.inv.Controller, err)
}

// tooLate says that the token has expired, or that it only seems so.
func (c *Controller) tooLate() error {
	now := c.opt.Now()
	if c.inv.expired(now) && !c.inv.expired(now.Add(c.clock)) && c.clock.Abs() > skew {
		return c.wrongClock()
	}
	return fmt.Errorf("the token expired at %s: %s", when(c.inv.Expires), c.another())
}

func (c *Controller) wrongClock() error {
	which := "behind"
	if c.clock < 0 {
		which = "ahead of"
	}
	by := strings.TrimSuffix(c.clock.Abs().Round(time.Minute).String(), "0s")
	return fmt.Errorf("the clock of this machine is %s %s the controller's: set it, and try again", by, which)
}

// another says how to come by another token.
func (c *Controller) another() string {
	if c.inv.IsRouter() {
		return "have an admin make a new one by re-enrolling the router"
	}
	return "have an admin make a new one by refreshing the enrollment or adding another"
}

// refusal turns an answer that says no into what to do.
func (c *Controller) refusal(a *answer) error {
	said := remote.ReadError(a.status, a.header, a.body)
	if said.Code == "" {
		return fmt.Errorf("%s refused with status %d and no reason", c.inv.Controller, a.status)
	}
	return &Refusal{fault.Code(said.Code), c.advice(said)}
}

// advice says what to do about a refusal.
func (c *Controller) advice(said *remote.Error) string {
	switch fault.Code(said.Code) {
	case fault.CodeEnrollToken:
		return "the token was used already, or was withdrawn or replaced by a newer one: if that was not you, tell an admin; else " + c.another()
	case fault.CodeEnrollExpired:
		return fmt.Sprintf("the token expired at %s: %s", when(c.inv.Expires), c.another())
	case fault.CodeCertInUse:
		return "the certificate has been enrolled already: use the file that was written then, or another certificate"
	case fault.CodeChain:
		return "the controller does not take the certificate: " + cmp.Or(c.opt.Words.Cert, "its file") + " must hold a client certificate that is in force, from the CA that the token is for, with what leads to that CA"
	case fault.CodeEnrollCA:
		return "the CA that the token is for is not verified, or does not allow enrollment: have an admin see to that"
	case fault.CodeEnrollNoCA:
		return "no CA allows enrollment by certificate: have an admin verify the CA and allow it"
	case fault.CodeUsername:
		return "the user name is taken: have an admin delete the enrollment and add one with another name"
	}
	what := said.Message
	if said.Reason != "" {
		what = strings.TrimSpace(said.Field + " " + said.Reason)
	}
	return fmt.Sprintf("the controller refuses: %s (%s)", strings.TrimSuffix(what, "."), said.Code)
}

var (
	errRouter   = errors.New("the token is for a router: use netkeep router enroll")
	ErrIdentity = errors.New("the token is for an identity: use netkeep enroll")
)

// needCert says that only who has a certificate can enroll.
func (w Words) needCert() error {
	return fmt.Errorf("the token is for somebody with a certificate of another CA: give it%s, and its key%s", with(w.Cert), with(w.Key))
}

// wrongWay says that an invitation is for something else.
func (c *Controller) wrongWay(methods ...string) error {
	for _, m := range methods {
		if c.inv.Method == m {
			return nil
		}
	}
	switch c.inv.Method {
	case method.OTT, method.OTTCA, method.CA, method.Password:
		return ErrIdentity
	case method.ErOTT, method.TrOTT:
		return errRouter
	}
	return fmt.Errorf("the token asks to enroll by %q, which is not known here: use a newer version", c.inv.Method)
}
