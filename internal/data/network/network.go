// Package network is which network a store belongs to: that of one root CA. It
// owns the record that says so, which is of no kind. It imports store and
// nothing else of ours.
package network

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep/internal/data/store"
)

// Key is where a store says whose it is. Stores of before there was such a
// record have none until a controller has started.
const Key = "network/root"

// owner is the record at Key.
type owner struct {
	// Root is the SHA-256 fingerprint of the root CA's certificate.
	Root string `json:"root"`
}

// Root returns the fingerprint of the root CA of the network that a store
// belongs to; empty if it does not say.
func Root(ctx context.Context, st store.Store) (string, error) {
	rec, ok, err := st.Get(ctx, Key)
	if err != nil {
		return "", fmt.Errorf("read whose the store is: %w", err)
	}
	if !ok {
		return "", nil
	}
	var o owner
	if err := json.Unmarshal(rec.Value, &o); err != nil || o.Root == "" {
		return "", fmt.Errorf("the store does not say whose it is: %s holds %.100q", Key, rec.Value)
	}
	return o.Root, nil
}

// Claim makes a store that belongs to nobody that of a root CA. It returns whose
// the store is then: of those who claim it at the same time one is first.
func Claim(ctx context.Context, st store.Store, root string, now time.Time) (string, error) {
	value, err := json.Marshal(owner{Root: root})
	if err != nil {
		return "", err
	}
	by := store.Author{Kind: store.Program, Name: "start"}
	head := store.Head{Time: now.UTC().Truncate(time.Microsecond), Writes: []store.Write{{Author: by, Ops: 1}}}
	_, err = st.Put(ctx, head, []store.Op{{Key: Key, Value: value}})
	switch {
	case errors.Is(err, store.ErrConflict):
		return Root(ctx, st)
	case err != nil:
		return "", fmt.Errorf("say whose the store is: %w", err)
	}
	return root, nil
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
