package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// columns are what memory has of entries, some thirty bytes of each: a filter is
// judged by them, and only entries that a page shows are read, or those that are in
// doubt. Values that many entries have are held once (known); of others there is a
// digest, which tells whether a value is the one that is asked for, and nothing else.
//
// Columns are of numbers, not of blocks: that entries are packed changes nothing.
type columns struct {
	from, next int64 // numbers of the entries from the one to before the other were looked at
	tip        string
	segments   []*segment // in order; there is none of entries that cannot be read
	tables     []*table   // one for each field
}

const (
	// aSegment is how many entries a segment holds.
	aSegment = 4096
	// maxKnown and maxKnownBytes bound the values of a field that are known.
	maxKnown, maxKnownBytes = 4096, 256 << 10
)

// word stands for a value: one that is known, or the digest of one that is not.
type word uint64

const (
	isKnown    word = 1 << 63
	digestBits      = 39
)

// wordOf is the digest of a value. That another has the same costs a look at an
// entry, or in one of a million questions a total that is one too high.
func wordOf(v filter.Value) word {
	b := append([]byte{byte(v.Type())}, v.String()...)
	sum := sha256.Sum256(b)
	return word(binary.BigEndian.Uint64(sum[:]) >> (64 - digestBits))
}

// field is a field that has a column.
type field struct {
	name   string
	symbol *filter.Symbol[kind.Record]
	// unlike says that nearly every request has a value of its own, which nobody
	// asks for in part.
	unlike bool
}

// fields are those that filters can name, but for the ones that follow from the
// place of an entry, and places are what filters call them.
var fields, places = fieldsOf(model.AuditEntries.Def)

func fieldsOf(d *kind.Def) (all []field, places map[string]int) {
	places = map[string]int{}
	for _, f := range d.Fields {
		switch f.Name {
		case "id", "number", "createdAt", "updatedAt":
			continue
		}
		symbol, ok := d.Symbols.Lookup(f.Name)
		if !ok || symbol.One == nil {
			continue
		}
		for _, name := range append(f.Aliases, f.Name) {
			places[name] = len(all)
		}
		all = append(all, field{name: f.Name, symbol: symbol, unlike: f.Name == "requestId" || f.Name == "apiSessionId"})
	}
	return all, places
}

// table is the values of a field that are known.
type table struct {
	refs   map[filter.Value]word
	values []filter.Value // by reference; those of free ones are of nothing
	free   []word
	bytes  int
}

// word returns what stands for a value from now on.
func (t *table) word(v filter.Value) word {
	if w, ok := t.refs[v]; ok {
		return w
	}
	size := len(v.String())
	if len(t.refs) >= maxKnown || t.bytes+size > maxKnownBytes {
		return wordOf(v)
	}
	if v.Type() == filter.String {
		v = filter.StringValue(strings.Clone(v.String())) // not all of what it was read from
	}
	t.bytes += size
	w := isKnown | word(len(t.values))
	if n := len(t.free); n > 0 {
		w, t.free = t.free[n-1], t.free[:n-1]
		t.values[w&^isKnown] = v
	} else {
		t.values = append(t.values, v)
	}
	t.refs[v] = w
	return w
}

// keep forgets values that are not used.
func (t *table) keep(used func(word) bool) {
	for v, w := range t.refs {
		if !used(w) {
			delete(t.refs, v)
			t.values[w&^isKnown] = filter.Value{}
			t.free = append(t.free, w)
			t.bytes -= len(v.String())
		}
	}
}

// facts are the words of entries that follow each other, as they are added.
type facts struct {
	from  int64
	times []int64  // in microseconds
	words [][]word // by field
}

func newColumns(from int64) *columns {
	c := &columns{from: from, next: from}
	for range fields {
		c.tables = append(c.tables, &table{refs: map[filter.Value]word{}})
	}
	return c
}

// millis is a time as answers show it and queries see it.
func millis(micros int64) int64 { return time.UnixMicro(micros).UnixMilli() }

// fact adds what there is to know of an entry. It reports false if the entry is not
// of its place, which only who reads it can judge.
func (c *columns) fact(f *facts, number int64, e *model.AuditEntry) bool {
	if !placed(number, e) {
		return false
	}
	if len(f.times) == 0 {
		f.from, f.words = number, make([][]word, len(fields))
	}
	f.times = append(f.times, e.CreatedAt.Time().UnixMicro())
	for i, field := range fields {
		f.words[i] = append(f.words[i], c.wordIn(i, field.symbol.One(e)))
	}
	return true
}

func (c *columns) wordIn(place int, v filter.Value) word {
	if fields[place].unlike {
		return wordOf(v)
	}
	return c.tables[place].word(v)
}

// add puts entries behind the last.
func (c *columns) add(f facts) {
	if len(f.times) == 0 {
		return
	}
	for i := 0; i < len(f.times); {
		s := c.open(f.from+int64(i), f.times[i])
		n := s.room(f.times[i:])
		for place := range fields {
			col := &s.columns[place]
			col.open = append(col.open, f.words[place][i:i+n]...)
		}
		s.extend(f.times[i : i+n])
		i += n
	}
	c.next = f.from + int64(len(f.times))
}

