package cow_test

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state/cow"
)

// pair is an entry of a test tree: only the key orders it.
type pair struct{ key, value int }

func byKey(a, b pair) bool { return a.key < b.key }

// version is a container and what it must hold.
type version[C, M any] struct {
	it   C
	want M
}

func TestTree(t *testing.T) {
	type trees = version[cow.Tree[pair], map[int]int]
	someKey := rapid.IntRange(0, 300) // enough for trees of several levels
	check := func(t *rapid.T, v trees) {
		keys := slices.Sorted(maps.Keys(v.want))
		var want []pair
		for _, k := range keys {
			want = append(want, pair{k, v.want[k]})
		}
		if got := slices.Collect(v.it.All()); !slices.Equal(got, want) || v.it.Len() != len(want) {
			t.Fatalf("the tree holds %v, length %d, want %v", got, v.it.Len(), want)
		}
		pivot := someKey.Draw(t, "pivot")
		at, found := slices.BinarySearchFunc(want, pivot, func(p pair, k int) int { return cmp.Compare(p.key, k) })
		if got := slices.Collect(func(yield func(pair) bool) { v.it.From(pair{key: pivot}, yield) }); !slices.Equal(got, want[at:]) {
			t.Fatalf("from %d on are %v, want %v", pivot, got, want[at:])
		}
		if got, ok := v.it.Get(pair{key: pivot}); ok != found || ok && got != want[at] {
			t.Fatalf("at %d is %v, %t", pivot, got, ok)
		}
		if got := v.it.Before(pair{key: pivot}); got != at {
			t.Fatalf("%d come before %d, want %d", got, pivot, at)
		}
		if got, ok := v.it.At(at); ok != (at < len(want)) || ok && got != want[at] {
			t.Fatalf("after %d others comes %v, %t", at, got, ok)
		}
		if got, ok := v.it.Min(); ok != (len(want) > 0) || ok && got != want[0] {
			t.Fatalf("the first is %v, %t", got, ok)
		}
		until := at
		if found {
			until++
		}
		back := slices.Clone(want[:until])
		slices.Reverse(back)
		if got := slices.Collect(func(yield func(pair) bool) { v.it.Until(pair{key: pivot}, yield) }); !slices.Equal(got, back) {
			t.Fatalf("from %d backward are %v, want %v", pivot, got, back)
		}
		n := rapid.IntRange(0, len(want)+1).Draw(t, "left out")
		if got := slices.Collect(v.it.AllFrom(n)); !slices.Equal(got, want[min(n, len(want)):]) {
			t.Fatalf("without the first %d are %v, want %v", n, got, want)
		}
		slices.Reverse(want)
		if got := slices.Collect(v.it.BackwardFrom(n)); !slices.Equal(got, want[min(n, len(want)):]) {
			t.Fatalf("backward without the first %d are %v, want %v", n, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		now := trees{cow.NewTree(byKey), map[int]int{}}
		var old []trees
		t.Repeat(map[string]func(*rapid.T){
			"fill": func(t *rapid.T) {
				for range 50 {
					k, v := someKey.Draw(t, "key"), rapid.Int().Draw(t, "value")
					now.it.Set(pair{k, v})
					now.want[k] = v
				}
			},
			"delete": func(t *rapid.T) {
				for range 20 {
					k := someKey.Draw(t, "key")
					now.it.Delete(pair{key: k})
					delete(now.want, k)
				}
			},
			"fill in order": func(t *rapid.T) {
				k := someKey.Draw(t, "first key")
				for range 40 {
					now.it.Set(pair{k, k})
					now.want[k] = k
					k++
				}
			},
			"make anew": func(t *rapid.T) {
				var items []pair
				for _, k := range slices.Sorted(maps.Keys(now.want)) {
					items = append(items, pair{k, now.want[k]})
				}
				now.it = cow.TreeOf(byKey, items)
			},
			"write the original": func(t *rapid.T) {
				old = append(old, trees{now.it.Copy(), maps.Clone(now.want)})
			},
			"copy": func(*rapid.T) {
				old = append(old, now)
				now = trees{now.it.Copy(), maps.Clone(now.want)}
			},
			"drop the copy": func(t *rapid.T) { // as when a write is refused
				if len(old) > 0 {
					last := old[len(old)-1]
					now = trees{last.it.Copy(), maps.Clone(last.want)}
				}
			},
			"": func(t *rapid.T) { check(t, now) },
		})
		for _, v := range old {
			check(t, v)
		}
	})
}

// TestTreeOf holds trees that were made at once, of every size up to three levels, to what they
// were made of.
func TestTreeOf(t *testing.T) {
	var items []pair
	for n := range 5000 {
		tree := cow.TreeOf(byKey, items)
		if got := slices.Collect(tree.All()); !slices.Equal(got, items) || tree.Len() != n {
			t.Fatalf("of %d items there are %d", n, len(got))
		}
		if at, ok := tree.At(n / 2); n > 0 && (!ok || at.key != n/2) {
			t.Fatalf("after %d of %d comes %v, %t", n/2, n, at, ok)
		}
		items = append(items, pair{n, -n})
	}
}

func TestBits(t *testing.T) {
	type bits = version[*cow.Bits, map[string]map[uint32]bool]
	someKey := rapid.SampledFrom([]string{"", "red", "blue"})
	someOrd := rapid.OneOf(rapid.Uint32Range(0, 20), rapid.Uint32Range(65530, 65540))
	check := func(t *rapid.T, v bits) {
		var keys []string
		for _, k := range []string{"", "blue", "red"} {
			want := slices.Sorted(maps.Keys(v.want[k]))
			set := v.it.Get(k)
			if len(want) == 0 {
				if set != nil {
					t.Fatalf("%q is an empty bitmap", k)
				}
				continue
			}
			keys = append(keys, k)
			if set == nil || !slices.Equal(set.ToArray(), want) {
				t.Fatalf("%q has %v, want %v", k, set, want)
			}
		}
		if got := slices.Collect(v.it.Keys()); !slices.Equal(got, keys) {
			t.Fatalf("keys are %q, want %q", got, keys)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		now := bits{cow.NewBits(), map[string]map[uint32]bool{"": {}, "red": {}, "blue": {}}}
		var old []bits
		copied := func() {
			old = append(old, now)
			want := map[string]map[uint32]bool{}
			for k, set := range now.want {
				want[k] = maps.Clone(set)
			}
			now = bits{now.it.Copy(), want}
		}
		change := func(t *rapid.T) {
			k, ord := someKey.Draw(t, "key"), someOrd.Draw(t, "ordinal")
			if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				now.it.Remove(k, ord)
				delete(now.want[k], ord)
			} else {
				now.it.Add(k, ord)
				now.want[k][ord] = true
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"change": change,
			"copy":   func(*rapid.T) { copied() },
			"change and copy": func(t *rapid.T) { // unseen, so that changes gather
				for range 30 {
					change(t)
					copied()
				}
			},
			"look": func(t *rapid.T) { check(t, now) },
		})
		check(t, now)
		for _, v := range old {
			check(t, v)
		}
	})
}

// One goroutine copies and writes while others read the originals: the race
// detector must have nothing to say.
func TestReadWhileCopied(t *testing.T) {
	tree, bits := cow.NewTree(byKey), cow.NewBits()
	const n = 1000
	for i := range n {
		tree.Set(pair{i, i})
		bits.Add("all", uint32(i))
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 50 {
				sum := 0
				for p := range tree.All() {
					sum += p.value
				}
				if p, ok := tree.Get(pair{key: 7}); !ok || sum != n*(n-1)/2 || p.value != 7 || bits.Get("all").GetCardinality() != n {
					t.Errorf("a reader sees %d, %v, %d", sum, p, bits.Get("all").GetCardinality())
				}
			}
		})
	}
	for i := range n {
		c, b := tree.Copy(), bits.Copy()
		c.Set(pair{i, 0})
		c.Delete(pair{key: (i * 7) % n})
		b.Remove("all", uint32(i))
		if i%100 == 0 { // two at a time want to see a change
			for range 2 {
				wg.Go(func() {
					if got := b.Get("all").GetCardinality(); got != n-1 {
						t.Errorf("a reader sees %d after a change, want %d", got, n-1)
					}
				})
			}
		}
	}
	wg.Wait()
}
