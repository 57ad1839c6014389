package audit_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// stored is what the store has of some writes: ten, of two entries each.
func stored(t *testing.T) *storetest.Memory {
	t.Helper()
	memory := storetest.NewMemory()
	s := open(t, memory.Another())
	defer s.Close()
	for i := range 10 {
		must(t, s.Update(t.Context(), ann, func(tx *state.Tx) error {
			for _, name := range []string{"a", "b"} {
				name = fmt.Sprint(name, i)
				if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, TerminatorStrategy: "random"}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return memory
}

// rewrite changes the lines of the block with the entry of a number.
func rewrite(t *testing.T, m *storetest.Memory, number int64, change func(lines []string) []string) {
	t.Helper()
	key := "+audit-block/" + audit.ID(number)
	rec, ok, err := m.Get(t.Context(), key)
	if err != nil || !ok {
		t.Fatal(key, ok, err)
	}
	var block map[string]any
	must(t, json.Unmarshal(rec.Value, &block))
	lines, err := base64.StdEncoding.DecodeString(block["lines"].(string))
	must(t, err)
	changed := change(strings.Split(strings.TrimSuffix(string(lines), "\n"), "\n"))
	block["lines"] = base64.StdEncoding.EncodeToString([]byte(strings.Join(changed, "\n") + "\n"))
	value, err := json.Marshal(block)
	must(t, err)
	put(t, m, store.Op{Key: key, Value: value, Prev: store.Any})
}

func put(t *testing.T, m *storetest.Memory, ops ...store.Op) {
	t.Helper()
	_, err := m.Put(t.Context(), store.Head{}, ops)
	must(t, err)
}

// TestVerify tampers with the log in every way: a check finds out, and says where.
func TestVerify(t *testing.T) {
	block := func(number int64) string { return "+audit-block/" + audit.ID(number) }
	other := func(line string) string { return strings.Replace(line, `"ann"`, `"bob"`, 1) }
	tests := map[string]struct {
		tamper func(t *testing.T, m *storetest.Memory)
		want   string
	}{
		"nothing": {func(*testing.T, *storetest.Memory) {}, ""},
		"altered": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 5, func(l []string) []string { return []string{other(l[0]), l[1]} })
		}, "5-5 not as written"},
		"altered last": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 19, func(l []string) []string { return []string{l[0], other(l[1])} })
		}, "20-20 not as written"},
		"altered first": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 1, func(l []string) []string { return []string{other(l[0]), l[1]} })
		}, "1-1 not as written"},
		"two in a row": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 5, func(l []string) []string { return []string{other(l[0]), other(l[1])} })
		}, "5-6 not as written"},
		"no entry": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 5, func(l []string) []string { return []string{"{", l[1]} })
		}, "5-5 not as written"},
		"moved": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 5, func(l []string) []string { return []string{l[1], l[0]} })
		}, "5-6 not as written"},
		"cut":           {func(t *testing.T, m *storetest.Memory) { rewrite(t, m, 5, func(l []string) []string { return l[:1] }) }, "6-6 missing"},
		"cut in front":  {func(t *testing.T, m *storetest.Memory) { rewrite(t, m, 5, func(l []string) []string { return l[1:] }) }, "5-5 not as written, 6-6 missing"},
		"removed":       {func(t *testing.T, m *storetest.Memory) { put(t, m, store.Op{Key: block(7), Prev: store.Any}) }, "7-8 missing"},
		"first removed": {func(t *testing.T, m *storetest.Memory) { put(t, m, store.Op{Key: block(1), Prev: store.Any}) }, "1-2 missing"},
		"last removed":  {func(t *testing.T, m *storetest.Memory) { put(t, m, store.Op{Key: block(19), Prev: store.Any}) }, "19-20 missing"},
		"all removed": {func(t *testing.T, m *storetest.Memory) {
			for n := int64(1); n < 20; n += 2 {
				put(t, m, store.Op{Key: block(n), Prev: store.Any})
			}
		}, "1-20 missing"},
		"no block": {func(t *testing.T, m *storetest.Memory) {
			put(t, m, store.Op{Key: block(7), Value: []byte("{"), Prev: store.Any})
		}, "7-8 missing"},
		"swapped": {func(t *testing.T, m *storetest.Memory) {
			one, _, err := m.Get(t.Context(), block(3))
			must(t, err)
			two, _, err := m.Get(t.Context(), block(9))
			must(t, err)
			swap := func(value []byte, from, to int64) []byte {
				return bytes.Replace(value, []byte(audit.ID(from)), []byte(audit.ID(to)), 1)
			}
			put(t, m, store.Op{Key: block(3), Value: swap(two.Value, 9, 3), Prev: store.Any}, store.Op{Key: block(9), Value: swap(one.Value, 3, 9), Prev: store.Any})
		}, "3-4 not as written, 9-10 not as written"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			memory := stored(t)
			tt.tamper(t, memory)
			s := open(t, memory.Another())
			defer s.Close()
			l := &audit.Log{State: s}
			v, err := l.Verify(t.Context())
			must(t, err)
			if got := said(v.Flaws); got != tt.want || v.First != 1 || v.Last != 20 {
				t.Errorf("it says %q, want %q; %+v", got, tt.want, v)
			}
			if got, _ := inParts(t, l, 1); got != tt.want {
				t.Errorf("part by part it says %q, want %q", got, tt.want)
			}
		})
	}
}