// addOpaque puts an entry behind the last that has to be read to be judged.
func (c *columns) addOpaque(number int64) {
	c.seal()
	c.segments = append(c.segments, &segment{span: span{number, number}, opaque: true, sealed: true, same: newSet(1)})
	c.next = number + 1
}

// open returns the segment where an entry has its place.
func (c *columns) open(number, at int64) *segment {
	if n := len(c.segments); n > 0 {
		if s := c.segments[n-1]; !s.sealed && s.to+1 == number && s.room([]int64{at}) == 1 {
			return s
		}
		c.seal()
	}
	s := &segment{span: span{number, number - 1}, base: millis(at), least: millis(at), most: millis(at), columns: make([]column, len(fields))}
	if n := len(c.segments); n > 0 {
		s.end = c.segments[n-1].end
	}
	c.segments = append(c.segments, s)
	return s
}

// seal makes the last segment as small as it can be.
func (c *columns) seal() {
	n := len(c.segments)
	if n == 0 || c.segments[n-1].sealed {
		return
	}
	s := c.segments[n-1]
	s.sealed, s.after, s.same = true, slices.Clip(s.after), slices.Clip(s.same)
	for i := range s.columns {
		s.columns[i].seal()
		for j := range i { // those of who acts are often alike
			if a, b := s.columns[j].codes, s.columns[i].codes; len(b) > 0 && slices.Equal(a, b) {
				s.columns[i].codes = a
				break
			}
		}
	}
}

// forget drops what is about entries before a number.
func (c *columns) forget(before int64) {
	c.from, c.next = max(c.from, before), max(c.next, before)
	kept := slices.IndexFunc(c.segments, func(s *segment) bool { return s.to >= before })
	switch kept {
	case 0:
		return
	case -1:
		kept = len(c.segments)
	}
	c.segments = slices.Clone(c.segments[kept:])
	for place, t := range c.tables {
		used := make([]bool, len(t.values))
		for _, s := range c.segments {
			if s.opaque {
				continue
			}
			for w := range s.columns[place].words() {
				if w&isKnown != 0 {
					used[w&^isKnown] = true
				}
			}
		}
		t.keep(func(w word) bool { return used[w&^isKnown] })
	}
}

// segment is the columns of entries that follow each other.
type segment struct {
	span
	base        int64    // time of the first, in milliseconds as the others
	least, most int64    // of all times
	after       []uint32 // from base on
	same        set      // those of exactly the same time as the one before
	end         int64    // time of the last, in microseconds
	columns     []column
	sealed      bool
	opaque      bool // nothing is known of the entries
}

func (s *segment) len() int { return int(s.to - s.from + 1) }

// room is how many of entries, by their times, fit in.
func (s *segment) room(times []int64) int {
	for i, micros := range times {
		if at := millis(micros); s.len()+i == aSegment || at < s.base || at-s.base > math.MaxUint32 {
			return i
		}
	}
	return len(times)
}

func (s *segment) extend(times []int64) {
	for _, micros := range times {
		i, at := len(s.after), millis(micros)
		s.after = append(s.after, uint32(at-s.base))
		s.least, s.most = min(s.least, at), max(s.most, at)
		if i%64 == 0 {
			s.same = append(s.same, 0)
		}
		if micros == s.end {
			s.same.put(i)
		}
		s.end = micros
	}
	s.to += int64(len(times))
}

// column is the words of one field: as they come while it is open, and then either
// some of which each entry has one, or one of each entry.
type column struct {
	open  []word
	dict  []word
	codes []uint8  // places in dict; if there is neither, it has one word
	wide  []uint16 // the same where there are more
	low   []uint32 // words of entries in two parts
	high  []uint8
}

// knownHigh is in the upper part of a word that is known.
const knownHigh = 1 << (digestBits - 32)

// parts are what is stored of a word for an entry.
func (w word) parts() (low uint32, high uint8) {
	if w&isKnown != 0 {
		return uint32(w), knownHigh
	}
	return uint32(w), uint8(w >> 32)
}

func wordIn(low uint32, high uint8) word {
	if high == knownHigh {
		return isKnown | word(low)
	}
	return word(low) | word(high)<<32
}

// words yields all that there are.
func (c *column) words() iter.Seq[word] {
	return func(yield func(word) bool) {
		for _, w := range slices.Concat(c.open, c.dict) {
			if !yield(w) {
				return
			}
		}
		for i, low := range c.low {
			if !yield(wordIn(low, c.high[i])) {
				return
			}
		}
	}
}

// seal chooses the smallest form.
func (c *column) seal() {
	words := c.open
	places := make(map[word]uint16)
	codes := make([]uint16, len(words))
	for i, w := range words {
		code, ok := places[w]
		if !ok {
			code = uint16(len(c.dict))
			places[w] = code
			c.dict = append(c.dict, w)
		}
		codes[i] = code
	}
	c.open, c.dict = nil, slices.Clip(c.dict)
	switch n := len(c.dict); {
	case n == 1:
	case n <= 1<<8:
		c.codes = make([]uint8, len(words))
		for i, code := range codes {
			c.codes[i] = uint8(code)
		}
	case n <= len(words)/4:
		c.wide = codes
	default:
		c.dict = nil
		c.low, c.high = make([]uint32, len(words)), make([]uint8, len(words))
		for i, w := range words {
			c.low[i], c.high[i] = w.parts()
		}
	}
}
