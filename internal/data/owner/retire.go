package owner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netkeep.internal/internal/data/store"
)

// Succession is what became of the root CA that a network had first, by
// fingerprints.
type Succession struct {
	// Known are those that took its place, one after the other, and Retired those
	// of all that nobody is to trust any more.
	Known, Retired []string
}

// Successors returns what a store knows of the root CAs of its network.
func Successors(ctx context.Context, st store.Store) (Succession, error) {
	o, err := read(ctx, st)
	return Succession{o.Known, o.Retired}, err
}

// Note writes down what became of a network's root CAs, beside what is known, so
// that nobody starts a controller with a copy of keys of before unaware of it.
func Note(ctx context.Context, st store.Store, now Succession, at time.Time) error {
	for {
		o, err := read(ctx, st)
		if err != nil {
			return err
		}
		was := len(o.Known) + len(o.Retired)
		for _, root := range now.Known {
			if root != o.Root && !slices.Contains(o.Known, root) {
				o.Known = append(o.Known, root)
			}
		}
		for _, root := range now.Retired {
			if !slices.Contains(o.Retired, root) {
				o.Retired = append(o.Retired, root)
			}
		}
		if len(o.Known)+len(o.Retired) == was || o.Root == "" {
			return nil
		}
		err = o.write(ctx, st, "keys rotate", at)
		if !errors.Is(err, store.ErrConflict) {
			if err != nil {
				err = fmt.Errorf("say what became of the root CAs: %w", err)
			}
			return err
		}
	}
}
