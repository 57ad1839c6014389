package apisync

import (
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// form is whether a router is told digests in place of tokens. Who knows a
// token can use the session that it is of, so routers of our own are not told:
// what a client shows them they compare by digest. Others need tokens.
type form bool

// text is how a token is told.
func (f form) text(token string) string {
	if f {
		return message.Digest(token)
	}
	return token
}

func (f form) texts(tokens []string) []string {
	all := make([]string, len(tokens))
	for i, token := range tokens {
		all[i] = f.text(token)
	}
	return all
}

// sessions are API sessions with their tokens as they are told.
func (f form) sessions(sessions []message.APISession) []message.APISession {
	all := make([]message.APISession, len(sessions))
	for i, s := range sessions {
		s.Token = f.text(s.Token)
		all[i] = s
	}
	return all
}

// frame is one that says in which form it is.
func frame[T any](f form, typ int32, m *T) *wire.Frame {
	made := control.Message(typ, m)
	made.Headers = wire.Headers{}
	if f {
		made.Headers.SetBool(message.HeaderDigests, true)
	}
	return made
}

// added tells of new API sessions, or of a part of all.
func (f form) added(sessions []message.APISession, full bool) *wire.Frame {
	return frame(f, message.TypeAPISessionsAdded, &message.APISessionsAdded{Full: full, Sessions: f.sessions(sessions)})
}

// updated tells of API sessions whose certificates changed.
func (f form) updated(sessions []message.APISession) *wire.Frame {
	return frame(f, message.TypeAPISessionsUpdated, &message.APISessionsUpdated{Sessions: f.sessions(sessions)})
}

// ended tells of API sessions that are over.
func (f form) ended(sessions []message.APISession) *wire.Frame {
	var gone message.Removed
	for _, s := range sessions {
		gone.IDs, gone.Tokens = append(gone.IDs, s.ID), append(gone.Tokens, s.Token)
	}
	return f.removed(message.TypeAPISessionsRemoved, gone)
}

// removed tells of sessions, of either kind, that are over.
func (f form) removed(typ int32, gone message.Removed) *wire.Frame {
	gone.Tokens = f.texts(gone.Tokens)
	return frame(f, typ, &gone)
}
