// Package roster is the controllers of a network: which there are, which of them
// are there at the moment, and who answers under which id. It must not import
// rest or api.
//
// Routers know a controller by its id, and what they keep hangs on it. So no two
// processes may answer under one id: each claims its own in the store for as long
// as it is there.
package roster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
)

const (
	// leaseLife is how long a controller is taken to be there of which the store
	// hears nothing.
	leaseLife = 2 * time.Second
	// heldWait is how long somebody may keep an id whom nobody has heard stop: a
	// process that was killed leaves its lease behind, and a store that has just
	// lost its leader lets leases last longer.
	heldWait = 8 * time.Second
	// againAfter is how long to wait before the store is asked again.
	againAfter = 200 * time.Millisecond
)

// idPrefix is what the names of claims of ids begin with.
const idPrefix = "id/"

// Options of a Roster.
type Options struct {
	State  *state.State
	Claims store.Claims
	// Where tells the place that this controller keeps its data in from a copy of
	// it; empty if it cannot be told.
	Where string
	// Self is what the record of this controller says, but for its id.
	Self func() model.Controller
	// Lost is told when this controller may not answer under its id any more, and
	// Found when it may again.
	Lost, Found func()
	// Changed is told when controllers have come or gone.
	Changed func()
	Now     func() time.Time
	Log     *slog.Logger
}

// Roster is the controllers of a network as one of them sees them.
type Roster struct {
	opt   Options
	id    string
	lease store.Lease

	mu      sync.RWMutex
	answers map[string]holder // by id: who answers under it
}

// FirstID is the id of the first controller of the network that had a root CA
// first. It is as old as the network, whatever became of its CAs since.
func FirstID(origin *x509.Certificate) string { return idMark + pki.Fingerprint(origin)[:idDigits] }

// NewID makes an id up.
func NewID() string {
	var random [idDigits / 2]byte
	_, _ = rand.Read(random[:])
	return idMark + hex.EncodeToString(random[:])
}

// ValidID reports whether a text is the id of a controller.
func ValidID(id string) bool {
	digits, ok := strings.CutPrefix(id, idMark)
	_, err := hex.DecodeString(digits)
	return ok && err == nil && len(digits) == idDigits
}

// What an id is made of.
const (
	idMark   = "netkeep-"
	idDigits = 12
)

// holder is who answers under an id.
type holder struct {
	By      string `json:"by"`      // id of the controller
	Where   string `json:"where"`   // as in Options
	Address string `json:"address"` // of that controller
}

// TakenError is that somebody else answers under the id of a controller.
type TakenError struct{ ID, Address string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("the controller %s runs already, at %s: this data directory is a copy of its; stop that one, or let this one join as another with a directory of its own", e.ID, e.Address)
}

