package outlet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// Here is the position of an outlet of this controller alone, in a file.
type Here string

// Load is for Position. One that was never saved begins with all that there is.
func (h Here) Load(context.Context) (int64, error) {
	text, err := os.ReadFile(string(h))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s holds no number of an entry; without it all entries are sent again", string(h))
	}
	return n, nil
}

// Save is for Position.
func (h Here) Save(_ context.Context, number int64) error {
	f, err := disk.NewFile(string(h), true)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Write([]byte(strconv.FormatInt(number, 10) + "\n"))
}

// Shared is the position of an outlet that one controller serves for all, in the store.
type Shared struct {
	State *state.State
	ID    string
}

// Load is for Position.
func (s Shared) Load(ctx context.Context) (int64, error) {
	snap, err := s.State.Current(ctx)
	if err != nil {
		return 0, err
	}
	if rec, ok := model.AuditOutlets.Get(snap, s.ID); ok {
		return rec.Sent, nil
	}
	return max(0, audit.First(audit.Head(snap))-1), nil
}

// Save is for Position.
func (s Shared) Save(ctx context.Context, number int64) error {
	return s.State.UpdateSessions(ctx, state.Program("audit"), func(tx *state.Tx) error {
		if _, ok := model.AuditOutlets.Get(tx, s.ID); !ok {
			return model.AuditOutlets.Create(tx, &model.AuditOutlet{Meta: kind.Meta{ID: s.ID}, Sent: number})
		}
		return model.AuditOutlets.Edit(tx, s.ID, func(o *model.AuditOutlet) error { o.Sent = number; return nil })
	})
}
