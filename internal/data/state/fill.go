package state

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"netkeep.internal/internal/data/state/cow"
)

// fill puts rows into tables that have none, by slot and each id once, as if one were put
// after the other in the order of ids. Nobody reads meanwhile, so trees need not be kept in
// order as they grow: all is sorted once, and they have no more nodes than it takes.
func (s *Snapshot) fill(rows [][]*row) {
	var filling sync.WaitGroup
	for i, t := range s.tables {
		if len(rows[i]) > 0 {
			filling.Go(func() { t.fill(rows[i]) })
		}
	}
	filling.Wait()
}

func (t *table) fill(rows []*row) {
	if byID := func(a, b *row) int { return strings.Compare(a.id, b.id) }; !slices.IsSortedFunc(rows, byID) {
		slices.SortFunc(rows, byID)
	}
	t.rows = cow.TreeOf(rowLess, rows)
	var filling sync.WaitGroup
	for i := range t.indexes {
		filling.Go(func() { t.fillIndex(i, rows) })
	}
	t.fillBits(rows)
	for _, r := range rows {
		t.rank(nil, r)
	}
	filling.Wait()
}

// fillIndex files rows that are in the order of ids.
func (t *table) fillIndex(slot int, rows []*row) {
	t.indexes[slot] = filledIndex(t.def.Indexes[slot], rows)
	if t.texts[slot] != nil {
		t.texts[slot] = cow.TextsOf(t.keysIn(slot))
	}
}

// fillBits numbers rows in their order.
func (t *table) fillBits(rows []*row) {
	if t.bits == nil {
		return
	}
	for i, r := range rows {
		r.ord = uint32(i)
		t.bits.Add(everyone, r.ord)
		t.tag(nil, r)
	}
	t.byOrd = cow.TreeOf(ordLess, rows)
	t.next = uint32(len(rows))
}

// lead is eight bytes of the key of an entry, behind what all keys begin with, as a number,
// and which entry that is.
type lead struct {
	word uint64
	at   uint32
}

// inOrder returns entries that are in the order of ids in that of an index. To compare keys
// is to wait for memory: most differ in what leads have of them.
func inOrder(entries []entry) []entry {
	if len(entries) == 0 {
		return nil
	}
	common := entries[0].key
	for _, e := range entries {
		for !strings.HasPrefix(e.key, common) {
			common = common[:len(common)-1]
		}
	}
	leads := make([]lead, len(entries))
	for i, e := range entries {
		var word [8]byte // a shorter one is no later than one that goes on
		copy(word[:], e.key[len(common):])
		leads[i] = lead{binary.BigEndian.Uint64(word[:]), uint32(i)}
	}
	slices.SortFunc(leads, func(a, b lead) int { return cmp.Or(cmp.Compare(a.word, b.word), cmp.Compare(a.at, b.at)) })
	in := make([]entry, len(entries))
	begin := 0 // of those with the same lead
	for i, l := range leads {
		in[i] = entries[l.at]
		if i+1 == len(leads) || leads[i+1].word != l.word {
			if same := in[begin : i+1]; !slices.IsSortedFunc(same, entryCompare) {
				slices.SortFunc(same, entryCompare)
			}
			begin = i + 1
		}
	}
	return in
}

func entryCompare(a, b entry) int {
	return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.row.id, b.row.id))
}
