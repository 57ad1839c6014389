package rest

// Memo is a place in every request for something that handlers and columns
// compute once. The zero value is ready; each is a place of its own.
type Memo[T any] struct {
	_ byte // so that no two have one address
}

// Of returns what the request keeps, if anything.
func (m *Memo[T]) Of(c *Call) (kept T, ok bool) {
	kept, ok = c.memos[m].(T)
	return kept, ok
}

// Keep keeps something for the rest of the request.
func (m *Memo[T]) Keep(c *Call, v T) {
	if c.memos == nil {
		c.memos = map[any]any{}
	}
	c.memos[m] = v
}
