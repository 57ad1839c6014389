package history

// Kept is how many snapshots are kept.
func (h *History) Kept() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.kept)
}
