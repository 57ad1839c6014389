package history

// Kept is how many snapshots are kept.
func (h *History) Kept() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.kept)
}

// SetMost has a snapshot hold no more than so many records of its own.
func (h *History) SetMost(records int) { h.most = records }

// Busy takes all places of those who make snapshots.
func (h *History) Busy() {
	for range builders {
		h.places <- struct{}{}
	}
}

// MostDiffering is how many records of its own a snapshot may hold, and KeptTime how
// long one is kept that nobody asks for.
const (
	MostDiffering = maxDiffering
	KeptTime      = keptTime
)
