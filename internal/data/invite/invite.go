// Package invite is the invitations of a network to controllers that are to join
// it. It owns the record that holds them, which is of no kind: a digest of each
// secret, and until when it is good. It imports store and nothing else of ours.
package invite

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/store"
)

const (
	// Key is where a store has them.
	Key = "network/invitations"
	// Life is how long one is good.
	Life = time.Hour
	// most is how many there may be that are good.
	most = 50
	// remembered is how long it is known of one what became of it.
	remembered = 24 * time.Hour
	// tries is how often a write is made again that others came before.
	tries = 10
)

// Why an invitation is not good.
var (
	ErrUnknown = errors.New("the token is not one of this network: ask for another with netkeep cluster invite")
	ErrUsed    = errors.New("the token was used already, and one is good for one controller: ask for another with netkeep cluster invite")
	ErrExpired = errors.New("the token is too old, since they are good for an hour: ask for another with netkeep cluster invite")
	ErrMany    = fmt.Errorf("there are %d invitations that nobody has used: wait until the first of them have expired, which takes an hour", most)
)

// Invitation is what the one who was invited has to know.
type Invitation struct {
	ID, Secret    string
	Made, Expires time.Time
}

type entry struct {
	ID      string    `json:"id"`
	Digest  string    `json:"digest"` // SHA-256 of the secret, which has 256 bits
	Expires time.Time `json:"expires"`
	Used    time.Time `json:"used,omitzero"`
}

type list struct {
	Invitations []entry `json:"invitations"`
}

func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Make adds an invitation.
func Make(ctx context.Context, st store.Store, now time.Time) (Invitation, error) {
	inv := Invitation{ID: rand.Text()[:16], Secret: random(), Made: now.UTC().Truncate(time.Second)}
	inv.Expires = inv.Made.Add(Life)
	err := change(ctx, st, "cluster invite", now, func(l *list) error {
		good := 0
		for _, e := range l.Invitations {
			if e.Used.IsZero() && now.Before(e.Expires) {
				good++
			}
		}
		if good >= most {
			return ErrMany
		}
		l.Invitations = append(l.Invitations, entry{ID: inv.ID, Digest: digest(inv.Secret), Expires: inv.Expires})
		return nil
	})
	return inv, err
}

// random is 256 bits as text.
func random() string {
	b := make([]byte, 32)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// Take uses an invitation up. Of those who try to at the same time one does.
func Take(ctx context.Context, st store.Store, id, secret string, now time.Time) error {
	return change(ctx, st, "cluster join", now, func(l *list) error {
		i := slices.IndexFunc(l.Invitations, func(e entry) bool { return e.ID == id })
		if i < 0 || subtle.ConstantTimeCompare([]byte(l.Invitations[i].Digest), []byte(digest(secret))) != 1 {
			return ErrUnknown
		}
		switch e := &l.Invitations[i]; {
		case !e.Used.IsZero():
			return ErrUsed
		case !now.Before(e.Expires):
			return ErrExpired
		default:
			e.Used = now.UTC().Truncate(time.Second)
			return nil
		}
	})
}

// Return makes an invitation good again that was taken for nothing.
func Return(ctx context.Context, st store.Store, id string, now time.Time) error {
	return change(ctx, st, "cluster join", now, func(l *list) error {
		for i := range l.Invitations {
			if l.Invitations[i].ID == id {
				l.Invitations[i].Used = time.Time{}
			}
		}
		return nil
	})
}

// change writes the record anew, without what nobody asks for any more.
func change(ctx context.Context, st store.Store, part string, now time.Time, fn func(*list) error) error {
	for range tries {
		rec, ok, err := st.Get(ctx, Key)
		if err != nil {
			return fmt.Errorf("read the invitations: %w", err)
		}
		var l list
		if ok {
			if err := json.Unmarshal(rec.Value, &l); err != nil {
				return fmt.Errorf("the record of the invitations, %s, is damaged: %w", Key, err)
			}
		}
		if err := fn(&l); err != nil {
			return err
		}
		l.Invitations = slices.DeleteFunc(l.Invitations, func(e entry) bool { return now.Sub(e.Expires) > remembered })
		value, err := json.Marshal(l)
		if err != nil {
			return err
		}
		by := store.Author{Kind: store.Program, Name: part}
		head := store.Head{Time: now.UTC().Truncate(time.Microsecond), Writes: []store.Write{{Author: by, Ops: 1}}}
		_, err = st.Put(ctx, head, []store.Op{{Key: Key, Value: value, Prev: rec.Rev}})
		switch {
		case errors.Is(err, store.ErrConflict):
			continue
		case err != nil:
			return fmt.Errorf("write the invitations: %w", err)
		}
		return nil
	}
	return errors.New("others write the invitations all the time; try again")
}
