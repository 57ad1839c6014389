package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/tool/screen"
)

// The nouns that have to do with who has which admin role, beside identities.
var (
	adminRoles   = noun{model.AdminRoles.Def}
	roleBindings = noun{model.RoleBindings.Def}
)

func roleCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{Use: "role", Short: "Give identities admin roles, and take them."})
	for _, c := range []struct {
		use, short string
		give       bool
	}{
		{"grant IDENTITY ROLE", "Give an identity an admin role.", true},
		{"revoke IDENTITY ROLE", "Take an admin role from an identity.", false},
	} {
		one := &cobra.Command{Use: c.use, Short: c.short, Args: Exactly(2), ValidArgsFunction: completeEach(completeNames(env, identities), completeNames(env, adminRoles))}
		dry, output := dryFlag(one), outputFlag(one, formText, formName)
		one.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
			return s.role(cmd, args[0], args[1], c.give, *dry, *output)
		})
		cmd.AddCommand(one)
	}
	return cmd
}

// completeEach completes each argument by a way of its own.
func completeEach(each ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(each) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return each[len(args)](cmd, nil, begun)
	}
}

// role gives an identity a role, or takes it.
func (s *session) role(cmd *cobra.Command, who, word string, give, dry bool, output string) error {
	role, err := s.find(cmd.Context(), adminRoles, word)
	if err != nil {
		return err
	}
	return s.rewrite(cmd, dry, output, func() (c change, read lists, err error) {
		whom, err := s.find(cmd.Context(), identities, who)
		if err != nil {
			return c, nil, err
		}
		field := identities.Field("adminRoles")
		list := whom.texts(field.Shown())
		read = lists{field.Last(): slices.Clone(list)}
		has := slices.Contains(list, role.text("id"))
		switch {
		case give && has:
			s.Notef("%s has the admin role %s already.", screen.Plain(whom.text("name")), screen.Plain(role.text("name")))
			return c, nil, nil
		case !give && !has:
			return c, nil, s.notByItself(cmd, whom, role)
		case give:
			list = append(list, role.text("id"))
		default:
			list = slices.DeleteFunc(list, func(id string) bool { return id == role.text("id") })
		}
		return change{Op: opPatch, Kind: identities.Name, Target: whom.text("id"), Body: map[string]any{field.Last(): list}}, read, nil
	})
}

// notByItself says where else somebody may have a role from that is to be taken.
func (s *session) notByItself(cmd *cobra.Command, whom, role record) error {
	name, what := screen.Plain(whom.text("name")), screen.Plain(role.text("name"))
	if role.text("id") == model.RoleAdmin && string(whom.at("isAdmin")) == "true" {
		return fmt.Errorf("%s has the role %s by isAdmin; run: netkeep update identity %s --is-admin=false", name, what, whom.text("id"))
	}
	var by []string
	_, err := s.Each(cmd.Context(), remote.List{Path: roleBindings.at(), Filter: "roleId = " + quoted(role.text("id"))}, func(raw jsontext.Value) error {
		rec, err := readRecord(raw)
		by = append(by, screen.Plain(rec.text("name")))
		return err
	})
	switch {
	case err != nil:
		return err
	case len(by) > 0:
		return fmt.Errorf("%s does not have the admin role %s by itself, and there was nothing to take; role bindings that give it by role attribute: %s", name, what, strings.Join(by, ", "))
	}
	return fmt.Errorf("%s does not have the admin role %s, and there was nothing to take", name, what)
}
