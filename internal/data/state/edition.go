package state

import (
	"weak"

	"netkeep.internal/internal/lang/kind"
)

// Edition stands for the records of a kind as a snapshot has them. Two that are equal have
// the same records, every one of them; it keeps none of them in memory.
type Edition struct{ of weak.Pointer[table] }

// Edition returns that of a kind.
func (s *Snapshot) Edition(d *kind.Def) Edition { return Edition{weak.Make(s.table(d))} }
