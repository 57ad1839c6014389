package access_test

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// names returns the sorted ids of the records with these ordinals.
func names(snap *state.Snapshot, d *kind.Def, set *cow.Bitmap) []string {
	var list []string
	for rec := range snap.At(d, set) {
		list = append(list, rec.Base().ID)
	}
	slices.Sort(list)
	return list
}

var sameList = cmpopts.EquateEmpty()

func compare(t *rapid.T, what string, want, got any) {
	t.Helper()
	if reflect.DeepEqual(want, got) { // much faster
		return
	}
	if diff := cmp.Diff(want, got, sameList); diff != "" {
		t.Fatalf("%s (-naive +got):\n%s", what, diff)
	}
}

// build makes a random world.
func (w *world) build(t *rapid.T) {
	if _, err := w.write(drawWorld(t)); err != nil {
		t.Fatal(err)
	}
}

// change changes the world at random. A change that breaks a rule is none.
func (w *world) change(t *rapid.T) step {
	s, err := w.write(drawWrite(t))
	if err != nil && fault.CodeOf(err) == fault.CodeUnhandled {
		t.Fatal(err)
	}
	return s
}

// TestAnswers changes a world at random and compares every answer with the
// naive one.
func TestAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.build(t)
		for range rapid.IntRange(0, 4).Draw(t, "writes") {
			w.change(t)
		}
		snap := w.st.Snapshot()
		n := newNaive(snap)
		checkRelations(t, snap, n)
		checkGrants(t, snap, n)
		checkAdvice(t, snap, n)
		checkRoles(t, snap, n)
		if snap != w.st.Snapshot() {
			t.Fatal("the snapshot was replaced")
		}
		compare(t, "bitmaps of the snapshot were written", n.tagged(), newTagged(snap))
	})
}

// tagged is who has which attribute, counted by hand.
func (n naive) tagged() map[string][]string {
	who := map[string][]string{}
	for collection, all := range n.members {
		for _, m := range all {
			for _, a := range append(slices.Compact(slices.Sorted(slices.Values(m.attributes))), "") {
				who[collection+"#"+a] = append(who[collection+"#"+a], m.id)
			}
		}
	}
	return who
}

func newTagged(snap *state.Snapshot) map[string][]string {
	who := map[string][]string{}
	for _, d := range []*kind.Def{model.Identities.Def, model.Services.Def, model.EdgeRouters.Def, model.PostureChecks.Def} {
		for _, a := range append(slices.Collect(snap.Attributes(d)), "") {
			if set := snap.Tagged(d, a); set != nil {
				who[d.Path+"#"+a] = names(snap, d, set)
			}
		}
	}
	return who
}

func checkRelations(t *rapid.T, snap *state.Snapshot, n naive) {
	for _, rel := range access.Relations {
		for _, id := range append(idsOf(snap, rel.From), "missing") {
			var got []string
			for rec := range rel.Find(snap, id).Records() {
				if now, _ := snap.Lookup(rel.To, rec.Base().ID); now != rec {
					t.Fatalf("%s yields a record that is not of kind %s", rel.Name, rel.To.Name)
				}
				got = append(got, rec.Base().ID)
			}
			what := rel.From.Path + "/" + id + "/" + rel.Path
			compare(t, what, n.list(rel.From.Path, id, rel.Path), got)
		}
	}
}

func idsOf(snap *state.Snapshot, d *kind.Def) []string {
	var list []string
	for rec := range snap.All(d) {
		list = append(list, rec.Base().ID)
	}
	return list
}

