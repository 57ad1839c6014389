package cow

import (
	"slices"
	"sort"
	"strings"
)

// Texts is an ordered set of texts that can be searched for those with a part: they lie
// one behind the other in leaves, so that to look into a million of them is to read some
// megabytes from one end to the other.
type Texts struct {
	tree Tree[*leaf]
	n    int
}

// leaf is texts from one on until the next leaf begins. It is never written.
type leaf struct {
	low   string // no text is before it, and none of the leaf before is behind it
	exact packed
	lower *packed // the same in lower case; nil if they are that
}

// How many bytes a leaf has at most if it has several texts, is filled with, and has at
// least if that of before has room for them.
const (
	leafMost  = 4096
	leafUsual = leafMost * 3 / 4
	leafLeast = leafMost / 4
)

// NewTexts returns an empty set.
func NewTexts() *Texts {
	t := &Texts{tree: NewTree(func(a, b *leaf) bool { return a.low < b.low })}
	t.tree.Set(&leaf{})
	return t
}

// TextsOf returns a set of texts that come in order, each once.
func TextsOf(texts func(yield func(string) bool)) *Texts {
	t := NewTexts()
	var some []string
	size := 0
	flush := func() {
		l := leafOf(some)
		if t.n > 0 {
			l.low = some[0]
		}
		t.tree.Set(l)
		t.n += len(some)
		some, size = some[:0], 0
	}
	texts(func(s string) bool {
		if size+len(s) > leafUsual && len(some) > 0 {
			flush()
		}
		some, size = append(some, s), size+len(s)
		return true
	})
	if len(some) > 0 {
		flush()
	}
	return t
}

// Copy returns texts that may be written without the original noticing.
func (t *Texts) Copy() *Texts { return &Texts{t.tree.Copy(), t.n} }

// Len is how many texts there are.
func (t *Texts) Len() int { return t.n }

// Has reports whether a text is in the set.
func (t *Texts) Has(s string) bool {
	_, has := t.leaf(s).exact.find(s)
	return has
}

// Add puts a text into the set.
func (t *Texts) Add(s string) {
	l := t.leaf(s)
	i, has := l.exact.find(s)
	if has {
		return
	}
	t.n++
	more := l.with(i, s)
	if n := len(more.exact.ends); n > 1 && len(more.exact.text) > leafMost {
		texts := more.texts()
		right := leafOf(texts[n/2:])
		right.low = texts[n/2]
		t.tree.Set(right)
		more = leafOf(texts[:n/2])
		more.low = l.low
	}
	t.tree.Set(more)
}

// Remove takes a text out of the set.
func (t *Texts) Remove(s string) {
	l := t.leaf(s)
	i, has := l.exact.find(s)
	if !has {
		return
	}
	t.n--
	less := l.without(i)
	before, size := t.before(l), len(less.exact.text)
	if before != nil && (size == 0 || size < leafLeast && len(before.exact.text)+size <= leafUsual) {
		both := leafOf(append(before.texts(), less.texts()...))
		both.low = before.low
		t.tree.Delete(l)
		less = both
	}
	t.tree.Set(less)
}

// leaf is where a text is if it is in the set.
func (t *Texts) leaf(s string) (at *leaf) {
	t.tree.Until(&leaf{low: s}, func(l *leaf) bool {
		at = l
		return false
	})
	return at
}

// before is the leaf before one, nil if that is the first.
func (t *Texts) before(l *leaf) (before *leaf) {
	t.tree.Until(l, func(at *leaf) bool {
		before = at
		return at == l
	})
	if before == l {
		return nil
	}
	return before
}

// With yields the texts that have a part in them, in order or, if down, in reverse. If
// folded, both are looked at as if they were in lower case.
func (t *Texts) With(part string, folded, down bool, yield func(string) bool) {
	if folded {
		part = strings.ToLower(part)
	}
	var found []int
	look := func(l *leaf) bool {
		in := &l.exact
		if folded && l.lower != nil {
			in = l.lower
		}
		found = in.with(part, found[:0])
		if down {
			slices.Reverse(found)
		}
		for _, i := range found {
			if !yield(l.exact.at(i)) {
				return false
			}
		}
		return true
	}
	if down {
		t.tree.BackwardFrom(0)(look)
	} else {
		t.tree.All()(look)
	}
}

func leafOf(texts []string) *leaf {
	l := &leaf{exact: pack(texts)}
	if low := strings.ToLower(l.exact.text); low != l.exact.text {
		lower := make([]string, len(texts))
		for i, s := range texts {
			lower[i] = strings.ToLower(s)
		}
		p := pack(lower)
		l.lower = &p
	}
	return l
}

// with is the leaf and a text before the one at i.
func (l *leaf) with(i int, s string) *leaf {
	more := &leaf{low: l.low, exact: l.exact.insert(i, s)}
	lower := strings.ToLower(s)
	if l.lower == nil && lower == s {
		return more
	}
	of := &l.exact
	if l.lower != nil {
		of = l.lower
	}
	p := of.insert(i, lower)
	more.lower = &p
	return more
}

// without is the leaf less the text at i.
func (l *leaf) without(i int) *leaf {
	less := &leaf{low: l.low, exact: l.exact.remove(i)}
	if l.lower != nil {
		p := l.lower.remove(i)
		less.lower = &p
	}
	return less
}

func (l *leaf) texts() []string {
	texts := make([]string, len(l.exact.ends))
	for i := range texts {
		texts[i] = l.exact.at(i)
	}
	return texts
}

// packed is texts one behind the other, and where each of them ends.
type packed struct {
	text string
	ends []uint32
}

func pack(texts []string) packed {
	p := packed{strings.Join(texts, ""), make([]uint32, len(texts))}
	end := 0
	for i, s := range texts {
		end += len(s)
		p.ends[i] = uint32(end)
	}
	return p
}

func (p *packed) begin(i int) int {
	if i == 0 {
		return 0
	}
	return int(p.ends[i-1])
}

func (p *packed) at(i int) string { return p.text[p.begin(i):p.ends[i]] }

// find is where a text is or would be, among texts that are in order.
func (p *packed) find(s string) (int, bool) {
	i := sort.Search(len(p.ends), func(i int) bool { return p.at(i) >= s })
	return i, i < len(p.ends) && p.at(i) == s
}

func (p *packed) insert(i int, s string) packed {
	at := p.begin(i)
	ends := make([]uint32, len(p.ends)+1)
	copy(ends, p.ends[:i])
	ends[i] = uint32(at + len(s))
	for j := i; j < len(p.ends); j++ {
		ends[j+1] = p.ends[j] + uint32(len(s))
	}
	return packed{p.text[:at] + s + p.text[at:], ends}
}

func (p *packed) remove(i int) packed {
	begin, end := p.begin(i), int(p.ends[i])
	ends := make([]uint32, len(p.ends)-1)
	copy(ends, p.ends[:i])
	for j := i + 1; j < len(p.ends); j++ {
		ends[j-1] = p.ends[j] - uint32(end-begin)
	}
	return packed{p.text[:begin] + p.text[end:], ends}
}

// with appends the numbers of the texts that have a part in them. What lies across the end
// of a text is in none.
func (p *packed) with(part string, found []int) []int {
	for i, from := 0, 0; ; {
		at := strings.Index(p.text[from:], part)
		if at < 0 {
			return found
		}
		from += at
		for i < len(p.ends) && int(p.ends[i]) <= from {
			i++
		}
		switch {
		case i == len(p.ends):
			return found
		case from+len(part) <= int(p.ends[i]):
			found = append(found, i)
			from = int(p.ends[i])
		default:
			from++
		}
	}
}
