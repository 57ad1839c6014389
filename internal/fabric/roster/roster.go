// Package roster is the controllers of a network: which there are, which of them
// are there at the moment, and who answers under which id. It must not import
// rest or api.
//
// Routers know a controller by its id, and what they keep hangs on it. So no two
// processes may answer under one id: each claims its own in the store for as long
// as it is there.
package roster

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
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
	// backWait is how long somebody may take who is in the place of this controller
	// and is asked to leave it.
	backWait = 30 * time.Second
	// againAfter is how long to wait before the store is asked again.
	againAfter = 200 * time.Millisecond
	// soonAfter is the same where an answer is about to come.
	soonAfter = 20 * time.Millisecond
)

// The names of claims of ids begin with idPrefix. One of the same name with
// wantedSuffix is that the controller whose id it is wants it back.
const (
	idPrefix     = "id/"
	wantedSuffix = "/wanted"
)

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
	// Removed is told when this controller is on the list no more.
	Removed func()
	// Changed is told when what controllers see to is divided otherwise.
	Changed func()
	// StandIn begins to answer routers in the place of a controller that is gone, at
	// the reserve address of Self. What it notes for other controllers hangs on the
	// lease.
	StandIn func(id string, lease store.Lease) StandIn
	// Asked answers what another controller asks all others.
	Asked func(question string) bool
	Now   func() time.Time
	Log   *slog.Logger
}

// StandIn is that routers are answered in the place of another controller.
type StandIn struct {
	Routers func() int // how many are connected
	Stop    func()     // when it returns nobody is answered any more
}

