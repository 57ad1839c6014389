package api

import (
	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/model"
)

// What is told to those who look, and to nobody else: it costs nothing while nobody does.

// tellConnected tells that somebody asks this controller for something.
func (s *Service) tellConnected(c interface{ Ends() (from, to string) }, who *authn.Caller) {
	if !s.Herald.Wanted(herald.Connections) {
		return
	}
	from, to := c.Ends()
	if to == "" { // a stream that is looked at again, and no request
		return
	}
	s.Herald.Tell(herald.Event{Ref: state.Ref{Def: herald.Connections, ID: who.Identity().ID}, Verb: "connected", At: s.Sessions.Now(), Detail: herald.Connection{
		From: herald.Peer{Kind: herald.Identity, ID: who.Identity().ID, Address: from}, To: herald.Peer{Kind: herald.Controller, ID: s.ControllerID, Address: to}, At: s.Sessions.Now(),
	}})
}

// tellAttempt tells of an attempt to authenticate. Who somebody is whose name nobody has
// is not told, as in the audit log.
func (s *Service) tellAttempt(a Attempt, reason string) {
	if !s.Herald.Wanted(herald.Logins) {
		return
	}
	login := herald.Login{Method: a.Method, Address: a.By.Source, Reason: reason}
	if shown := a.shown(); shown != nil {
		login.AuthenticatorID, login.IdentityID = shown.ID, shown.IdentityID
	}
	if a.Session != nil {
		login.AuthenticatorID = a.Session.AuthenticatorID
		if signer, is := authn.SignerOf(a.Session); is {
			login.AuthenticatorID, login.SignerID = "", signer
		}
	}
	who := a.Who
	if who == nil {
		who, _ = model.Identities.Get(a.Snap, login.IdentityID)
	}
	if who != nil {
		login.IdentityID, login.PolicyID = who.ID, who.AuthPolicyID
	}
	verb := "let-in"
	if reason != "" {
		verb = "refused"
	}
	s.Herald.Tell(herald.Event{Ref: state.Ref{Def: herald.Logins, ID: login.IdentityID}, Verb: verb, Reason: reason, At: s.Sessions.Now(), Detail: login})
}
