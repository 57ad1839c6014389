package format

import (
	"context"
	"fmt"
	"strings"

	"netkeep.internal/internal/data/store"
)

// Other is another controller of the network that a store belongs to.
type Other struct {
	Name    string
	Version string
	Format  int  // the newest that it can work with; 0 if it does not say
	There   bool // at the moment
}

// Of returns which format a store has. While it is being rewritten, that is the one
// that it will have.
func Of(ctx context.Context, st store.Store) (int, error) {
	rec, _, err := st.Get(ctx, Key)
	if err != nil {
		return 0, fmt.Errorf("read the store's format: %w", err)
	}
	v, err := parse(rec.Value)
	return v.Format, err
}

// Hold reports whether the store has to keep its format for now: others use it that
// know no newer one, and this version can work with it for up to so many steps. If
// it cannot, and they are there, the error says what to do: they would stop.
func (m *Migration) Hold(ctx context.Context, others []Other, waits int) (bool, error) {
	v, _, err := m.look(ctx)
	if err != nil || v.Format == current(m.Steps) || v.From != 0 {
		return false, err // somebody has begun
	}
	var behind, there []string
	for _, o := range others {
		if o.Format >= current(m.Steps) {
			continue
		}
		name := o.Name
		if o.Version != "" {
			name += " (" + o.Version + ")"
		}
		if behind = append(behind, name); o.There {
			there = append(there, name)
		}
	}
	switch {
	case len(behind) == 0:
		return false, nil
	case v.Format >= current(m.Steps)-waits:
		return true, nil
	case len(there) > 0:
		return false, fmt.Errorf("the store has format %d, this version works with %d and newer, and there are controllers that know no newer one and would stop: %s. Bring them to a version between theirs and this one first, or stop them all and start them with this one",
			v.Format, current(m.Steps)-waits, strings.Join(there, ", "))
	}
	return false, nil // they are stopped, to be started with this version
}