// Roster is the controllers of a network as one of them sees them.
type Roster struct {
	opt  Options
	id   string
	asks asks

	mu       sync.RWMutex
	lease    store.Lease
	answers  map[string]holder    // by id: who answers under it
	wanted   map[string]bool      // ids that their controllers want back
	known    bool                 // whether the two are known
	gone     map[string]time.Time // since when nobody answers under an id
	counted  map[string]bool      // ids that routers are divided among
	standing string               // the id in whose place this controller is; empty for none
	behind   bool                 // somebody was in the place of this controller when it started, and it has not got it yet
	changed  chan struct{}        // closed when any of it changes
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

// ValidID reports whether a text can be the id of a controller. One of a network that
// another program kept before is what its routers know, which is the common name of a
// certificate.
func ValidID(id string) bool {
	if digits, ours := strings.CutPrefix(id, idMark); ours {
		_, err := hex.DecodeString(digits)
		return err == nil && len(digits) == idDigits
	}
	odd := func(r rune) bool { return r < ' ' || r > '~' || r == '/' }
	return id != "" && len(id) <= maxID && strings.TrimSpace(id) == id && !strings.ContainsFunc(id, odd)
}

// What an id is made of.
const (
	idMark   = "netkeep-"
	idDigits = 12
	maxID    = 200
)

// holder is who answers under an id.
type holder struct {
	By      string `json:"by"`      // id of the controller
	Where   string `json:"where"`   // as in Options
	Address string `json:"address"` // of that controller
}

// standIn is the controller that answers in the place of the one with an id; empty
// if that does itself.
func (h holder) standIn(id string) string {
	if h.By == id {
		return ""
	}
	return h.By
}

// TakenError is that somebody else answers under the id of a controller.
type TakenError struct {
	ID, Address string
	StandIn     string // who does so in its place; empty for a copy of it
}

func (e *TakenError) Error() string {
	if e.StandIn != "" {
		return fmt.Sprintf("the controller %s answers at %s in the place of %s, and does not stop: see what its log says, or stop it", e.StandIn, e.Address, e.ID)
	}
	return fmt.Sprintf("the controller %s runs already, at %s: this data directory is a copy of its; stop that one, or let this one join as another with a directory of its own", e.ID, e.Address)
}

// Open claims an id for this controller, and writes its record. It fails with a
// TakenError if somebody else has the id. Who is in the place of this controller is
// asked for it when it runs, and can serve.
func Open(ctx context.Context, id string, opt Options) (*Roster, error) {
	r := &Roster{opt: opt, id: id, answers: map[string]holder{}, wanted: map[string]bool{}, counted: map[string]bool{id: true}, gone: map[string]time.Time{}, changed: make(chan struct{})}
	err := r.claim(ctx, false)
	if taken, ok := errors.AsType[*TakenError](err); ok && taken.StandIn != "" {
		r.behind = true
		return r, nil
	}
	if err != nil {
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

// Lease is what everything hangs on that this controller says of itself. It is
// another one after the store has lost this controller.
func (r *Roster) Lease() store.Lease {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.lease
}

// Close tells the others that this controller is gone. A store that cannot be told
// finds out by itself.
func (r *Roster) Close() error {
	if err := r.Lease().Close(); err != nil {
		r.opt.Log.Debug("the store was not told that this controller stops", "error", err)
	}
	return nil
}

// Behind reports whether somebody is in the place of this controller since before
// it started: it must not answer routers until Found is told.
func (r *Roster) Behind() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.behind
}

// claim gets a lease and the id under it. Who was killed a moment ago still has
// it, and who is in the place of this controller leaves it, if it is to be asked.
func (r *Roster) claim(ctx context.Context, ask bool) error {
	lease, err := r.opt.Claims.Lease(ctx, leaseLife)
	if err != nil {
		return err
	}
	err = r.claimUnder(ctx, lease, ask)
	if err != nil {
		err = errors.Join(err, lease.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || r.lease == nil {
		r.lease = lease // one that is over, if it failed
	}
	return err
}

func (r *Roster) claimUnder(ctx context.Context, lease store.Lease, ask bool) error {
	me := holder{By: r.id, Where: r.opt.Where, Address: r.opt.Self().Client}
	value, err := json.Marshal(me)
	if err != nil {
		return err
	}
	give := time.NewTimer(heldWait)
	defer give.Stop()
	var over store.Rev
	wants := false
	for {
		held, err := lease.Claim(ctx, idPrefix+r.id, value, over)
		switch {
		case err == nil && wants:
			return lease.Note(ctx, store.Claim{Name: idPrefix + r.id + wantedSuffix})
		case !errors.Is(err, store.ErrHeld):
			return err
		}
		var other holder
		if err := json.Unmarshal(held.Value, &other); err != nil {
			return fmt.Errorf("claim of the id %s: %w", r.id, err)
		}
		again := againAfter
		switch {
		case other.By != r.id && !ask:
			return &TakenError{ID: r.id, Address: other.Address, StandIn: other.By}
		case other.By != r.id && !wants:
			if err := lease.Note(ctx, store.Claim{Name: idPrefix + r.id + wantedSuffix, Value: value}); err != nil {
				return err
			}
			wants = true
			give.Reset(backWait)
			continue
		case other.By != r.id:
			again = soonAfter
		case other.Where != "" && other.Where == me.Where:
			over = held.Rev // this directory's own, and there is only one process in it
			continue
		}
		select {
		case <-time.After(again):
		case <-give.C:
			return &TakenError{ID: r.id, Address: other.Address, StandIn: other.standIn(r.id)}
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
			self.Meta, self.LastJoinedAt, self.MovedAt = c.Meta, tx.Now(), c.MovedAt
			if c.At() != self.Address {
				self.MovedAt = tx.Now()
			}
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

// Present is the ids under which somebody answers at the moment.
func Present(ctx context.Context, claims store.Claims) (ids []string, err error) {
	seen := errors.New("seen")
	err = claims.FollowClaims(ctx, idPrefix, func(all []store.Claim, _ bool) error {
		for _, c := range all {
			if id, wants := strings.CutSuffix(strings.TrimPrefix(c.Name, idPrefix), wantedSuffix); !wants && c.Value != nil {
				ids = append(ids, id)
			}
		}
		return seen
	})
	if errors.Is(err, seen) {
		err = nil
	}
	return ids, err
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
