// Package owner is which network a store belongs to: that of the root CA that
// it had first, whichever took its place since. It
// owns the record that says so, which is of no kind. It imports store and
// nothing else of ours.
package owner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/store"
)

// Key is where a store says whose it is. Stores of before there was such a
// record have none until a controller has started.
const Key = "network/root"

// owner is the record at Key.
type owner struct {
	// Root is the SHA-256 fingerprint of the certificate of the root CA that the
	// network had first; empty if the store belongs to nobody.
	Root string `json:"root,omitzero"`
	// Forgotten is the root CA that it belonged to before, whose keys are lost.
	Forgotten string `json:"forgotten,omitzero"`
	// Known are root CAs that took its place since, one after the other.
	Known []string `json:"known,omitempty"`
	// Retired are root CAs of the network that nobody is to trust any more. The
	// first may be among them: its name stays that of the network.
	Retired []string `json:"retired,omitempty"`
	// First is the id of the first controller, if it does not follow from the root CA.
	First string `json:"first,omitzero"`

	rev store.Rev
}

func read(ctx context.Context, st store.Store) (o owner, err error) {
	rec, ok, err := st.Get(ctx, Key)
	if err != nil {
		return o, fmt.Errorf("read whose the store is: %w", err)
	}
	if !ok {
		return o, nil
	}
	o, err = parse(rec.Value)
	o.rev = rec.Rev
	return o, err
}

func parse(value []byte) (o owner, err error) {
	if err := json.Unmarshal(value, &o); err != nil || o.Root+o.Forgotten == "" {
		return owner{}, fmt.Errorf("the store does not say whose it is: %s holds %.100q", Key, value)
	}
	return o, nil
}

// RootOf is Root for a store of which only the record at Key is at hand; nil if
// it has none.
func RootOf(value []byte) (string, error) {
	if value == nil {
		return "", nil
	}
	o, err := parse(value)
	return o.Root, err
}

// Root returns the fingerprint of the root CA of the network that a store
// belongs to; empty if it does not say.
func Root(ctx context.Context, st store.Store) (string, error) {
	o, err := read(ctx, st)
	return o.Root, err
}

// Free reports whether a store may be anybody's: it is empty, or its owner was
// forgotten.
func Free(ctx context.Context, st store.Store) (bool, error) {
	o, err := read(ctx, st)
	if err != nil || o.Root+o.Forgotten != "" {
		return err == nil && o.Root == "", err
	}
	return Empty(ctx, st)
}

// Claim makes a store that belongs to nobody that of a root CA. It returns whose
// the store is then: of those who claim it at the same time one is first.
func Claim(ctx context.Context, st store.Store, root string, now time.Time) (string, error) {
	o, err := read(ctx, st)
	if err != nil || o.Root != "" {
		return o.Root, err
	}
	o.Root = root
	err = o.write(ctx, st, "start", now)
	switch {
	case errors.Is(err, store.ErrConflict):
		return Root(ctx, st)
	case err != nil:
		return "", fmt.Errorf("say whose the store is: %w", err)
	}
	return root, nil
}

// First returns the id of the first controller of the network; empty if that follows from
// its root CA.
func First(ctx context.Context, st store.Store) (string, error) {
	o, err := read(ctx, st)
	return o.First, err
}

// NameFirst says what the id of the first controller is, of a store that is somebody's.
func NameFirst(ctx context.Context, st store.Store, id string, now time.Time) error {
	o, err := read(ctx, st)
	if err != nil || o.First == id {
		return err
	}
	o.First = id
	if err := o.write(ctx, st, "takeover", now); err != nil {
		return fmt.Errorf("say what the first controller is called: %w", err)
	}
	return nil
}

// unnamed stands for the owner of a store of before stores said whose they are.
const unnamed = "unknown"

// Forget makes a store that of nobody, and returns whose it was; empty if it
// was free.
func Forget(ctx context.Context, st store.Store, now time.Time) (root string, err error) {
	free, err := Free(ctx, st)
	if err != nil || free {
		return "", err
	}
	o, err := read(ctx, st)
	if err != nil {
		return "", err
	}
	o.Root, o.Forgotten, o.Known, o.Retired = "", cmp.Or(o.Root, unnamed), nil, nil
	if err := o.write(ctx, st, "keys forget", now); err != nil {
		return "", fmt.Errorf("forget whose the store is: %w", err)
	}
	return o.Forgotten, nil
}

// write stores the record in place of what was read.
func (o owner) write(ctx context.Context, st store.Store, part string, now time.Time) error {
	value, err := json.Marshal(o)
	if err != nil {
		return err
	}
	by := store.Author{Kind: store.Program, Name: part}
	head := store.Head{Time: now.UTC().Truncate(time.Microsecond), Writes: []store.Write{{Author: by, Ops: 1}}}
	_, err = st.Put(ctx, head, []store.Op{{Key: Key, Value: value, Prev: o.rev}})
	return err
}

// Empty reports whether a store holds nothing at all.
func Empty(ctx context.Context, st store.Store) (bool, error) {
	something := errors.New("something")
	_, err := st.Load(ctx, func(store.Record) error { return something })
	if errors.Is(err, something) {
		return false, nil
	}
	return err == nil, err
}
