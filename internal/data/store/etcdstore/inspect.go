package etcdstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/proto"

	"netkeep/internal/data/store"
)

// lockWait bounds how long Inspect waits for somebody who writes the file.
const lockWait = time.Second

// Inspect reads the snapshot in a file as a whole and returns what position it
// holds for the network with the prefix. It fails if anything of it cannot be
// read, or if it holds no such network.
func Inspect(ctx context.Context, path, prefix string) (store.Mark, error) {
	f, err := os.Open(path)
	if err != nil {
		return store.Mark{}, fmt.Errorf("inspect: %w", err)
	}
	err = errors.Join(checkSum(ctx, f), f.Close())
	if err != nil {
		return store.Mark{}, fmt.Errorf("inspect %s: %w", path, err)
	}
	db, err := bolt.Open(path, 0o400, &bolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return store.Mark{}, fmt.Errorf("inspect %s: %w", path, err)
	}
	var mark store.Mark
	err = db.View(func(tx *bolt.Tx) (err error) {
		mark, err = inspect(ctx, tx, newKeyspace(prefix))
		return err
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return store.Mark{}, fmt.Errorf("inspect %s: %w", path, err)
	}
	return mark, nil
}

// inspect reads every page and every record.
func inspect(ctx context.Context, tx *bolt.Tx, keys keyspace) (mark store.Mark, err error) {
	for bad := range tx.Check() {
		err = errors.Join(err, bad)
	}
	if err != nil {
		return mark, err
	}
	bucket := tx.Bucket(schema.Key.Name())
	if bucket == nil {
		return mark, errors.New("it is no snapshot of a store")
	}
	var rev int64
	var head *mvccpb.KeyValue
	err = bucket.ForEach(func(at, value []byte) error {
		kv := &mvccpb.KeyValue{}
		if err := proto.Unmarshal(value, kv); err != nil {
			return err
		}
		if len(at) < 8 {
			return errors.New("a record has no revision")
		}
		rev = int64(binary.BigEndian.Uint64(at))
		if string(kv.Key) == keys.head && !mvcc.IsTombstone(at) {
			head = kv
		}
		return ctx.Err()
	})
	switch {
	case err != nil:
		return mark, err
	case head == nil:
		return mark, errors.New("it holds no network")
	}
	return markOf(rev, []*mvccpb.KeyValue{head})
}
