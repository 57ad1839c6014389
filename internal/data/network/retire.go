package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netkeep/internal/data/store"
)

// Retired returns the fingerprints of root CAs that the network has retired.
func Retired(ctx context.Context, st store.Store) ([]string, error) {
	o, err := read(ctx, st)
	return o.Retired, err
}

// Retire writes down which root CAs the network has retired, beside those that
// are known to have, so that nobody starts a controller with a copy of keys of
// before.
func Retire(ctx context.Context, st store.Store, roots []string, now time.Time) error {
	for {
		o, err := read(ctx, st)
		if err != nil {
			return err
		}
		known := len(o.Retired)
		for _, root := range roots {
			if !slices.Contains(o.Retired, root) {
				o.Retired = append(o.Retired, root)
			}
		}
		if len(o.Retired) == known || o.Root == "" {
			return nil
		}
		err = o.write(ctx, st, "keys rotate", now)
		if !errors.Is(err, store.ErrConflict) {
			if err != nil {
				err = fmt.Errorf("say which root CAs have retired: %w", err)
			}
			return err
		}
	}
}
