package state

import "netkeep/internal/kind"

// Ref names a record, whether it still exists or not.
type Ref struct {
	Def *kind.Def
	ID  string
}