func said(flaws []audit.Flaw) string {
	var all []string
	for _, f := range flaws {
		all = append(all, fmt.Sprintf("%d-%d %s", f.From, f.To, f.What))
	}
	return strings.Join(all, ", ")
}

// inParts is what is said of the log when so many bytes are read at a time at least, and how
// many entries were read each time.
func inParts(t *testing.T, l *audit.Log, most int64) (flaws string, found []int64) {
	t.Helper()
	var all []audit.Flaw
	for at := (audit.Place{Next: 1}); ; {
		v, next, err := l.VerifyPart(t.Context(), at, most)
		must(t, err)
		all, found = append(all, v.Flaws...), append(found, v.Found)
		if next == (audit.Place{}) {
			return said(all), found
		}
		if next.Next <= at.Next {
			t.Fatalf("after %+v it goes on from %+v", at, next)
		}
		at = next
	}
}

// TestVerifyInParts reads a log a few entries at a time: what one request reads does not
// grow with the log. What follows another digest than that of the part before, or was there
// and is no more, is found.
func TestVerifyInParts(t *testing.T) {
	c := &counting{Store: storetest.NewMemory()}
	s := open(t, c)
	defer s.Close()
	write(t, s, 1100)
	k := &audit.Keeper{Log: &audit.Log{State: s}, Age: time.Hour, Entries: 1_000_000, Now: time.Now}
	must(t, k.Keep(t.Context()))
	c.times = 0
	v, err := k.Verify(t.Context())
	must(t, err)
	if c.times > 4 || v.Found != 1100 {
		t.Errorf("%d entries are read in %d times, each of which waits for the store", v.Found, c.times)
	}
	flaws, found := inParts(t, k.Log, 5000)
	sum := int64(0)
	for _, n := range found {
		if sum += n; n > 128 { // a packed block
			t.Errorf("%d entries are read at a time", n)
		}
	}
	if flaws != "" || sum != 1100 || len(found) < 20 {
		t.Errorf("it says %q of %d entries in %d parts", flaws, sum, len(found))
	}
	_, next, err := k.VerifyPart(t.Context(), audit.Place{}, 5000)
	must(t, err)
	for name, tt := range map[string]struct {
		at   audit.Place
		want string
	}{
		"as it was":          {next, ""},
		"of another digest":  {audit.Place{Next: next.Next, Follows: "another"}, fmt.Sprintf("%d-%d not as written", next.Next-1, next.Next-1)},
		"of an unknown one":  {audit.Place{Next: next.Next}, ""},
		"at the end":         {audit.Place{Next: 1101, Follows: "another"}, "1100-1100 not as written"},
		"of more than there": {audit.Place{Next: 1201, Follows: "another"}, "1101-1200 missing"},
	} {
		v, _, err := k.VerifyPart(t.Context(), tt.at, 1<<30)
		must(t, err)
		if got := said(v.Flaws); got != tt.want {
			t.Errorf("%s: it says %q, want %q", name, got, tt.want)
		}
	}
}

// alter changes members of the packed block of an entry.
func alter(t *testing.T, m *storetest.Memory, number int64, change func(block map[string]any)) {
	t.Helper()
	key := "+audit-block/" + audit.ID(number)
	rec, ok, err := m.Get(t.Context(), key)
	if err != nil || !ok {
		t.Fatal(key, ok, err)
	}
	var block map[string]any
	must(t, json.Unmarshal(rec.Value, &block))
	if text := func(name string) bool { v, _ := block[name].(string); return v != "" }; !text("deflated") || !text("filed") {
		t.Fatalf("%s is not packed", key)
	}
	change(block)
	value, err := json.Marshal(block)
	must(t, err)
	put(t, m, store.Op{Key: key, Value: value, Prev: store.Any})
}

// spoil makes a packed block one that cannot be inflated.
func spoil(t *testing.T, m *storetest.Memory, number int64) {
	t.Helper()
	alter(t, m, number, func(block map[string]any) {
		block["deflated"], block["filed"] = base64.StdEncoding.EncodeToString([]byte("this is not DEFLATE")), ""
	})
}