func checkGrants(t *rapid.T, snap *state.Snapshot, n naive) {
	for _, i := range append(idsOf(snap, model.Identities.Def), "missing") {
		g, admin, unchecked := access.Services(snap, i), access.ServicesWithAdmin(snap, i), access.Unchecked(snap, i)
		compare(t, "policies of "+i, n.list("identities", i, "service-policies"), policyIDs(g.Policies))
		compare(t, "services of "+i, n.list("identities", i, "services"), names(snap, model.Services.Def, g.Visible()))
		compare(t, "edge routers of "+i, n.list("identities", i, "edge-routers"), names(snap, model.EdgeRouters.Def, access.EdgeRouters(snap, i)))
		identity, _ := model.Identities.Get(snap, i)
		for _, s := range append(idsOf(snap, model.Services.Def), "missing") {
			what := i + " and " + s
			dial, bind := n.granting(i, s, model.Dial), n.granting(i, s, model.Bind)
			compare(t, "may dial: "+what, len(dial) > 0, access.MayDial(snap, i, s))
			compare(t, "may bind: "+what, len(bind) > 0, access.MayBind(snap, i, s))
			compare(t, "dial policies: "+what, dial, policyIDs(access.Granting(snap, i, s, model.Dial)))
			compare(t, "bind policies: "+what, bind, policyIDs(access.Granting(snap, i, s, model.Bind)))
			service, ok := model.Services.Get(snap, s)
			if !ok {
				continue
			}
			ord, _ := snap.Ordinal(model.Services.Def, s)
			all := identity != nil && identity.IsAdmin
			compare(t, "dial set: "+what, len(dial) > 0, g.Dial.Contains(ord))
			compare(t, "bind set: "+what, len(bind) > 0, g.Bind.Contains(ord))
			compare(t, "dial set with admin: "+what, all || len(dial) > 0, admin.Dial.Contains(ord))
			compare(t, "bind set with admin: "+what, all || len(bind) > 0, admin.Bind.Contains(ord))
			compare(t, "dial set without checks: "+what, slices.ContainsFunc(dial, n.unchecked), unchecked.Dial.Contains(ord))
			compare(t, "bind set without checks: "+what, slices.ContainsFunc(bind, n.unchecked), unchecked.Bind.Contains(ord))
			compare(t, "policies over: "+what, slices.Sorted(slices.Values(slices.Concat(dial, bind))), policyIDs(g.Over(service)))
		}
	}
	for _, s := range append(idsOf(snap, model.Services.Def), "missing") {
		compare(t, "edge routers of "+s, n.list("services", s, "edge-routers"), names(snap, model.EdgeRouters.Def, access.RoutersOfService(snap, s)))
	}
}

// unchecked reports whether no device is refused by a policy.
func (n naive) unchecked(policyID string) bool {
	for _, id := range n.list("service-policies", policyID, "posture-checks") {
		if check, _ := model.PostureChecks.Get(n.snap, id); check.Mode != "report" {
			return false
		}
	}
	return true
}

func policyIDs(list []*model.ServicePolicy) []string {
	var ids []string
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	return ids
}

func checkAdvice(t *rapid.T, snap *state.Snapshot, n naive) {
	online := map[string]bool{"r0": true, "r2": true}
	for _, i := range idsOf(snap, model.Identities.Def) {
		for _, s := range idsOf(snap, model.Services.Def) {
			ofIdentity, ofService := n.list("identities", i, "edge-routers"), n.list("services", s, "edge-routers")
			common := slices.DeleteFunc(slices.Clone(ofIdentity), func(id string) bool { return !slices.Contains(ofService, id) })
			compare(t, "common routers", common, names(snap, model.EdgeRouters.Def, access.CommonRouters(snap, i, s)))

			a, err := access.Advise(snap, i, s, func(id string) bool { return online[id] })
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "advised identity and service", []string{i, s}, []string{a.Identity.ID, a.Service.ID})
			compare(t, "dial advice", len(n.granting(i, s, model.Dial)) > 0, a.DialAllowed)
			compare(t, "bind advice", len(n.granting(i, s, model.Bind)) > 0, a.BindAllowed)
			compare(t, "identity routers", len(ofIdentity), a.IdentityRouters)
			compare(t, "service routers", len(ofService), a.ServiceRouters)
			var ids []string
			reachable := false
			for _, r := range a.Common {
				ids = append(ids, r.ID)
				compare(t, "router online", online[r.ID], r.Online)
				reachable = reachable || r.Online
			}
			compare(t, "advised routers", common, ids)
			compare(t, "nothing is missing", a.DialAllowed && a.BindAllowed && reachable, len(a.Missing) == 0)
		}
	}
}

