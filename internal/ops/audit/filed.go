package audit

import (
	"encoding/binary"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/model"
)

// filed is what a packed block says of its entries beside them, so that a controller
// that starts has columns without inflating and reading all of the log: for each
// field, the values or digests that there are, and which of them each entry has.
type filed struct {
	times  []int64 // in microseconds
	fields []filedField
}

type filedField struct {
	values  []filter.Value
	digests []word // in place of values
	codes   []int  // of entries, places in one of the two

	last filter.Value // that was added
}

// filedForm is the form of what follows.
const filedForm = 1

// errFiled says that a block tells nothing of its entries, or what is of no use.
var errFiled = errors.New("audit: a block does not tell what is in it")

// filer makes what blocks say of their entries. What it needs for that it uses again
// with the next block, until there is no work.
type filer struct {
	fields []filedField
	refs   []map[filter.Value]int
	times  []byte
	text   []byte
	plain  plain
}

var filers atomic.Pointer[filer]

// file returns what a block is to say of its entries; nothing if one of them is not of
// its place.
func file(lines []line) []byte {
	f := filers.Swap(nil)
	if f == nil {
		f = &filer{fields: make([]filedField, len(fields)), refs: make([]map[filter.Value]int, len(fields))}
	}
	packed := f.file(lines)
	filers.Store(f)
	return packed
}

func (f *filer) file(lines []line) []byte {
	for i := range f.fields {
		f.fields[i].clear()
		clear(f.refs[i])
	}
	f.times = f.times[:0]
	last := int64(0)
	for _, at := range lines {
		entry, err := f.plain.of(at)
		if err != nil || !placed(at.number, entry) {
			return nil
		}
		now := entry.CreatedAt.Time().UnixMicro()
		f.times, last = binary.AppendVarint(f.times, now-last), now
		for i, one := range fields {
			f.fields[i].add(one.symbol.One(entry), one.unlike, &f.refs[i])
		}
	}
	b := binary.AppendUvarint(append(f.text[:0], filedForm), uint64(len(lines)))
	b = append(b, f.times...)
	for i, one := range fields {
		b = f.fields[i].append(appendText(b, one.name), len(lines))
	}
	f.text = b
	packed, _ := quick.deflate(b) // to memory
	return packed
}

// placed reports whether an entry is of its place, as all are that we make.
func placed(number int64, e *model.AuditEntry) bool {
	return e.Number == number && e.ID == ID(number) && e.UpdatedAt == e.CreatedAt && !e.CreatedAt.IsZero() && e.CreatedAt.Time().Nanosecond()%1000 == 0
}

// clear has it hold nothing, and what it held that in.
func (f *filedField) clear() {
	clear(f.values)
	f.values, f.digests, f.codes, f.last = f.values[:0], f.digests[:0], f.codes[:0], filter.Value{}
}

func (f *filedField) add(v filter.Value, unlike bool, refs *map[filter.Value]int) {
	if n := len(f.codes); n > 0 && v == f.last { // as most are
		f.codes = append(f.codes, f.codes[n-1])
		return
	}
	f.last = v
	if *refs == nil {
		*refs = map[filter.Value]int{}
	}
	code, ok := (*refs)[v]
	if !ok {
		code = len(*refs)
		(*refs)[v] = code
		if unlike {
			f.digests = append(f.digests, wordOf(v))
		} else {
			f.values = append(f.values, v)
		}
	}
	f.codes = append(f.codes, code)
}