// TestMisfiled has blocks that tell wrongly what is in them: who reads the entries to
// check them finds out, and what makes no sense is not believed.
func TestMisfiled(t *testing.T) {
	memory := storetest.NewMemory()
	s := open(t, memory)
	defer s.Close()
	write(t, s, 1100)
	k := &audit.Keeper{Log: &audit.Log{State: s}, Age: time.Hour, Entries: 1_000_000, Now: time.Now}
	must(t, k.Keep(t.Context()))
	blocks := keys(t, memory)
	second, third, fourth := numberIn(t, blocks[1]), numberIn(t, blocks[2]), numberIn(t, blocks[3])
	var other any
	alter(t, memory, third, func(block map[string]any) { other = block["filed"] })
	alter(t, memory, second, func(block map[string]any) { block["filed"] = other })
	alter(t, memory, third, func(block map[string]any) { block["filed"] = base64.StdEncoding.EncodeToString([]byte("nonsense")) })
	alter(t, memory, fourth, func(block map[string]any) {
		filed, err := base64.StdEncoding.DecodeString(block["filed"].(string))
		must(t, err)
		block["filed"] = base64.StdEncoding.EncodeToString(filed[:len(filed)/2])
	})
	v, err := k.Verify(t.Context())
	must(t, err)
	if want := []audit.Flaw{{From: second, To: third - 1, What: "not filed as written"}}; !slices.Equal(v.Flaws, want) || v.Found != 1100 {
		t.Errorf("the log is %+v", v)
	}
	l := &audit.Log{State: s}
	for n, want := range map[int64]int64{second + 5: 0, third + 5: 1, fourth + 5: 1} {
		if got := asks(t, l, fmt.Sprintf("targetName = %q", fmt.Sprint("web ", n-1))); got != want {
			t.Errorf("entry %d is found %d times, want %d", n, got, want)
		}
	}
}

// TestUnreadable has a block that cannot be inflated: lists go on without it, in all
// orders and whoever asked before, and a check says where it is.
func TestUnreadable(t *testing.T) {
	memory := storetest.NewMemory()
	s := open(t, memory)
	defer s.Close()
	write(t, s, 2600)
	k := &audit.Keeper{Log: &audit.Log{State: s}, Age: time.Hour, Entries: 1_000_000, Now: time.Now}
	must(t, k.Keep(t.Context()))
	before := &audit.Log{State: s}
	if n := asks(t, before, `event = "updated" limit none`); n != 2599 {
		t.Fatalf("%d entries match", n)
	}
	blocks := keys(t, memory)
	first, last := numberIn(t, blocks[1]), numberIn(t, blocks[2])-1
	spoil(t, memory, first)
	for _, l := range []*audit.Log{before, {State: s}} {
		for text, want := range map[string]int64{
			fmt.Sprintf("number >= %d and number <= %d", first, last):                            0,
			fmt.Sprintf("number >= %d and number <= %d sort by number desc", first-1, last):      1,
			fmt.Sprintf("number = %d", last):                                                     0,
			fmt.Sprintf(`number <= %d and targetId contains "w" and tags.x = null`, last+1):      first,
			fmt.Sprintf(`number <= %d and targetId contains "w" sort by createdAt desc`, last+1): first,
			`event = "updated" limit none`:                                                       2599 - (last - first + 1),
			fmt.Sprintf(`targetId = "web" sort by actorName skip %d limit 1`, first):             1,
			fmt.Sprintf("skip %d limit 3", first):                                                0,
			fmt.Sprintf("sort by number desc skip %d limit 3", 2600-last):                        0,
		} {
			if got := asks(t, l, text); got != want && got != min(want, 10) {
				t.Errorf("%s: %d, want %d", text, got, want)
			}
		}
		if _, ok, err := l.Lookup(t.Context(), audit.ID(last)); ok || err != nil {
			t.Errorf("it is found (%v)", err)
		}
	}
	v, err := k.Verify(t.Context())
	must(t, err)
	if want := []audit.Flaw{{From: first, To: last, What: "not readable"}}; !slices.Equal(v.Flaws, want) {
		t.Errorf("the log is %+v", v)
	}
}

// asks returns how many entries an answer has.
func asks(t *testing.T, l *audit.Log, text string) int64 {
	t.Helper()
	q, err := filter.Compile(model.AuditEntries.Symbols, text)
	must(t, err)
	recs, _, err := l.Query(t.Context(), q, q.Page(nil, nil))
	must(t, err)
	return int64(len(recs))
}

func numberIn(t *testing.T, key string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimPrefix(key, "+audit-block/"), 10, 64)
	must(t, err)
	return n
}
