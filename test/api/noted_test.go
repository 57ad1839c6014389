package api_test

import (
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

// noted is by which writes the records came about whose changes are noted, by
// kind and id. Two that are alike have nothing written between them but what a
// controller writes by itself: what it was told of clients, how it is.
func noted(s *servertest.Server) map[string]store.Rev {
	revs := map[string]store.Rev{}
	for _, d := range model.All.Defs {
		if !d.Noted {
			continue
		}
		for rec, rev := range s.State().Snapshot().Stored(d) {
			revs[d.Name+"/"+rec.Base().ID] = rev
		}
	}
	return revs
}
