// Package keyring is which of the keys that controllers share each of them has. It
// owns the record that says so, which is of no kind, and in which new ones are
// handed over, sealed for each controller. It imports store and nothing else of
// ours, and knows no key.
package keyring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/store"
)

const (
	// Key is where a store has it.
	Key = "network/keys"
	// newcomer is how long one counts that has said which keys it has and is not on
	// the list of controllers: it may be about to.
	newcomer = 2 * time.Minute
	// tries is how often a write is made again that others came before.
	tries = 10
)

// Ring is the record.
type Ring struct {
	// Generation is how often the keys have changed, and Digest tells two of one
	// generation apart.
	Generation int    `json:"generation"`
	Digest     string `json:"digest,omitzero"`
	// Next is what of it is trusted already and used when all have it; empty for
	// nothing.
	Next string    `json:"next,omitzero"`
	By   string    `json:"by,omitzero"` // the controller that shared it
	At   time.Time `json:"at,omitzero"`
	// Holders are the controllers, by id, and Sealed the keys for those of them that
	// have not got them yet.
	Holders map[string]Holder `json:"holders,omitempty"`
	Sealed  map[string][]byte `json:"sealed,omitempty"`
	// Removed are controllers that were taken out for good, by id.
	Removed []string `json:"removed,omitempty"`

	rev store.Rev
}

// Holder is what a controller says of itself.
type Holder struct {
	// Key is what is sealed for, and Proof that it is the controller's.
	Key   []byte `json:"key"`
	Proof []byte `json:"proof"`
	// Generation and Digest are of the keys that it has.
	Generation int       `json:"generation"`
	Digest     string    `json:"digest"`
	Said       time.Time `json:"said"` // when it said so
	Keys       Names     `json:"keys"`
	// Trusts are the CAs whose certificates it takes from other members of the
	// store since it was started, joined by blanks; empty if it is none.
	Trusts string `json:"trusts,omitzero"`
}

// Trusting reports whether a controller takes certificates of a CA from others.
func (h Holder) Trusting(ca string) bool { return slices.Contains(strings.Fields(h.Trusts), ca) }

// Names are by what people know keys.
type Names struct {
	Root         string `json:"root"`
	Intermediate string `json:"intermediate"`
	Session      string `json:"session"`
	Seal         string `json:"seal"`
	Cluster      string `json:"cluster,omitzero"` // empty for none
}

// Has reports whether a controller has the keys of the present generation.
func (r *Ring) Has(id string) bool {
	h, there := r.Holders[id]
	return there && h.Generation == r.Generation && h.Digest == r.Digest
}

// Lacking are the controllers that have not said that they have the keys of the
// present generation: those of a list, and those that are about to be on it.
func (r *Ring) Lacking(list []string, now time.Time) (ids []string) {
	for _, id := range list {
		if !r.Has(id) {
			ids = append(ids, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.Holders)) {
		if !slices.Contains(list, id) && !r.Has(id) && !r.Holders[id].Gone(now) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Gone reports whether a controller that is not on the list is not about to be
// either.
func (h Holder) Gone(now time.Time) bool { return now.Sub(h.Said).Abs() >= newcomer }

// Tidy takes away what nobody needs any more: keys for those who have them, and
// what controllers said that are not on the list. It reports whether there was
// anything.
func (r *Ring) Tidy(list []string, now time.Time) (changed bool) {
	for id, h := range r.Holders {
		if !slices.Contains(list, id) && h.Gone(now) {
			delete(r.Holders, id)
			changed = true
		}
	}
	for id := range r.Sealed {
		if _, there := r.Holders[id]; !there || r.Has(id) {
			delete(r.Sealed, id)
			changed = true
		}
	}
	return changed
}

// Say notes what a controller says of itself, and reports whether that is news.
func (r *Ring) Say(id string, h Holder) bool {
	was, there := r.Holders[id]
	h.Said = was.Said
	if there && was.Generation == h.Generation && was.Digest == h.Digest && was.Keys == h.Keys && was.Trusts == h.Trusts && slices.Equal(was.Key, h.Key) && slices.Equal(was.Proof, h.Proof) {
		return false
	}
	if !slices.Equal(was.Key, h.Key) {
		delete(r.Sealed, id) // which it cannot open
	}
	if r.Holders == nil {
		r.Holders = map[string]Holder{}
	}
	h.Said = time.Time{}
	r.Holders[id] = h
	return true
}

// Read returns the record as it is now; the zero value if there is none.
func Read(ctx context.Context, st store.Store) (r Ring, err error) {
	rec, ok, err := st.Get(ctx, Key)
	if err != nil {
		return r, fmt.Errorf("read which keys controllers have: %w", err)
	}
	if ok {
		if err := json.Unmarshal(rec.Value, &r); err != nil {
			return r, fmt.Errorf("the record of which keys controllers have, %s, is damaged: %w", Key, err)
		}
	}
	r.rev = rec.Rev
	return r, nil
}

// Change has fn change the record, unless it says that there is nothing to change,
// and returns what it is then.
func Change(ctx context.Context, st store.Store, now time.Time, fn func(*Ring) (bool, error)) (Ring, error) {
	for range tries {
		r, err := Read(ctx, st)
		if err != nil {
			return r, err
		}
		changed, err := fn(&r)
		if err != nil || !changed {
			return r, err
		}
		for id, h := range r.Holders {
			if h.Said.IsZero() {
				h.Said = now.UTC().Truncate(time.Second)
				r.Holders[id] = h
			}
		}
		if err = r.write(ctx, st, now); !errors.Is(err, store.ErrConflict) {
			return r, err
		}
	}
	return Ring{}, errors.New("others write which keys they have all the time; try again")
}

// write stores the record in place of what was read.
func (r *Ring) write(ctx context.Context, st store.Store, now time.Time) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	by := store.Author{Kind: store.Program, Name: "keys rotate"}
	head := store.Head{Time: now.UTC().Truncate(time.Microsecond), Writes: []store.Write{{Author: by, Ops: 1}}}
	at, err := st.Put(ctx, head, []store.Op{{Key: Key, Value: value, Prev: r.rev}})
	if err != nil {
		return fmt.Errorf("write which keys controllers have: %w", err)
	}
	r.rev = at.Rev
	return nil
}
