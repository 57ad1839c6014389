package server

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/policy/grant"
)

const (
	// turnEvery is how often it is looked at what is left of keys of before.
	turnEvery = 5 * time.Second
	// resealBatch is how many records are sealed anew in one write.
	resealBatch = 100
)

// useSecrets has tokens made with the keys of now.
func (s *Server) useSecrets() error {
	api, err := s.keys.MACKeys("api session tokens")
	if err != nil {
		return err
	}
	all := api.All()
	s.tokenKeys.Store(&all)
	t, err := s.keys.MACKeys("session tokens")
	if err != nil {
		return err
	}
	if s.sessionTokens == nil {
		if s.sessionTokens, err = grant.NewTokens(t.Current); err != nil {
			return err
		}
	}
	return s.sessionTokens.Use(t.Current, t.Former, t.Next)
}

// apiKeys are the keys of tokens of API sessions.
func (s *Server) apiKeys() [][]byte { return *s.tokenKeys.Load() }

// turnSecrets brings what rests on a secret of before over to the one of now, or
// ends it when that is to be, until ctx ends.
func (s *Server) turnSecrets(ctx context.Context, sessions *authn.APISessions) {
	tick := time.NewTicker(turnEvery)
	defer tick.Stop()
	var done turnDone
	for {
		s.turn(ctx, sessions, &done)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// turnDone is for which secrets nothing is left to do, now that all controllers have
// them.
type turnDone struct{ sessions, seals string }

// turn does so once. All controllers see how much is left; one changes it.
func (s *Server) turn(ctx context.Context, sessions *authn.APISessions, done *turnDone) {
	left, final := turnLeft{of: s.secretIDs()}, s.handover == nil || s.allHave()
	ending := !s.keys.Turning(pki.SessionSecret)
	if s.keys.Turned(pki.SessionSecret) && !(ending && done.sessions == left.of) {
		aged := s.agedSessions(sessions)
		if left.Sessions = len(aged); ending && s.roster.Mine("keys") {
			s.endAged(ctx, sessions, aged)
		}
		if ending && len(aged) == 0 && final {
			done.sessions = left.of
		}
	}
	if s.keys.Turning(pki.SealSecret) && done.seals != left.of {
		old, err := s.unsealed(ctx)
		if err == nil && len(old) > 0 && s.roster.Mine("keys") {
			err = s.reseal(ctx, old)
		}
		if left.Seals = len(old); err != nil {
			s.log.Warn("what is sealed with the key of before could not be sealed anew; trying again", "error", err)
			return
		}
		if len(old) == 0 && final {
			done.seals = left.of
		}
	}
	if !final {
		s.left.Store(nil) // others may still use the key of before
		return
	}
	s.left.Store(&left)
}

// turnLeft is what rests on secrets of before, at the time of those.
type turnLeft struct {
	of              string
	Sessions, Seals int
}

// secretIDs tells secrets of one time from those of another.
func (s *Server) secretIDs() string {
	return s.keys.SecretID(pki.SessionSecret) + " " + s.keys.SecretID(pki.SealSecret)
}

// allHave reports whether all controllers have the keys of now.
func (s *Server) allHave() bool {
	ring := s.ring.Load()
	if ring == nil || ring.Next != "" {
		return false
	}
	var list []string
	all, _ := roster.List(s.state.Snapshot())
	for _, c := range all {
		list = append(list, c.ID)
	}
	return len(ring.Lacking(list, time.Now())) == 0
}

// agedSessions are those with a token of the key of before.
func (s *Server) agedSessions(sessions *authn.APISessions) (ids []string) {
	for api := range model.APISessions.All(s.state.Snapshot()) {
		if sessions.Aged(api) {
			ids = append(ids, api.ID)
		}
	}
	return ids
}

// endAged ends sessions whose tokens are not to be believed any more.
func (s *Server) endAged(ctx context.Context, sessions *authn.APISessions, ids []string) {
	for _, id := range ids {
		if err := sessions.End(ctx, state.Program("keys rotate"), id); err != nil && !fault.Is(err, fault.CodeNotFound) {
			s.log.Warn("a session with a token of the key of before could not be ended; trying again", "error", err)
			return
		}
	}
	if len(ids) > 0 {
		s.log.Info("sessions with tokens of the key of before were ended", "sessions", len(ids))
	}
}

// unsealed are the records, by their keys, in which something is sealed with
// another key than the current one.
func (s *Server) unsealed(ctx context.Context) (keys []string, err error) {
	mark, fields := []byte(`"`+s.keys.SealMark()), s.sealedFields()
	_, err = s.store.Load(ctx, func(rec store.Record) error {
		name, _, _ := strings.Cut(rec.Key, "/")
		if fields[name] == nil {
			return nil
		}
		var members map[string]jsontext.Value
		if err := json.Unmarshal(rec.Value, &members); err != nil {
			return nil // nobody can read it
		}
		for _, field := range fields[name] {
			if bytes.HasPrefix(members[field], []byte(`"`)) && !bytes.HasPrefix(members[field], mark) {
				keys = append(keys, rec.Key)
				break
			}
		}
		return nil
	})
	return keys, err
}

// sealedFields are those that are stored under a seal, by kind.
func (s *Server) sealedFields() map[string][]string {
	fields := map[string][]string{}
	for _, d := range s.state.Kinds().Defs {
		for _, f := range d.Fields {
			if f.Sealed {
				fields[d.Name] = append(fields[d.Name], f.Name)
			}
		}
	}
	return fields
}

// reseal writes records anew, as they are.
func (s *Server) reseal(ctx context.Context, keys []string) error {
	for some := range slices.Chunk(keys, resealBatch) {
		err := s.state.Update(ctx, state.Program("keys rotate"), func(tx *state.Tx) error {
			for _, key := range some {
				name, id, _ := strings.Cut(key, "/")
				def := s.state.Kinds().Named(name)
				if def == nil {
					continue
				}
				err := tx.Edit(def, id, func(kind.Record) error { return nil })
				if err != nil && !fault.Is(err, fault.CodeNotFound) {
					return errors.Join(errors.New(key), err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
