package state

import "netkeep.internal/internal/lang/kind"

// Ref names a record, whether it still exists or not.
type Ref struct {
	Def *kind.Def
	ID  string
}
