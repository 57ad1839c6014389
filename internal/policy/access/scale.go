package access

import (
	"math/bits"
	"slices"

	"netkeep.internal/internal/data/state/cow"
)

// scale weighs what people gain against what they lose. It looks at nothing but
// the services that are at stake: those that move for anybody, though they may
// be given by another policy as well. They have a bit each, side by side,
// because there is much to be weighed.
type scale struct {
	services           []uint32 // at stake, by ordinal
	bit                []uint32 // of a service, by its ordinal
	atStake            *cow.Bitmap
	came, went, stayed []uint64
}

// weight is a set of services that are at stake.
type weight struct {
	few  []uint32 // bits,
	many []uint64 // or words of them, whichever is shorter
}

func (w weight) none() bool { return len(w.few)+len(w.many) == 0 }

func newScale(atStake *cow.Bitmap) *scale {
	s := &scale{services: atStake.ToArray(), atStake: atStake}
	if atStake.IsEmpty() {
		return s
	}
	s.bit = make([]uint32, atStake.Maximum()+1)
	for i, ord := range s.services {
		s.bit[ord] = uint32(i)
	}
	words := (len(s.services) + 63) / 64
	s.came, s.went, s.stayed = make([]uint64, words), make([]uint64, words), make([]uint64, words)
	return s
}

// weigh returns those of the services that are at stake.
func (s *scale) weigh(services *cow.Bitmap) (w weight) {
	n := services.AndCardinality(s.atStake)
	if n == 0 {
		return w
	}
	common := services.Clone()
	common.And(s.atStake)
	if n < uint64(len(s.came)) {
		for it := common.Iterator(); it.HasNext(); {
			w.few = append(w.few, s.bit[it.Next()])
		}
		return w
	}
	w.many = make([]uint64, len(s.came))
	for it := common.Iterator(); it.HasNext(); {
		set(w.many, s.bit[it.Next()])
	}
	return w
}

func set(words []uint64, bit uint32) { words[bit/64] |= 1 << (bit % 64) }

// put puts what the gifts of a type give upon one side of the scale.
func put(side []uint64, gifts []*gift, typ string) {
	clear(side)
	for _, g := range gifts {
		if g.typ != typ {
			continue
		}
		for i, word := range g.weight.many {
			side[i] |= word
		}
		for _, bit := range g.weight.few {
			set(side, bit)
		}
	}
}

// load puts upon the scale what came, went and stayed for somebody. It reports
// whether there is anything to weigh.
func (s *scale) load(p *person, typ string) bool {
	moves := func(g *gift) bool { return g.typ == typ }
	if !slices.ContainsFunc(p.came, moves) && !slices.ContainsFunc(p.went, moves) {
		return false
	}
	put(s.came, p.came, typ)
	put(s.went, p.went, typ)
	put(s.stayed, p.stayed, typ)
	return true
}

// balance counts what somebody gains and loses.
func (s *scale) balance(p *person) (b balance) {
	for _, typ := range types {
		if !s.load(p, typ) {
			continue
		}
		for i, came := range s.came {
			b.gained += bits.OnesCount64(came &^ s.went[i] &^ s.stayed[i])
			b.lost += bits.OnesCount64(s.went[i] &^ came &^ s.stayed[i])
		}
	}
	return b
}

// sets returns the services that somebody gains and loses.
func (s *scale) sets(p *person, typ string) (gained, lost *cow.Bitmap) {
	gained, lost = new(cow.Bitmap), new(cow.Bitmap)
	if !s.load(p, typ) {
		return gained, lost
	}
	for i, ord := range s.services {
		word, bit := i/64, uint64(1)<<(i%64)
		switch came, went := s.came[word]&bit != 0, s.went[word]&bit != 0; {
		case s.stayed[word]&bit != 0 || came == went:
		case came:
			gained.Add(ord)
		default:
			lost.Add(ord)
		}
	}
	return gained, lost
}
