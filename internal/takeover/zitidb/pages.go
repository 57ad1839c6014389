package zitidb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// pages looks whether the pages of a file hang together, before the engine follows them:
// it believes what they say, walks in circles where they lead back, and reads beyond them
// where they say that there is more. It knows nothing of records.
type pages struct {
	file io.ReaderAt
	size int64  // of a page
	seen []bool // by number: each has one place
}

// What is in pages, which have the order of bytes of nearly all machines.
const (
	pageHeader    = 16 // number, flags, count, how many pages follow that belong to it
	pageElement   = 16 // of a branch: offset, length of the key, page; of a leaf: flags, offset, length of key and value
	branchPage    = 1
	leafPage      = 2
	bucketElement = 1
	bucketHeader  = 16 // page, or 0 for one that is in the value itself, and a counter
	maxLevels     = 4 * maxDepth
)

// checkPages looks at all pages that are in use.
func checkPages(file string, db *bbolt.DB, tx *bbolt.Tx) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if tx.Size() > info.Size() {
		return fmt.Errorf("the file is damaged: it should have %d bytes and has %d", tx.Size(), info.Size())
	}
	size := int64(db.Info().PageSize)
	p := &pages{file: f, size: size, seen: make([]bool, tx.Size()/size)}
	if err := p.page(uint64(tx.Cursor().Bucket().Root()), bounds{}, 0); err != nil {
		return fmt.Errorf("the file is damaged: %w", err)
	}
	return nil
}

// bounds are between which keys those of a page lie; nil for none.
type bounds struct{ least, below []byte }

func (b bounds) hold(key []byte) bool {
	return bytes.Compare(key, b.least) >= 0 && (b.below == nil || bytes.Compare(key, b.below) < 0)
}

// page looks at a page and those below it.
func (p *pages) page(id uint64, keys bounds, level int) error {
	if id < 2 || id >= uint64(len(p.seen)) {
		return fmt.Errorf("there is no page %d", id)
	}
	head := make([]byte, pageHeader)
	if _, err := p.file.ReadAt(head, int64(id)*p.size); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint64(head); got != id {
		return fmt.Errorf("page %d says that it is page %d", id, got)
	}
	more := uint64(binary.LittleEndian.Uint32(head[12:]))
	if more >= uint64(len(p.seen))-id {
		return fmt.Errorf("page %d is longer than the file", id)
	}
	for i := id; i <= id+more; i++ {
		if p.seen[i] {
			return fmt.Errorf("page %d has two places", i)
		}
		p.seen[i] = true
	}
	text := make([]byte, int64(more+1)*p.size)
	if _, err := p.file.ReadAt(text, int64(id)*p.size); err != nil {
		return err
	}
	if err := p.elements(text, keys, level, false); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// element is one of a page: its key with a value, or the page where it begins.
type element struct {
	key, value []byte
	page       uint64
	bucket     bool
}

// elements looks at what is in a page, which may be one inside of a value.
func (p *pages) elements(text []byte, keys bounds, level int, inside bool) error {
	if level > maxLevels {
		return errors.New("pages lie too deep")
	}
	branch := false
	switch flags := binary.LittleEndian.Uint16(text[8:]); {
	case flags == branchPage && !inside:
		branch = true
	case flags != leafPage:
		return errors.New("it is of an unknown sort")
	}
	n := int(binary.LittleEndian.Uint16(text[10:]))
	if pageHeader+n*pageElement > len(text) || branch && n == 0 {
		return errors.New("it cannot have as many keys as it says")
	}
	all := make([]element, n)
	for i := range all {
		var err error
		if all[i], err = elementAt(text[pageHeader+i*pageElement:], branch); err != nil {
			return err
		}
		if !keys.hold(all[i].key) || i > 0 && bytes.Compare(all[i-1].key, all[i].key) >= 0 {
			return errors.New("its keys are not in order")
		}
	}
	for i, e := range all {
		below := keys.below
		if i+1 < n {
			below = all[i+1].key
		}
		var err error
		switch {
		case branch:
			err = p.page(e.page, bounds{e.key, below}, level+1)
		case e.bucket:
			err = p.bucket(e.value, level+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// elementAt is one of which this is the description, followed by all that is behind it.
func elementAt(text []byte, branch bool) (e element, err error) {
	field := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(text[4*i:])) }
	var at, key, value uint64
	if branch {
		at, key, e.page = field(0), field(1), binary.LittleEndian.Uint64(text[8:])
	} else {
		at, key, value, e.bucket = field(1), field(2), field(3), field(0)&bucketElement != 0
	}
	if at < pageElement || at+key+value > uint64(len(text)) {
		return e, errors.New("a key or value is longer than the page")
	}
	e.key, e.value = text[at:at+key], text[at+key:at+key+value]
	return e, nil
}

// bucket looks at one that is a value.
func (p *pages) bucket(value []byte, level int) error {
	if len(value) < bucketHeader {
		return errors.New("a bucket is none")
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return p.page(root, bounds{}, level)
	}
	if len(value) < bucketHeader+pageHeader {
		return errors.New("a bucket is none")
	}
	return p.elements(value[bucketHeader:], bounds{}, level, true)
}
