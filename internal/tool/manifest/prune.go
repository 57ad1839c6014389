package manifest

import (
	"slices"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// goes reports whether a record is to be deleted since no file has it.
func (c *comparison) goes(r *current) bool {
	return c.opt.Prune && !r.made && !r.inside && !r.came && c.now.has(r, c.opt.Label) && c.files.records[r.def][r.key] == nil
}

// vanishes reports whether a record goes with the one that it was made for.
func (c *comparison) vanishes(r *current) bool {
	if r.maker == nil {
		return false
	}
	stays := c.files.records[r.maker.def][r.maker.key]
	return c.goes(r.maker) || r.def == model.Identities.Def && stays != nil && !tunnels(stays)
}

// delete deletes what is made anew and what the files do not have, those first
// that refer to others.
func (c *comparison) delete() {
	held := c.held()
	for _, d := range slices.Backward(kinds) {
		for _, r := range c.now.sorted(d) {
			if c.opt.Prune && !r.made && c.now.has(r, c.opt.Label) {
				c.plan.Owned++
			}
			if c.goes(r) {
				c.plan.Pruned++
			}
			switch gone := (Change{Op: Delete, Kind: d.Name, Target: r.id}); {
			case !c.goes(r) && !c.replaced[d][r.key]:
			case held[r] && !c.replaced[d][r.key]:
				c.last = append(c.last, gone)
			default:
				c.first = append(c.first, gone)
			}
		}
	}
}

// held are the records that cannot be deleted as long as others refer to them
// that stay, or that are themselves held.
func (c *comparison) held() map[*current]bool {
	held := map[*current]bool{}
	if !c.anyGoes() {
		return held
	}
	for _, d := range slices.Backward(kinds) { // those that refer to others first
		for _, r := range c.now.shelves[d].byID {
			if c.goes(r) && !held[r] {
				continue
			}
			references(d.Fields, r.body.object(), func(f *kind.Field, text string, _ spot) string {
				if target := c.now.find(f, text); target != nil && f.Ref != "" && f.OnDelete == kind.Restrict {
					held[target] = true
				}
				return text
			})
		}
	}
	return held
}

// anyGoes reports whether a record is to be deleted since no file has it.
func (c *comparison) anyGoes() bool {
	for _, d := range kinds {
		for _, r := range c.now.shelves[d].byID {
			if c.goes(r) {
				return true
			}
		}
	}
	return false
}
