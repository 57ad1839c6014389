package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/clock"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/metrics"
	"netkeep.internal/internal/pki"
)

// AdminReset is how the default admin gets back in, and AdminResetDone what was
// done about it.
type (
	AdminReset     = authn.Reset
	AdminResetDone = authn.ResetDone
)

// ResetAdmin gives the default admin of a network a new password, while no
// controller uses the data directory. It makes no network where there is none.
func ResetAdmin(ctx context.Context, cfg config.Config, r AdminReset, log *slog.Logger) (done AdminResetDone, err error) {
	s, err := attach(ctx, cfg, log)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.openExisting(ctx); err != nil {
		return done, err
	}
	if done, err = authn.ResetAdmin(ctx, s.state, authn.NewHasher(), r); err != nil {
		return done, fmt.Errorf("reset the default admin: %w", err)
	}
	s.noteReset(done, r.RemoveFactor)
	log.Info("the default admin was reset", "identity", done.ID, "username", done.Username, "created", done.Created,
		"enabled", done.WasDisabled, "policy", done.Policy, "factorRemoved", done.HadFactor && r.RemoveFactor)
	return done, nil
}

// noteReset has the audit log tell of a reset.
func (s *Server) noteReset(done AdminResetDone, removeFactor bool) {
	reason := "a new password"
	if done.HadFactor && removeFactor {
		reason += ", and no second factor any more"
	}
	s.recorder.Note(audit.Fact{
		Event: audit.AdminReset, By: state.Program("admin reset"), Reason: reason,
		Target: audit.Target{Kind: model.Identities.Def.Name, ID: done.ID, Name: done.Username},
	})
}

// openExisting is openData and openState where the store is open and there must
// be a network.
func (s *Server) openExisting(ctx context.Context) error {
	s.figures, s.clock = metrics.New(time.Now), clock.New(time.Now)
	empty, err := owner.Empty(ctx, s.store)
	if err != nil {
		return err
	}
	if empty {
		return errors.New("there is no network in this store; see that the settings are those of its controller")
	}
	if err := s.checkOwner(ctx); err != nil {
		return err
	}
	// For no names in particular: the server certificate stays as it is.
	opt := pki.Options{Now: time.Now, Algorithm: pki.Algorithm(s.cfg.Keys.Algorithm)}
	if err := s.openKeystore(opt); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	return s.openState(ctx)
}
