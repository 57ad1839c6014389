package etcdstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

// errGap is why a member is not started whose log ends before what its database has
// from it: etcd would take the end for one that a crash has left, cut it off, and wait for
// ever for what is missing, or write other things in its place.
var errGap = errors.New("its log (member/wal) ends before what its database (member/snap/db) has of it: part of the log was lost or is an older one; put the right files back, or restore a snapshot")

// errDamaged is why a member is not started whose database does not hang together. etcd
// would look at its pages in goroutines of its own, and the first bad one ends the process.
var errDamaged = errors.New("its database (member/snap/db) is damaged: put the right file back, or restore a snapshot")

// maxWalked bounds the databases that are gone through before a start, which takes half a
// second for as large a one.
const maxWalked = 1 << 30

// sound fails if the files of a member are not as a member leaves them, however it ended.
// What else is wrong with them is left to etcd, which says more about it.
func sound(dir string) error {
	logs, file := filepath.Join(dir, "member", "wal"), filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(file)
	if err != nil || !wal.Exist(logs) {
		return nil // it is new
	}
	have, err := inDatabase(file, info.Size() <= maxWalked)
	if errors.Is(err, errDamaged) {
		return err
	}
	if err != nil || have == 0 {
		return nil
	}
	end, err := inLog(logs)
	if err != nil || end >= have {
		return nil
	}
	return fmt.Errorf("%w (the log has %d, the database %d)", errGap, end, have)
}

// inDatabase is the last entry of the log that a database has. If all is asked for, it
// goes through all else that it has.
func inDatabase(file string, all bool) (index uint64, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a page may be beyond the end
	db, err := bolt.Open(file, 0o400, &bolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bolt.Tx) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("%w (%v)", errDamaged, p)
			}
		}()
		if all {
			err = tx.ForEach(ordered)
		}
		if meta := tx.Bucket(schema.Meta.Name()); err == nil && meta != nil {
			if value := meta.Get(schema.MetaConsistentIndexKeyName); len(value) == 8 {
				index = binary.BigEndian.Uint64(value)
			}
		}
		return err
	})
	return index, err
}

// ordered fails if the keys of a bucket are not in order, as they are not any more if a
// page is another one.
func ordered(name []byte, b *bolt.Bucket) error {
	var last []byte
	return b.ForEach(func(key, _ []byte) error {
		if last != nil && bytes.Compare(last, key) >= 0 {
			return fmt.Errorf("%w (keys of %s are not in order)", errDamaged, name)
		}
		last = key
		return nil
	})
}

// inLog is the last entry that a log has, or that a snapshot it knows of stands for.
func inLog(dir string) (end uint64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the log cannot be read: %v", p)
		}
	}()
	snaps, err := wal.ValidSnapshotEntries(zap.NewNop(), dir)
	if err != nil || len(snaps) == 0 {
		return 0, errors.Join(err, errors.New("the log knows no snapshot"))
	}
	last := snaps[len(snaps)-1]
	w, err := wal.OpenForRead(zap.NewNop(), dir, last)
	if err != nil {
		return 0, err
	}
	defer func() { _ = w.Close() }() // it says that it cannot be written to
	_, _, entries, err := w.ReadAll()
	if end = last.GetIndex(); len(entries) > 0 {
		end = max(end, entries[len(entries)-1].GetIndex())
	}
	return end, err
}
