package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/fault"
)

// lists are those of a record as they were read, by the name of the field.
type lists map[string][]string

// maxRewrites is how often a list is read again because somebody else was faster.
const maxRewrites = 10

// rewrite makes a change of lists that are written back as a whole. make reads the
// record and says what to change, and what the lists were; a change of nothing is none.
// What somebody else has added meanwhile, or taken, is not lost: the change is planned,
// and made if the plan began with what was read, and nothing has changed since.
func (s *session) rewrite(cmd *cobra.Command, dry bool, form string, make func() (change, lists, error)) error {
	var before lists
	for range maxRewrites {
		c, read, err := make()
		switch {
		case err != nil || c.Op == "":
			return err
		case dry || len(read) == 0:
			return s.write(cmd, []change{c}, dry, form)
		}
		all := []change{c}
		p, err := s.change(cmd.Context(), all, true, "")
		if err != nil {
			return s.nearby(cmd.Context(), err, all)
		}
		if !p.beganWith(read) && !read.equal(before) { // if it is still what it was, it is shown in another way
			before = read
			continue
		}
		p, err = s.change(cmd.Context(), all, false, p.Digest)
		if refused, ok := errors.AsType[*remote.Error](err); ok && refused.Code == string(fault.CodePlan) {
			continue
		}
		if err != nil {
			return s.nearby(cmd.Context(), err, all)
		}
		return s.made(p, false, form)
	}
	return fmt.Errorf("others change the same record at the same time, and nothing was done; try again")
}

// beganWith reports whether a plan changes lists that were as they were read.
func (p *plan) beganWith(read lists) bool {
	for _, o := range p.Changes {
		for _, f := range o.Fields {
			was, listed := read[f.Name]
			var is []string
			if listed && (json.Unmarshal(f.Before, &is) != nil || !same(is, was)) {
				return false
			}
		}
	}
	return true
}

func (l lists) equal(o lists) bool {
	if len(l) != len(o) {
		return false
	}
	for name, list := range l {
		if !same(list, o[name]) {
			return false
		}
	}
	return true
}

// same reports whether two lists have the same in them.
func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