// checkRoles compares role lists and role filters that no policy has.
func checkRoles(t *rapid.T, snap *state.Snapshot, n naive) {
	for _, d := range []*kind.Def{model.Identities.Def, model.Services.Def, model.EdgeRouters.Def, model.PostureChecks.Def} {
		list, semantic := roles(t, d), semantics.Draw(t, "semantic")
		var matching, filtered []string
		for _, m := range n.members[d.Path] {
			if selects(list, semantic, m) {
				matching = append(matching, m.id)
			}
			if len(list) == 0 || selectsPlain(list, semantic, m) {
				filtered = append(filtered, m.id)
			}
		}
		compare(t, "matching", matching, names(snap, d, access.Matching(snap, d, list, semantic)))
		set, err := access.Filter(snap, d, list, semantic)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "filtered", filtered, names(snap, d, set))
	}
}

// TestAffected changes a world at random. Whoever sees something else must be
// named, and nobody who has no part in it. Who has no other part in it than to
// have changed itself must see something else.
func TestAffected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.build(t)
		var last access.LastChange
		last.Reset(w.st.Snapshot().Time)
		seen := map[string]time.Time{}
		for _, id := range idsOf(w.st.Snapshot(), model.Identities.Def) {
			seen[id] = last.Of(w.st.Snapshot(), id)
		}
		for range rapid.IntRange(1, 12).Draw(t, "writes") {
			s := w.change(t)
			checkAffected(t, s)
			checkLastChange(t, s, &last, seen)
		}
	})
}

func checkAffected(t *rapid.T, s step) {
	was, is := newNaive(s.before), newNaive(s.after)
	set := access.Affected(s.before, s.after, s.changed)
	affected := names(s.after, model.Identities.Def, set)
	if len(affected) != int(set.GetCardinality()) {
		t.Fatalf("affected names ordinals that are nobody's: %v of %v", affected, set)
	}
	for _, i := range idsOf(s.after, model.Identities.Def) {
		named := slices.Contains(affected, i)
		if a, b := was.view(i, false), is.view(i, false); a != b && !named {
			t.Fatalf("%s sees something else but is not affected by %v\nbefore:\n%safter:\n%s", i, refs(s.changed), a, b)
		}
		related := slices.ContainsFunc(s.changed, func(c state.Ref) bool {
			return c.Def != model.Identities.Def && (was.related(i, c) || is.related(i, c))
		})
		if named && !related && !other(s, i) && was.view(i, false) == is.view(i, false) {
			t.Fatalf("%s is affected by %v but has no part in it", i, refs(s.changed))
		}
	}
}

// other reports whether an identity is another than it was before, though it
// may see the same: it is new, or came to be an admin or ceased to be one.
func other(s step, id string) bool {
	old, had := model.Identities.Get(s.before, id)
	next, has := model.Identities.Get(s.after, id)
	was, _ := s.before.Ordinal(model.Identities.Def, id)
	is, _ := s.after.Ordinal(model.Identities.Def, id)
	return !had || !has || was != is || old.IsAdmin != next.IsAdmin
}

func refs(changed []state.Ref) (list []string) {
	for _, c := range changed {
		list = append(list, c.Def.Name+" "+c.ID)
	}
	return list
}

// checkLastChange tells the times of a batch. seen has what each identity was
// told before.
func checkLastChange(t *rapid.T, s step, last *access.LastChange, seen map[string]time.Time) {
	was, is := newNaive(s.before), newNaive(s.after)
	affected := names(s.after, model.Identities.Def, access.Affected(s.before, s.after, s.changed))
	if s.before != s.after {
		last.Apply(s.before, s.after, s.changed)
	}
	now := map[string]time.Time{}
	for i := range model.Identities.All(s.after) {
		now[i.ID] = last.Of(s.after, i.ID)
		before, known := seen[i.ID]
		moved := !now[i.ID].Equal(before)
		switch {
		case !known && now[i.ID].Before(s.after.Time):
			t.Fatalf("%s is new and has the time of somebody else", i.ID)
		case known && was.view(i.ID, true) != is.view(i.ID, true) && !moved:
			t.Fatalf("%s sees something else, but its time stays %v", i.ID, before)
		case known && moved && !i.IsAdmin && !slices.Contains(affected, i.ID):
			t.Fatalf("%s is not affected, but its time moves from %v to %v", i.ID, before, now[i.ID])
		case known && now[i.ID].Before(before):
			t.Fatalf("the time of %s runs back", i.ID)
		}
	}
	clear(seen)
	maps.Copy(seen, now)
}
