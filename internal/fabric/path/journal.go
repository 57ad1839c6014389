package path

// journal is the last changes of a network, for trees to catch up with. Who is
// further behind than it reaches starts anew.
type journal struct {
	// revision is that of the last change.
	revision uint64
	// ring holds the change of each revision at its remainder.
	ring []change
}

// change says where something changed: between two routers, or at one and thus
// at all of its links, if the other is none. It does not say what: trees look at
// what there is now.
type change struct{ a, b int32 }

// journalSize is how many changes are kept: 8 bytes each.
const journalSize = 1 << 13

// newJournal starts with revision 1, so that 0 is that of a tree of nothing.
func newJournal() journal {
	return journal{revision: 1, ring: make([]change, journalSize)}
}

func (j *journal) note(c change) {
	j.revision++
	j.ring[j.revision%journalSize] = c
}

// at returns the change of a revision that is still known.
func (j *journal) at(revision uint64) change {
	return j.ring[revision%journalSize]
}
