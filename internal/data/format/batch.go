package format

import (
	"context"

	"netkeep.internal/internal/data/store"
)

// margin is what the record at Key may weigh.
const margin = 1 << 10

// batch is rewritten records on their way to the store. Each is guarded by its
// own revision and all of them by that of Key, which each batch moves: so there
// is one who rewrites, and others see that it goes on.
type batch struct {
	*Migration
	version version
	ops     []store.Op
	bytes   int
	wrote   bool
}

// add adds what belongs together.
func (b *batch) add(ctx context.Context, ops ...store.Op) error {
	limits, size := b.Store.Quick(), 0
	for _, op := range ops {
		size += len(op.Key) + len(op.Value)
	}
	if len(b.ops)+len(ops) >= limits.Ops || b.bytes+size+margin > limits.Bytes {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.ops = append(b.ops, ops...)
	b.bytes += size
	return nil
}

// flush writes what there is.
func (b *batch) flush(ctx context.Context) error {
	if len(b.ops) == 0 {
		return nil
	}
	b.version.Rewritten += len(b.ops)
	progress, err := b.version.op(b.announced)
	if err != nil {
		return err
	}
	ops := append(b.ops, progress)
	at, err := b.Store.Put(ctx, b.head(len(ops)), ops)
	if err != nil {
		return err
	}
	b.announced, b.wrote = at.Rev, true
	b.ops, b.bytes = nil, 0
	return nil
}
