package link

import (
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Change is what somebody who runs the network says of a link; what is nil stays as it
// is. It holds as long as this controller knows of the link.
type Change struct {
	StaticCost *int64 `json:"staticCost,omitempty"`
	Down       *bool  `json:"down,omitempty"`
}

// Set changes a link, and leads circuits over others if it is down from now on; it
// reports false if there is no link with the id.
func (l *Links) Set(id string, with Change) bool {
	l.mu.Lock()
	old := l.byID[id]
	if old == nil {
		l.mu.Unlock()
		return false
	}
	link := *old
	if with.StaticCost != nil {
		link.StaticCost = *with.StaticCost
	}
	if with.Down != nil {
		link.Down = *with.Down
	}
	link.UpdatedAt = kind.MomentOf(l.Now())
	l.put(&link)
	l.mu.Unlock()
	// Whoever is told of paths may ask for links.
	switch {
	case link.Down && !old.Down:
		l.Lost([]string{id})
	case !link.Down:
		l.Found()
	}
	return true
}

// End has both ends of a link close it. Routers make it again if they still can; it
// reports false if there is no link with the id.
func (l *Links) End(id, reason string) bool {
	l.mu.RLock()
	link := l.byID[id]
	l.mu.RUnlock()
	if link == nil {
		return false
	}
	l.drop([]*model.Link{link}, reason)
	for _, end := range []string{link.SourceID, link.DestID} {
		if r, connected := l.Routers.Get(end); connected {
			closeLink(r, link.ID, link.Iteration)
		}
	}
	return true
}
