package server

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/model"
)

// formatEvery is how often it is looked at whether all controllers can work with
// another format of the store.
const formatEvery = 5 * time.Second

// migration brings the store to the format of this version.
func (s *Server) migration() *format.Migration {
	before := func(ctx context.Context) error {
		if err := s.keepCopy(ctx); err != nil {
			return err
		}
		return s.claimStore(ctx)
	}
	return &format.Migration{Store: s.store, Steps: format.Steps(s.sealer.Seal), Before: before, Now: time.Now, Log: s.log}
}

// migrate brings the store to the format of this version, unless other controllers
// use it that know no newer one. Nothing of it is changed before it is known to be
// ours.
func (s *Server) migrate(ctx context.Context) error {
	m := s.migration()
	if s.cfg.Shared() {
		hold, err := s.holdFormat(ctx, m)
		if err != nil {
			return err
		}
		if hold {
			s.held.Store(true)
			s.log.Info("the store keeps its format until all controllers are of a version that can work with another")
			return s.claimStore(ctx)
		}
	}
	return s.moveFormat(ctx, m)
}

func (s *Server) moveFormat(ctx context.Context, m *format.Migration) error {
	if err := m.Run(ctx); err != nil {
		return err
	}
	if m.Rewrote {
		if err := s.forget(ctx); err != nil {
			s.log.Warn("the store may still hold what its records were before; forget its history", "error", err)
		}
	}
	return s.claimStore(ctx)
}

// holdFormat reports whether the store has to keep its format, by what the records
// of other controllers say. Nothing is in memory yet.
func (s *Server) holdFormat(ctx context.Context, m *format.Migration) (bool, error) {
	now, err := format.Of(ctx, s.store)
	if err != nil || now >= format.Current {
		return false, err
	}
	there, err := roster.Present(ctx, s.claims())
	if err != nil {
		return false, err
	}
	own, err := s.notedID()
	if err != nil {
		return false, err
	}
	var others []format.Other
	_, err = s.store.Load(ctx, func(rec store.Record) error {
		id, is := strings.CutPrefix(rec.Key, model.Controllers.Def.Name+"/")
		if !is || id == own {
			return nil
		}
		var said struct {
			Version string `json:"version"`
			Format  int    `json:"format"`
		}
		_ = json.Unmarshal(rec.Value, &said) // one that cannot be read says nothing
		others = append(others, format.Other{Name: id, Version: said.Version, Format: said.Format, There: slices.Contains(there, id)})
		return nil
	})
	if err != nil {
		return false, err
	}
	return m.Hold(ctx, others, format.Waits)
}

// watchFormat brings a store that was left as it is to the format of this version,
// once all controllers can work with it. One of them does.
func (s *Server) watchFormat(ctx context.Context) {
	for s.held.Load() && ctx.Err() == nil {
		waitFor(ctx, formatEvery)
		m := s.migration()
		hold, err := s.holdFormat(ctx, m)
		if err == nil && !hold && s.duties.Mine(dutyFormat) {
			err = s.moveFormat(ctx, m)
		}
		if now, bad := format.Of(ctx, s.store); bad == nil && now >= format.Current {
			s.held.Store(false)
			return // by this one or another
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("the store could not be brought to another format; trying again", "error", err)
		}
	}
}