func (f *filedField) append(b []byte, n int) []byte {
	if len(f.digests) > 0 {
		b = binary.AppendUvarint(append(b, 1), uint64(len(f.digests)))
		for _, w := range f.digests {
			b = append(b, byte(w>>32), byte(w>>24), byte(w>>16), byte(w>>8), byte(w))
		}
	} else {
		b = binary.AppendUvarint(append(b, 0), uint64(len(f.values)))
		for _, v := range f.values {
			b = appendValue(b, v)
		}
	}
	if d := len(f.values) + len(f.digests); d > 1 && d < n { // others need none
		for _, code := range f.codes {
			b = binary.AppendUvarint(b, uint64(code))
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendValue(b []byte, v filter.Value) []byte {
	b = append(b, byte(v.Type()))
	switch v.Type() {
	case filter.String:
		return appendText(b, v.String())
	case filter.Int:
		return binary.AppendVarint(b, v.Int())
	case filter.Float:
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v.Float()))
	case filter.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case filter.Time:
		return binary.AppendVarint(binary.AppendVarint(b, v.Time().Unix()), int64(v.Time().Nanosecond()))
	}
	return b
}

// filedIn reads what a block says of its entries. What a later version says of fields
// that this one does not know is left out; if a field is missing, the block is of no
// use.
func filedIn(b *model.AuditBlock) (filed, error) {
	if len(b.Filed) == 0 {
		return filed{}, errFiled
	}
	plain, err := inflate(b.Filed)
	if err != nil {
		return filed{}, err
	}
	r := &reader{rest: plain}
	n := b.Last - numberOf(b.ID) + 1
	if r.byte() != filedForm || int64(r.uvarint()) != n || n < 1 || n > int64(len(plain)) {
		return filed{}, errFiled
	}
	f := filed{fields: make([]filedField, len(fields))}
	last := int64(0)
	for range n {
		last += r.varint()
		f.times = append(f.times, last)
	}
	seen := 0
	for len(r.rest) > 0 && !r.bad {
		name := r.text()
		one := r.field(int(n))
		for i := range fields {
			if fields[i].name == name && f.fields[i].codes == nil && fields[i].unlike == (one.digests != nil) {
				f.fields[i] = one
				seen++
			}
		}
	}
	if r.bad || seen != len(fields) {
		return filed{}, errFiled
	}
	return f, nil
}

// reader takes what was appended; bad is whether there was something else.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.bad, r.rest = true, nil
		return make([]byte, min(max(n, 0), 8))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte { return r.bytes(1)[0] }

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) text() string { return string(r.bytes(int(min(r.uvarint(), math.MaxInt32)))) }

func (r *reader) value() filter.Value {
	switch filter.Type(r.byte()) {
	case filter.None:
		return filter.Value{}
	case filter.String:
		return filter.StringValue(r.text())
	case filter.Int:
		return filter.IntValue(r.varint())
	case filter.Float:
		return filter.FloatValue(math.Float64frombits(binary.BigEndian.Uint64(r.bytes(8))))
	case filter.Bool:
		return filter.BoolValue(r.byte() != 0)
	case filter.Time:
		return filter.TimeValue(time.Unix(r.varint(), r.varint()))
	}
	r.bad, r.rest = true, nil
	return filter.Value{}
}

func (r *reader) field(n int) (f filedField) {
	digests := r.byte() == 1
	d := int(min(r.uvarint(), uint64(n)+1))
	if d < 1 || d > n {
		r.bad, r.rest = true, nil
		return f
	}
	for range d {
		if digests {
			b := r.bytes(5)
			f.digests = append(f.digests, word(b[0])<<32|word(binary.BigEndian.Uint32(b[1:])))
		} else {
			f.values = append(f.values, r.value())
		}
	}
	f.codes = make([]int, n)
	for i := range f.codes {
		switch {
		case d == n:
			f.codes[i] = i
		case d > 1:
			if f.codes[i] = int(min(r.uvarint(), math.MaxInt32)); f.codes[i] >= d {
				r.bad, f.codes[i] = true, 0
			}
		}
	}
	return f
}

// facts are what is known of the entries from a place on.
func (c *columns) filed(f filed, number int64, from int) facts {
	all := facts{from: number, times: f.times[from:], words: make([][]word, len(fields))}
	for i, one := range f.fields {
		words := one.digests
		for _, v := range one.values {
			words = append(words, c.wordIn(i, v))
		}
		for _, code := range one.codes[from:] {
			all.words[i] = append(all.words[i], words[code])
		}
	}
	return all
}

// tells reports whether an entry is the one that is told of at a place.
func (f filed) tells(i int, e *model.AuditEntry) bool {
	if f.times[i] != e.CreatedAt.Time().UnixMicro() {
		return false
	}
	for k, one := range f.fields {
		v := fields[k].symbol.One(e)
		if one.digests != nil && one.digests[one.codes[i]] != wordOf(v) || one.digests == nil && one.values[one.codes[i]] != v {
			return false
		}
	}
	return true
}
