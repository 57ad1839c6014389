package server

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
)

// What can be rotated, as commands name it, and those of them that are secrets.
const (
	RootCA         = pki.RootCA
	IntermediateCA = pki.IntermediateCA
	SessionSecret  = pki.SessionSecret
	SealSecret     = pki.SealSecret
	ClusterCA      = pki.ClusterCA
)

var Secrets = pki.Secrets

// KeysStatus is which keys a network has, and how far a rotation has come.
type KeysStatus struct {
	*pki.Authorities
	Keys pki.Bundle
	// Progress is what the controller said last; nil if it has said nothing of
	// this rotation. Old is whether that was a while ago.
	// Without a rotation it is of those whom the last one has left behind.
	Progress *Progress
	Old      bool
	// Shared is which keys the controllers of the network have, if there may be
	// several.
	Shared *SharedKeys
}

// Fingerprint is by what people recognise a certificate.
func (KeysStatus) Fingerprint(cert *x509.Certificate) string { return rootName(cert) }

// ReadKeys returns who signs for the network in a data directory, whether its
// controller runs or not.
func ReadKeys(cfg config.Config) (KeysStatus, error) {
	dir := filepath.Join(cfg.Data, keysDir)
	keys, err := pki.Read(dir)
	switch {
	case err != nil:
		return KeysStatus{}, err
	case keys == nil || keys.Intermediate == nil:
		return KeysStatus{}, fmt.Errorf("there is no network in %s; name the data directory of its controller with --data", cfg.Data)
	}
	st := KeysStatus{Authorities: keys}
	if st.Keys, err = pki.ReadBundle(dir); err != nil {
		return st, err
	}
	if st.Progress, err = said[Progress](cfg.Data, progressFile); err != nil {
		return st, err
	}
	if p := st.Progress; p != nil && p.Root != rootName(keys.Root) {
		st.Progress = nil
	}
	st.Old = st.Progress != nil && time.Since(st.Progress.At) > progressOld
	if pki.Shares(dir) {
		st.Shared, err = said[SharedKeys](cfg.Data, sharedFile)
	}
	return st, err
}

// Rotation is which step of which rotation is to be made.
type Rotation struct {
	What         string // as commands name it
	Finish, Undo bool
	// Force finishes although somebody has not followed yet, or uses what not all
	// controllers have.
	Force   bool
	RootKey string
}

const (
	// orderTime is how long the controller may take to hear of a step, and allTime
	// how long it is waited until all have it.
	orderTime = 30 * time.Second
	allTime   = 20 * time.Second
	newsTime  = 5 * time.Second // for what others are about to say
	orderLook = 100 * time.Millisecond
)

// RotateKeys makes a step of a rotation in a data directory. A controller that
// uses it follows within seconds. If there are others, it is that controller who
// shares the step with them before it counts.
func RotateKeys(ctx context.Context, cfg config.Config, r Rotation, log *slog.Logger) (KeysStatus, error) {
	st, err := ReadKeys(cfg)
	if err != nil {
		return st, err
	}
	dir := filepath.Join(cfg.Data, keysDir)
	step := pki.Rotation{
		Dir: dir, RootKey: r.RootKey, Present: st.Root, Algorithm: pki.Algorithm(cfg.Keys.Algorithm), Now: time.Now, Log: log,
		Shared: pki.Shares(dir),
	}
	if step.Shared {
		// What was changed a moment ago may still be on its way.
		awaitKeys(ctx, newsTime, func() bool {
			now, err := ReadKeys(cfg)
			if err == nil {
				st = now
			}
			return err != nil || now.Shared == nil || now.Keys.Next() != "" || len(now.Shared.Lacking) == 0
		})
		if err := st.sharable(cfg.Data); err != nil {
			return st, err
		}
		step.Present = st.Root
	}
	if st.Authorities, err = r.make(step, st); err != nil || !step.Shared {
		return st, err
	}
	return awaitShared(ctx, cfg, st.Shared.Generation+1)
}

// make makes the step.
func (r Rotation) make(step pki.Rotation, st KeysStatus) (*pki.Authorities, error) {
	secret := slices.Contains(pki.Secrets[:], r.What)
	if r.Finish && !r.Force {
		if err := st.ready(r.What); err != nil {
			return st.Authorities, err
		}
	}
	switch {
	case r.Force && r.What == pki.ClusterCA:
		return st.Authorities, errors.New("a controller that does not trust the new CA between controllers could not reach the store any more: start it again, or take it out with netkeep cluster remove; there is nothing to force")
	case r.Force && !r.Finish && st.Keys.Next() != r.What:
		return st.Authorities, fmt.Errorf("nothing of the %s waits for controllers that have not got it: there is nothing to force", r.What)
	case r.Force && !r.Finish:
		step.Force = true
		return step.Advance()
	case r.Finish && secret:
		return step.FinishSecret(r.What)
	case r.Finish && r.What == pki.ClusterCA:
		return step.FinishCluster()
	case r.Finish:
		return step.Finish()
	case r.Undo:
		step.Force = st.Keys.Next() == pki.RootCA // which has signed nothing that anybody could lack
		return step.Undo()
	case r.What == pki.RootCA:
		return step.Root()
	case r.What == pki.ClusterCA:
		return step.Cluster()
	case secret:
		return step.Secret(r.What)
	}
	return step.Intermediate()
}

