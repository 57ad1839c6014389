package fabric_test

import (
	"slices"

	"netkeep.internal/internal/model"
)

// checkView tests that what is shown of routers, links and circuits is what there
// is: who is connected, at this controller, and which links cannot be used since
// an end is away.
func (w *world) checkView() {
	w.t.Helper()
	view, own := w.fabric.View(), w.fabric.ID()
	var here []string
	for _, n := range w.routers {
		if p := model.PresenceOf(view, routerName(n.i)); p.Online != (n.conn != nil) || p.Online == (p.Sync == model.SyncUnknown) {
			w.t.Fatalf("router %d is connected: %v, and shown as %+v", n.i, n.conn != nil, p)
		}
		if n.conn != nil {
			here = append(here, routerName(n.i))
		}
	}
	var shown []string
	for p := range model.Presences.All(view) {
		shown = append(shown, p.ID)
		if p.ControllerID != own || p.CreatedAt.IsZero() || p.UpdatedAt.Before(p.CreatedAt) || p.Version.Version == "" {
			w.t.Fatalf("a router is here as %+v", p)
		}
	}
	if !slices.Equal(shown, here) || view.Len(model.Presences.Def) != len(here) {
		w.t.Fatalf("%v are connected, and %v are shown", here, shown)
	}
	links := 0
	for l := range model.Links.All(view) {
		links++
		usable := slices.Contains(here, l.SourceID) && slices.Contains(here, l.DestID)
		if l.Down == usable || (l.State == model.LinkConnected) != usable || l.ControllerID != own || l.Cost <= l.StaticCost {
			w.t.Fatalf("%v are connected, and a link is shown as %+v", here, l)
		}
		if again, ok := model.Links.Get(view, l.ID); !ok || again.Down != l.Down {
			w.t.Fatalf("the link %+v is %+v when it is asked for", l, again)
		}
	}
	circuits := w.fabric.Circuits.All()
	for c := range model.Circuits.All(view) {
		if len(circuits) == 0 || c.ID != circuits[0].ID || !slices.Equal(c.Path, circuits[0].Path) || len(c.Links) != max(0, len(c.Path)-1) || c.ControllerID != own || c.Tags["clientId"] != c.IdentityID {
			w.t.Fatalf("a circuit is shown as %+v", c)
		}
		if c.Moved.IsZero() != c.UpdatedAt.Equal(c.CreatedAt) && !c.Moved.Equal(c.UpdatedAt.Time()) {
			w.t.Fatalf("a circuit moved at %v and changed at %v: %+v", c.Moved, c.UpdatedAt, c)
		}
		circuits = circuits[1:]
	}
	if len(circuits) != 0 || view.Len(model.Links.Def) != links {
		w.t.Fatalf("%d circuits are not shown, and %d of %d links are", len(circuits), links, view.Len(model.Links.Def))
	}
}
