package manifest

import (
	"iter"
	"sync"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// seeded are the records that every network begins with, by kind and id.
var seeded = sync.OnceValue(func() map[*kind.Def]map[string]bool {
	n := newborn{}
	if err := model.Seed(n); err != nil {
		panic(err) // which the same program would say at every start
	}
	return n
})

// newborn is a network without records that notes which it is given.
type newborn map[*kind.Def]map[string]bool

func (n newborn) Create(d *kind.Def, rec kind.Record) error {
	if n[d] == nil {
		n[d] = map[string]bool{}
	}
	n[d][rec.Base().ID] = true
	return nil
}

func (newborn) Lookup(*kind.Def, string) (kind.Record, bool)           { return nil, false }
func (newborn) Select(*kind.Def, string, string) iter.Seq[kind.Record] { return none }
func (newborn) All(*kind.Def) iter.Seq[kind.Record]                    { return none }
func (newborn) Len(*kind.Def) int                                      { return 0 }
func (newborn) Now() time.Time                                         { return time.Time{} }
func (newborn) NewID() string                                          { return "" }
func (newborn) Edit(*kind.Def, string, func(kind.Record) error) error  { return nil }
func (newborn) Delete(*kind.Def, string) error                         { return nil }

func none(func(kind.Record) bool) {}