// Open claims an id for this controller, and writes its record. It fails with a
// TakenError if somebody else has the id.
func Open(ctx context.Context, id string, opt Options) (*Roster, error) {
	r := &Roster{opt: opt, id: id, answers: map[string]holder{}}
	if err := r.claim(ctx); err != nil {
		return nil, err
	}
	if err := r.write(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// ID is that of this controller.
func (r *Roster) ID() string { return r.id }

// Alone reports whether there can be no other controller: nobody else has the
// store.
func (r *Roster) Alone() bool {
	_, alone := r.opt.Claims.(*store.Alone)
	return alone
}

// Close tells the others that this controller is gone. A store that cannot be told
// finds out by itself.
func (r *Roster) Close() error {
	if err := r.lease.Close(); err != nil {
		r.opt.Log.Debug("the store was not told that this controller stops", "error", err)
	}
	return nil
}

// claim gets a lease and the id under it. Who was killed a moment ago still has
// it.
func (r *Roster) claim(ctx context.Context) error {
	lease, err := r.opt.Claims.Lease(ctx, leaseLife)
	if err != nil {
		return err
	}
	r.lease = lease
	self := r.opt.Self()
	me := holder{By: r.id, Where: r.opt.Where, Address: self.Client}
	value, err := json.Marshal(me)
	if err != nil {
		return err
	}
	give := time.NewTimer(heldWait)
	defer give.Stop()
	var over store.Rev
	for {
		held, err := r.lease.Claim(ctx, idPrefix+r.id, value, over)
		if !errors.Is(err, store.ErrHeld) {
			return err
		}
		var other holder
		if err := json.Unmarshal(held.Value, &other); err != nil {
			return fmt.Errorf("claim of the id %s: %w", r.id, err)
		}
		if other.Where != "" && other.Where == me.Where {
			over = held.Rev // this directory's own, and there is only one process in it
			continue
		}
		select {
		case <-time.After(againAfter):
		case <-give.C:
			return errors.Join(&TakenError{r.id, other.Address}, r.lease.Close())
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// write brings the record of this controller up to date. Others cannot be there if
// it has the store to itself: the store is a copy from when it had not.
func (r *Roster) write(ctx context.Context) error {
	alone := r.Alone()
	err := r.opt.State.Update(ctx, state.Program("start"), func(tx *state.Tx) error {
		list, _ := List(tx.Snapshot)
		for _, c := range list {
			if alone && c.ID != r.id {
				if err := model.Controllers.Delete(tx, c.ID); err != nil {
					return err
				}
			}
		}
		self := r.opt.Self()
		if _, there := model.Controllers.Get(tx, r.id); !there {
			self.ID, self.LastJoinedAt = r.id, tx.Now()
			return model.Controllers.Create(tx, &self)
		}
		return model.Controllers.Edit(tx, r.id, func(c *model.Controller) error {
			self.Meta, self.LastJoinedAt = c.Meta, tx.Now()
			*c = self
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("write the record of this controller: %w", err)
	}
	return nil
}

// Remove takes a controller off the list for good: routers are told of it no more.
// The record of this one is written again with it, so that the list is newer than
// any that had the other.
func (r *Roster) Remove(ctx context.Context, id string) error {
	return r.opt.State.Update(ctx, state.Program("cluster remove"), func(tx *state.Tx) error {
		if _, there := model.Controllers.Get(tx, id); !there {
			return nil
		}
		if err := model.Controllers.Delete(tx, id); err != nil || id == r.id {
			return err
		}
		return model.Controllers.Edit(tx, r.id, func(c *model.Controller) error {
			c.PartedAt = tx.Now()
			return nil
		})
	})
}

// Online reports whether a controller is there.
func (r *Roster) Online(id string) bool {
	if id == r.id {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.answers[id].By == id
}

// Mine reports whether it is this controller, of those that are there, that
// something falls to which one of them must see to. What falls to a controller
// that goes is divided among the others; the rest stays where it is.
func (r *Roster) Mine(what string) bool {
	own := weight(r.id, what)
	r.mu.RLock()
	defer r.mu.RUnlock()
	for id := range r.answers {
		if id != r.id && bytes.Compare(weight(id, what), own) > 0 {
			return false
		}
	}
	return true
}

// weight is how much a controller is for something; the heaviest does it.
func weight(id, what string) []byte {
	sum := sha256.Sum256([]byte(id + "/" + what))
	return sum[:]
}

// Run follows who is there, and stays there itself, until ctx ends.
func (r *Roster) Run(ctx context.Context) {
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { r.watch(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.lease.Lost():
		}
		// Nobody else can take the place of the only one.
		list, _ := List(r.opt.State.Snapshot())
		others := len(list) > 1
		if others {
			r.opt.Log.Warn("the store has not heard of this controller for too long: routers are led to others until it does", "controller", r.id)
			r.opt.Lost()
		}
		if !r.comeBack(ctx) {
			return
		}
		if others {
			r.opt.Log.Info("this controller takes part again", "controller", r.id)
			r.opt.Found()
		}
	}
}

// comeBack claims the id again; it is false when ctx ends before.
func (r *Roster) comeBack(ctx context.Context) bool {
	for {
		err := r.claim(ctx)
		if err == nil {
			return true
		}
		var taken *TakenError
		if errors.As(err, &taken) {
			r.opt.Log.Warn("somebody else answers under the id of this controller", "controller", r.id, "address", taken.Address)
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return false
		}
	}
}

// watch follows the claims of ids.
func (r *Roster) watch(ctx context.Context) {
	for ctx.Err() == nil {
		_ = r.opt.Claims.FollowClaims(ctx, idPrefix, func(claims []store.Claim, whole bool) error {
			r.see(claims, whole)
			return nil
		})
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
		}
	}
}

// see takes note of claims.
func (r *Roster) see(claims []store.Claim, whole bool) {
	r.mu.Lock()
	before := maps.Clone(r.answers)
	if whole {
		clear(r.answers)
	}
	for _, c := range claims {
		id := strings.TrimPrefix(c.Name, idPrefix)
		var h holder
		if c.Value == nil || json.Unmarshal(c.Value, &h) != nil {
			delete(r.answers, id)
			continue
		}
		r.answers[id] = h
	}
	after := maps.Clone(r.answers)
	r.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, there := after[id]; !there && id != r.id {
			r.opt.Log.Warn("a controller is gone", "controller", id, "address", before[id].Address)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[id]; !there && id != r.id {
			r.opt.Log.Info("a controller is there", "controller", id, "address", after[id].Address)
		}
	}
	if !maps.Equal(before, after) {
		r.opt.Changed()
	}
}

// List is the controllers in the order in which they came, and a number that is
// larger whenever the list has changed.
func List(snap *state.Snapshot) (list []*model.Controller, index int64) {
	for rec, rev := range snap.Stored(model.Controllers.Def) {
		list = append(list, rec.(*model.Controller))
		index = max(index, int64(rev))
	}
	slices.SortFunc(list, func(a, b *model.Controller) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, index
}
