package state

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/kind"
)

// load replaces memory by what the store holds now. While the store reads on,
// other goroutines decode what has arrived. Once all is there it is filed at once.
func (s *State) load(ctx context.Context) error {
	next := newSnapshot(s.set) // nothing of it is shared yet: it is written in place
	rows := make([][]*row, len(next.tables))
	pages := make(chan *page, pagesAhead)
	var bad []string
	var gathering sync.WaitGroup
	gathering.Go(func() {
		for p := range pages {
			<-p.done
			for _, l := range p.rows {
				slot := next.slots[l.def]
				rows[slot] = append(rows[slot], l.row)
			}
			bad = append(bad, p.bad...)
		}
	})
	p := &page{}
	send := func() {
		p.done = make(chan struct{})
		go p.decode(s)
		pages <- p
		p = &page{}
	}
	var unusable error
	var says []byte // which format the store has
	mark, err := s.store.Load(ctx, func(rec store.Record) error {
		if rec.Key == format.Key {
			says = rec.Value
			unusable = format.Usable(rec.Value)
			return unusable
		}
		if d, id, ok := s.split(rec.Key); ok {
			p.add(d, id, rec)
			if len(p.records) == pageSize {
				send()
			}
		}
		return nil
	})
	send()
	close(pages)
	gathering.Wait()
	s.heed(unusable)
	if err != nil {
		return fmt.Errorf("load the store: %w", err)
	}
	next.fill(rows)
	next.Rev, next.head, next.Time, next.end = mark.Rev, mark.Head, mark.Time, mark.End
	s.fed, s.retry = mark.Rev, nil
	s.format.Store(int64(format.In(says)))
	s.unloaded.end()
	s.unrepeated.end()
	s.unreadable.reset(bad)
	s.publish(Event{Rev: next.Rev, Reset: next, After: next})
	for _, waiting := range s.loaded {
		waiting <- s.fed
	}
	s.loaded = nil
	return nil
}

const (
	pageSize   = 512 // records that are decoded together
	pagesAhead = 4   // pages that wait to be gathered
)

// page is some records on their way into memory.
type page struct {
	defs    []*kind.Def
	ids     []string
	records []store.Record

	done chan struct{} // closed when the rest is there
	rows []loaded
	bad  []string // keys of what cannot be read
}

// loaded is a record that was read.
type loaded struct {
	def *kind.Def
	row *row
}

func (p *page) add(d *kind.Def, id string, rec store.Record) {
	p.defs, p.ids, p.records = append(p.defs, d), append(p.ids, id), append(p.records, rec)
}

func (p *page) decode(s *State) {
	defer close(p.done)
	p.rows = make([]loaded, 0, len(p.records))
	for i, rec := range p.records {
		r, err := s.fold.read(p.defs[i], p.ids[i], rec)
		if err != nil {
			s.opt.Logger.Error("a stored record cannot be read", "key", rec.Key, "error", err)
			p.bad = append(p.bad, rec.Key)
			continue
		}
		p.rows = append(p.rows, loaded{p.defs[i], r})
	}
}

// Encode returns the stored form of a record.
func (s *State) Encode(d *kind.Def, rec kind.Record) ([]byte, error) {
	return d.EncodeSealed(rec, s.opt.Seal)
}

// split tells what a key of the store means. Kinds of a newer version are
// reported once.
func (s *State) split(key string) (d *kind.Def, id string, ok bool) {
	d, id, ok = s.fold.Split(key)
	if !ok && !foreign(key) {
		s.report(key)
	}
	return d, id, ok
}

// report says once of a kind that it is not known.
func (s *State) report(key string) {
	if name, _, _ := strings.Cut(key, "/"); !s.alien[name] {
		s.alien[name] = true
		s.opt.Logger.Warn("the store holds records of an unknown kind", "key", key)
	}
}
