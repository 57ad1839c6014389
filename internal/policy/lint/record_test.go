package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/lint"
)

// TestTimes looks at one network from several moments: what is found changes with the
// clock alone.
func TestTimes(t *testing.T) {
	st := open(t)
	now, days := time.Now(), func(n int) time.Time { return time.Now().AddDate(0, 0, n) }
	update(t, st, func(tx *state.Tx) error {
		role, _ := model.AdminRoles.Find(tx, "name", "viewer")
		end := days(30)
		p := &model.ServicePolicy{Name: "timed", Type: model.Dial, Semantic: model.AnyOf, IdentityRoles: []string{"#all"}, ServiceRoles: []string{"#all"}}
		p.ValidUntil = &end
		for _, err := range []error{
			model.Identities.Create(tx, &model.Identity{Meta: kind.Meta{ID: "ann"}, Name: "ann", Type: "User"}),
			model.Identities.Create(tx, &model.Identity{Meta: kind.Meta{ID: "gate"}, Name: "gate", Type: model.TypeRouter}),
			model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: "wiki"}, Name: "wiki", EncryptionRequired: true}),
			model.Authenticators.Create(tx, model.NewPassword("ann", "annabel", "x")),
			model.Tokens.Create(tx, &model.Token{Name: "ci", RoleID: role.ID, OwnerID: "ann", Digest: "x", ExpiresAt: days(30)}),
			model.ServicePolicies.Create(tx, p),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, at := range []struct {
		day  int
		want string
	}{
		{0, "service-not-hosted"},
		{17, "policy-ending service-not-hosted token-ending"},
		{31, "policy-ending service-not-hosted token-ending"},
		{366, "password-old policy-ending service-not-hosted token-ending"},
	} {
		var names []string
		all := lint.Run(st.Snapshot(), now.AddDate(0, 0, at.day))
		for name := range found(all) {
			names = append(names, name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != at.want {
			t.Errorf("on day %d: %s, want %s", at.day, got, at.want)
		}
		for _, c := range all {
			for _, f := range c.Listed {
				if over := strings.HasPrefix(f.Command, "netkeep delete"); strings.HasSuffix(c.Name, "-ending") && over != (at.day > 30) {
					t.Errorf("on day %d the command for %s is %s", at.day, f.Name, f.Command)
				}
			}
		}
	}
}

// TestNamesInCommands has records with names that shells and flags read in ways of their
// own: a command is about the record and does nothing else.
func TestNamesInCommands(t *testing.T) {
	st := open(t)
	odd := []string{"-rf", "a,b", "it's; rm x", "$(reboot)", "two words", "`id`"}
	update(t, st, func(tx *state.Tx) error {
		for i, name := range odd {
			if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: fmt.Sprint("id", i)}, Name: name, EncryptionRequired: true}); err != nil {
				return err
			}
		}
		return nil
	})
	want := map[string]string{
		"-rf": "id0", "a,b": "id1", "it's; rm x": `'it'\''s; rm x'`, "$(reboot)": "'$(reboot)'", "two words": "'two words'", "`id`": "'`id`'",
	}
	for _, c := range lint.Run(st.Snapshot(), time.Now()) {
		for _, f := range c.Listed {
			if command := "netkeep delete service " + want[f.Name] + " --yes"; f.Command != command {
				t.Errorf("the command is %s, want %s", f.Command, command)
			}
		}
	}
}

// TestListed finds more than is named: all are counted.
func TestListed(t *testing.T) {
	st := open(t)
	update(t, st, func(tx *state.Tx) error {
		for i := range 3*lint.MaxListed + 7 {
			if err := model.Services.Create(tx, &model.Service{Name: fmt.Sprintf("s%04d", 9999-i), EncryptionRequired: true}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, c := range lint.Run(st.Snapshot(), time.Now()) {
		if c.Name != "service-not-dialed" {
			continue
		}
		if first := fmt.Sprintf("s%04d", 9999-3*lint.MaxListed-6); c.Count != 3*lint.MaxListed+7 || len(c.Listed) != lint.MaxListed || c.Listed[0].Name != first {
			t.Errorf("%d are found, %d are listed, the first is %s, want %s", c.Count, len(c.Listed), c.Listed[0].Name, first)
		}
	}
}
