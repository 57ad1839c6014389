package cow_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state/cow"
)

// TestShelves holds sets by key, of which copies are taken and written, to maps.
func TestShelves(t *testing.T) {
	type content = map[string]map[int]int
	type shelves = version[*cow.Shelves[pair], content]
	cloned := func(c content) content {
		all := content{}
		for key, items := range c {
			all[key] = maps.Clone(items)
		}
		return all
	}
	type filed struct {
		key  string
		item pair
	}
	inOrder := func(c content, key string) (items []pair) {
		for _, k := range slices.Sorted(maps.Keys(c[key])) {
			items = append(items, pair{k, c[key][k]})
		}
		return items
	}
	someKey := rapid.SampledFrom([]string{"", "a", "a\x00", "b", "é"})
	someItem := rapid.IntRange(0, 60)
	check := func(t *rapid.T, v shelves) {
		var got, want []filed
		for key, item := range v.it.All() {
			got = append(got, filed{key, item})
		}
		for _, key := range slices.Sorted(maps.Keys(v.want)) {
			for _, item := range inOrder(v.want, key) {
				want = append(want, filed{key, item})
			}
		}
		if !slices.Equal(got, want) || v.it.Len() != len(want) {
			t.Fatalf("there are %v, %d of them, want %v", got, v.it.Len(), want)
		}
		key := someKey.Draw(t, "asked for")
		if got := slices.Collect(v.it.Of(key).All()); !slices.Equal(got, inOrder(v.want, key)) {
			t.Fatalf("under %q are %v, want %v", key, got, inOrder(v.want, key))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		now := shelves{cow.NewShelves(byKey), content{}}
		var old []shelves
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				key := someKey.Draw(t, "key")
				for range 20 {
					item := pair{someItem.Draw(t, "item"), rapid.Int().Draw(t, "value")}
					now.it.Set(key, item)
					if now.want[key] == nil {
						now.want[key] = map[int]int{}
					}
					now.want[key][item.key] = item.value
				}
			},
			"delete": func(t *rapid.T) {
				key := someKey.Draw(t, "key")
				for range 20 {
					item := someItem.Draw(t, "item")
					now.it.Delete(key, pair{key: item})
					delete(now.want[key], item)
				}
			},
			"fill": func(t *rapid.T) {
				key := someKey.Draw(t, "key")
				if len(now.want[key]) > 0 {
					t.Skip("only what has none is filled")
				}
				items := rapid.SliceOfNDistinct(someItem, 0, 40, rapid.ID[int]).Draw(t, "items")
				var pairs []pair
				now.want[key] = map[int]int{}
				for _, item := range items {
					pairs = append(pairs, pair{item, item})
					now.want[key][item] = item
				}
				slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
				now.it.Fill(key, pairs)
			},
			"copy": func(*rapid.T) {
				old = append(old, now)
				now = shelves{now.it.Copy(), cloned(now.want)}
			},
			"write the original": func(*rapid.T) {
				old = append(old, shelves{now.it.Copy(), cloned(now.want)})
			},
			"": func(t *rapid.T) { check(t, now) },
		})
		for _, v := range old {
			check(t, v)
		}
	})
}

// TestShelvesAreRead has readers look at sets while these are copied, and the copies written:
// the race detector finds what copying changes that readers look at.
func TestShelvesAreRead(t *testing.T) {
	s := cow.NewShelves(cmp.Less[int])
	for i := range 1000 {
		s.Set("key", i)
	}
	done := make(chan int)
	go func() {
		n := 0
		for range 200 {
			on := s.Of("key")
			n += on.Len()
			for range on.All() {
				n++
			}
			for range s.All() {
				n++
			}
		}
		done <- n
	}()
	for i := range 200 {
		c := s.Copy()
		c.Set("key", -i)
		c.Delete("key", i)
	}
	if n := <-done; n != 200*3000 {
		t.Errorf("%d items were read, want %d", n, 200*3000)
	}
}