// sharable says why a step cannot be shared with other controllers.
func (st KeysStatus) sharable(data string) error {
	switch k := st.Shared; {
	case k == nil || k.old(time.Now()):
		return fmt.Errorf("there are other controllers, and the one of %s, which hands them what changes, has said nothing for a while: start it, or wait a minute if it has just started", data)
	case st.Keys.Generation() < k.Generation:
		return fmt.Errorf("the controller of %s lacks the keys that were changed last itself: start one that has them, which netkeep keys status names; take those out with netkeep cluster remove that are gone for good, and when none is left, the keys of this one are the network's within two minutes", data)
	case len(k.Lacking) > 0 && st.Keys.Next() == "":
		return errLacking(k.Lacking)
	}
	return nil
}

// awaitKeys reports whether something is so within some time.
func awaitKeys(ctx context.Context, within time.Duration, is func() bool) bool {
	for end := time.Now().Add(within); !is(); {
		if ctx.Err() != nil || time.Now().After(end) {
			return false
		}
		waitFor(ctx, orderLook)
	}
	return true
}

// awaitShared returns when the controller has shared a step and all have it, or
// when some take long for it, which the status says.
func awaitShared(ctx context.Context, cfg config.Config, generation int) (st KeysStatus, err error) {
	dir := filepath.Join(cfg.Data, keysDir)
	if !awaitKeys(ctx, orderTime, func() bool { return !pki.Proposed(dir) }) {
		return st, errors.Join(fmt.Errorf("the controller of %s has not taken up the change, which is withdrawn: see whether it runs, and try again", cfg.Data), pki.DropProposal(dir))
	}
	if st, err = ReadKeys(cfg); err == nil && st.Shared != nil && st.Shared.Refused != "" {
		err = errors.New(st.Shared.Refused)
	}
	if err != nil {
		return st, err
	}
	awaitKeys(ctx, allTime, func() bool {
		st, err = ReadKeys(cfg)
		return err != nil || st.Shared == nil || st.Keys.Generation() >= generation && st.Shared.Generation >= generation && (st.Shared.Next == "" || st.waitsForStarts()) && len(st.Shared.Lacking) == 0
	})
	return st, err
}

// waitsForStarts reports whether what is new waits for controllers to be started
// again, which nobody does by itself.
func (st KeysStatus) waitsForStarts() bool {
	return st.Shared.Next == pki.ClusterCA && len(st.Shared.Restart) > 0
}

// ready says why a rotation should not be finished yet. That none is under way is
// said by who finishes it.
func (st KeysStatus) ready(what string) error {
	const force = "; --force finishes all the same, and "
	again := "who has not followed then has to enroll again"
	switch what {
	case pki.SessionSecret:
		again = "those end"
	case pki.SealSecret:
		again = "what is sealed with the key of before cannot be read any more"
	}
	p := st.Progress
	switch {
	case what == pki.RootCA && !st.Rotating() || what != pki.RootCA && !st.Keys.Turning(what):
		return nil
	case p == nil || what == pki.SessionSecret && p.Sessions == nil || what == pki.SealSecret && p.Seals == nil:
		return errors.New("the controller has not said yet who has followed: start it if it does not run, and see netkeep keys status" + force + again)
	case st.Old:
		return fmt.Errorf("the controller last said at %s who has followed: start it, and see netkeep keys status%s", p.At.Format(time.RFC3339), force+again)
	case what == pki.RootCA && p.left() > 0:
		return fmt.Errorf("%d routers and %d identities have certificates of the root CA before, and could not come in any more: netkeep keys status names them%s", p.Routers.Left, p.Identities.Left, force+again)
	case what == pki.SessionSecret && *p.Sessions > 0:
		return fmt.Errorf("%d sessions have tokens of the key of before%s", *p.Sessions, force+again)
	case what == pki.SealSecret && *p.Seals > 0:
		return fmt.Errorf("%d records are sealed with the key of before, and are being sealed anew: try again%s", *p.Seals, force+again)
	}
	return nil
}
