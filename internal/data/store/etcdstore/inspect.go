package etcdstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"netkeep.internal/internal/data/store"
)

// lockWait bounds how long Inspect waits for somebody who writes the file.
const lockWait = time.Second

// Inspect reads the snapshot in a file as a whole and returns what position it
// holds for the network with the prefix, and those of the named records that it
// has. It fails if anything of it cannot be read, or if it holds no such
// network.
func Inspect(ctx context.Context, path, prefix string, names ...string) (mark store.Mark, values map[string][]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return store.Mark{}, nil, fmt.Errorf("inspect: %w", err)
	}
	err = errors.Join(checkSum(ctx, f), f.Close())
	if err != nil {
		return store.Mark{}, nil, fmt.Errorf("inspect %s: %w", path, err)
	}
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return store.Mark{}, nil, fmt.Errorf("inspect %s: %w", path, err)
	}
	err = db.View(func(tx *bolt.Tx) (err error) {
		mark, values, err = inspect(ctx, tx, newKeyspace(prefix), names)
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return store.Mark{}, nil, fmt.Errorf("inspect %s: %w", path, err)
	}
	return mark, values, nil
}

// inspect reads every page and every record.
func inspect(ctx context.Context, tx *bolt.Tx, keys keyspace, names []string) (mark store.Mark, values map[string][]byte, err error) {
	for bad := range tx.Check() {
		err = errors.Join(err, bad)
	}
	if err != nil {
		return mark, nil, err
	}
	bucket := tx.Bucket(schema.Key.Name())
	if bucket == nil {
		return mark, nil, errors.New("it is no snapshot of a store")
	}
	var rev int64
	last := map[string]*mvccpb.KeyValue{} // of the keys that are looked for
	wanted := map[string]bool{keys.head: true, keys.hold: true}
	for _, name := range names {
		wanted[keys.record(name)] = true
	}
	err = bucket.ForEach(func(at, data []byte) error {
		kv := &mvccpb.KeyValue{}
		if err := proto.Unmarshal(data, kv); err != nil {
			return err
		}
		if len(at) < 8 {
			return errors.New("a record has no revision")
		}
		rev = int64(binary.BigEndian.Uint64(at))
		if name := string(kv.Key); wanted[name] || strings.HasPrefix(name, keys.staging) {
			if last[name] = kv; mvcc.IsTombstone(at) {
				delete(last, name)
			}
		}
		return ctx.Err()
	})
	head, ok := last[keys.head]
	switch {
	case err != nil:
		return mark, nil, err
	case !ok:
		return mark, nil, errors.New("it holds no network")
	}
	values = map[string][]byte{}
	for _, name := range names {
		value, err := recordIn(last, keys, name)
		if err != nil {
			return mark, nil, err
		}
		if value != nil {
			values[name] = value
		}
	}
	mark, err = markOf(rev, []*mvccpb.KeyValue{head})
	return mark, values, err
}

// recordIn finds the value of a record among keys, nil if it has none: in what
// is left of a staged batch, or else in its place.
func recordIn(last map[string]*mvccpb.KeyValue, keys keyspace, key string) (value []byte, err error) {
	if kv, ok := last[keys.record(key)]; ok {
		value = valueOf(kv)
	}
	holder, ok := last[keys.hold]
	if !ok {
		return value, nil
	}
	h, err := holdOf([]*mvccpb.KeyValue{holder})
	if err != nil || h.Closes == "" {
		return value, err
	}
	for name, kv := range last {
		if !strings.HasPrefix(name, keys.parts(h.ID)) {
			continue
		}
		ops, err := decodePart(kv.Value)
		if err != nil {
			return nil, err
		}
		l := leftOf(0, []part{{ops: ops}})
		if op, has := l.find(key); has {
			value = op.Value
		}
	}
	return value, nil
}
