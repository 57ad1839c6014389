package apisync

import (
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// form is what a router is told in place of tokens.
type form struct {
	// digests is for routers of our own: who knows a token can use the session that
	// it is of, and what a client shows them they compare by digest. Others need
	// tokens.
	digests bool
	// names is for routers of the first generation. Clients with access tokens show
	// none that could be told beforehand, and such a router looks for the id of the
	// session where it has the tokens of others: it ends the connections of a client
	// if it was told of the id as of a token, and that it is over.
	names bool
}

// text is how a token is told.
func (f form) text(token string) string {
	if f.digests {
		return message.Digest(token)
	}
	return token
}

// tokenOf is how the token of an API session is told.
func (f form) tokenOf(s apiSession) string {
	if f.names && s.bears {
		return s.ID
	}
	return f.text(s.Token)
}

func (f form) texts(tokens []string) []string {
	all := make([]string, len(tokens))
	for i, token := range tokens {
		all[i] = f.text(token)
	}
	return all
}

// sessions are API sessions with their tokens as they are told.
func (f form) sessions(sessions []apiSession) []message.APISession {
	all := make([]message.APISession, len(sessions))
	for i, s := range sessions {
		all[i] = s.APISession
		all[i].Token = f.tokenOf(s)
	}
	return all
}

// frame is one that says in which form it is.
func frame[T any](f form, typ int32, m *T) *wire.Frame {
	made := control.Message(typ, m)
	made.Headers = wire.Headers{}
	if f.digests {
		made.Headers.SetBool(message.HeaderDigests, true)
	}
	return made
}

// added tells of new API sessions, or of a part of all.
func (f form) added(sessions []apiSession, full bool) *wire.Frame {
	return frame(f, message.TypeAPISessionsAdded, &message.APISessionsAdded{Full: full, Sessions: f.sessions(sessions)})
}

// updated tells of API sessions whose certificates changed.
func (f form) updated(sessions []apiSession) *wire.Frame {
	return frame(f, message.TypeAPISessionsUpdated, &message.APISessionsUpdated{Sessions: f.sessions(sessions)})
}

// ended tells of API sessions that are over.
func (f form) ended(sessions []apiSession) *wire.Frame {
	var gone message.Removed
	for _, s := range sessions {
		gone.IDs, gone.Tokens = append(gone.IDs, s.ID), append(gone.Tokens, f.tokenOf(s))
	}
	return frame(f, message.TypeAPISessionsRemoved, &gone)
}

// removed tells of sessions, of either kind, that are over.
func (f form) removed(typ int32, gone message.Removed) *wire.Frame {
	gone.Tokens = f.texts(gone.Tokens)
	return frame(f, typ, &gone)
}
