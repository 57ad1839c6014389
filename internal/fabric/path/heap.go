package path

// heap holds routers that were reached, the nearest first. A router that was
// reached again from nearer is in it twice.
type heap struct{ items []reached }

// reached is a router and how far it was when it was put into the heap.
type reached struct {
	dist label
	at   int32
}

// fanout is how many children an item has: with four the heap is half as deep
// as with two, and they share a line of the cache.
const fanout = 4

func (h *heap) push(r reached) {
	h.items = append(h.items, r)
	i := len(h.items) - 1
	for i > 0 {
		parent := (i - 1) / fanout
		if h.items[parent].dist <= r.dist {
			break
		}
		h.items[i] = h.items[parent]
		i = parent
	}
	h.items[i] = r
}

func (h *heap) pop() (nearest reached, ok bool) {
	size := len(h.items) - 1
	if size < 0 {
		return reached{}, false
	}
	nearest, last := h.items[0], h.items[size]
	h.items = h.items[:size]
	if size > 0 {
		h.sink(last)
	}
	return nearest, true
}

// sink puts an item where the first one was taken from, and then down to where
// it belongs.
func (h *heap) sink(r reached) {
	items, i := h.items, 0
	for {
		first := i*fanout + 1
		if first >= len(items) {
			break
		}
		least := first
		nearest := items[first].dist
		for at, child := range items[first:min(first+fanout, len(items))] {
			if child.dist < nearest {
				least, nearest = first+at, child.dist
			}
		}
		if r.dist <= nearest {
			break
		}
		items[i] = items[least]
		i = least
	}
	items[i] = r
}
