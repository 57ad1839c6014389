package command

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/lang/document"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/tool/screen"
)

// body is what a create or update sends: a file, and flags over it.
type body struct {
	env      Env
	noun     noun
	settings []*setting
	lists    []*listChange
	file     string
}

func newBody(cmd *cobra.Command, env Env, n noun, shape kind.Shape) *body {
	b := &body{env: env, noun: n, settings: settings(cmd, env, n, shape)}
	cmd.Flags().StringVarP(&b.file, "file", "f", "", "YAML or JSON file with fields, - for standard input; flags go before it.")
	return b
}

// read puts together what was given.
func (b *body) read(cmd *cobra.Command) (map[string]any, error) {
	members := map[string]any{}
	if b.file != "" {
		data, err := readFile(b.env, b.file, maxDocument)
		if err != nil {
			return nil, err
		}
		if err := document.Decode(data, &members); err != nil {
			return nil, fmt.Errorf("%s: %s", b.file, document.Reason(err))
		}
	}
	for _, s := range b.settings {
		if !cmd.Flags().Changed(s.flag) {
			continue
		}
		if err := put(members, s.path, s.value); err != nil {
			return nil, Usagef("--%s: %w", s.flag, err)
		}
	}
	return members, nil
}

func createCommand(env Env) *cobra.Command {
	return forEach(kind.Creates|kind.Patches, env, createKind, &cobra.Command{
		Use:     "create KIND NAME",
		Short:   "Create a record.",
		Example: "  netkeep create service web --roles office\n  netkeep create service-policy staff-web --type Dial --identity-roles '#staff' --service-roles @web",
	})
}

// createAuthenticator gives an identity a certificate to log in with. For
// passwords there is a command of its own.
func createAuthenticator(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: authenticators.Name + " IDENTITY", Aliases: authenticators.others(), Args: Exactly(1), ValidArgsFunction: completeNames(env, identities),
		Short: "Let an identity log in with a client certificate; netkeep password gives it a password.",
	}
	cert := cmd.Flags().String("cert", "", "File with the certificate, which the controller or a verified CA has issued.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		if *cert == "" {
			return Usagef("give the certificate with --cert; a password is given with: netkeep password %s", args[0])
		}
		text, err := readFile(env, *cert, maxSecret)
		if err != nil {
			return err
		}
		id, err := s.idOf(cmd.Context(), identities, args[0])
		if err != nil {
			return err
		}
		in := map[string]any{"identityId": id, "method": "cert", "certPem": string(text)}
		if err := s.Post(cmd.Context(), "/authenticators", in, nil); err != nil {
			return err
		}
		s.Printf("%s can log in with the certificate.\n", screen.Plain(args[0]))
		return nil
	})
	return cmd
}

func createKind(env Env, n noun) *cobra.Command {
	if n.Name == authenticators.Name { // which may have a secret
		return createAuthenticator(env)
	}
	cmd := &cobra.Command{Use: n.Name, Aliases: n.others(), Short: n.Doc, Args: Exactly(0)}
	if n.hasName() {
		cmd.Use, cmd.Args = n.Name+" NAME", between(0, 1)
	}
	in := newBody(cmd, env, n, kind.Create)
	dry := dryFlag(cmd)
	overrideFlag(cmd)
	output := outputFlag(cmd, formText, formName)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		members, err := in.read(cmd)
		if err != nil {
			return err
		}
		if len(args) > 0 {
			members["name"] = args[0]
		}
		if n.hasName() && members["name"] == nil {
			return Usagef("give it a name: netkeep create %s NAME", n.Name)
		}
		n.Complete(members)
		return s.write(cmd, []change{{Op: opCreate, Kind: n.Name, Body: members}}, *dry, *output)
	})
	return cmd
}

func updateCommand(env Env) *cobra.Command {
	return forEach(kind.Patches, env, updateKind, &cobra.Command{
		Use:     "update KIND NAME",
		Short:   "Change fields of a record.",
		Example: "  netkeep update identity bob --add-role staff\n  netkeep update service web -f web.yaml --dry-run",
	})
}

// listChange adds texts to a list, or takes some out of it.
type listChange struct {
	setting
	add bool
}

func updateKind(env Env, n noun) *cobra.Command {
	if n.Name == authenticators.Name { // netkeep password does it
		return nil
	}
	cmd := &cobra.Command{
		Use: n.Name + " NAME", Aliases: n.others(),
		Short:             "Change fields of one of the " + strings.ReplaceAll(n.Path, "-", " ") + ".",
		Args:              Exactly(1),
		ValidArgsFunction: completeNames(env, n),
	}
	in := newBody(cmd, env, n, kind.Patch)
	in.addLists(cmd)
	in.addAbsent(cmd)
	dry := dryFlag(cmd)
	overrideFlag(cmd)
	output := outputFlag(cmd, formText, formName)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		given, err := in.read(cmd)
		if err == nil {
			err = in.takeAway(cmd, given)
		}
		if err != nil {
			return err
		}
		return s.rewrite(cmd, *dry, *output, func() (c change, read lists, err error) {
			members := maps.Clone(given)
			if read, err = in.changeLists(cmd, s, args[0], members); err != nil {
				return c, nil, err
			}
			if len(members) == 0 {
				return c, nil, Usagef("say what to change; see: %s --help", cmd.CommandPath())
			}
			if err := in.repeat(cmd, s, args[0], members); err != nil {
				return c, nil, err
			}
			if n.Name == tokens.Name {
				return c, nil, s.patchToken(cmd, args[0], members)
			}
			return change{Op: opPatch, Kind: n.Name, Target: args[0], Body: members}, read, nil
		})
	})
	return cmd
}

// addAbsent lets an update take away what a record need not have and what has several
// flags, none of which says that.
func (b *body) addAbsent(cmd *cobra.Command) {
	for _, f := range b.noun.Fields {
		if f.Form == kind.Struct && f.Nullable && f.Taken(kind.Patch) {
			cmd.Flags().Bool(absent(f), false, "Take "+kind.Dashed(f.Last())+" away altogether.")
		}
	}
}

// absent is the flag that takes a field away.
func absent(f *kind.Field) string { return "no-" + kind.Dashed(f.Last()) }

// takeAway adds to the body what is to be there no more.
func (b *body) takeAway(cmd *cobra.Command, members map[string]any) error {
	for _, f := range b.noun.Fields {
		if flag := cmd.Flags().Lookup(absent(f)); flag == nil || flag.Value.String() != "true" {
			continue
		}
		if members[f.Last()] != nil {
			return Usagef("--%s takes away what the other flags or the file give", absent(f))
		}
		members[f.Last()] = nil
	}
	return nil
}

// addLists lets an update add to lists of texts and take from them.
func (b *body) addLists(cmd *cobra.Command) {
	for _, s := range b.settings {
		if s.field.Form != kind.Texts || len(s.path) > 1 {
			continue
		}
		word := strings.TrimSuffix(s.flag, "s")
		for _, add := range []bool{true, false} {
			l := &listChange{setting: setting{field: s.field, path: s.path, env: s.env, flag: "remove-" + word}, add: add}
			doc := "Take these out of --" + s.flag + "."
			if add {
				l.flag, doc = "add-"+word, "Add these to --"+s.flag+"."
			}
			cmd.Flags().Var(l, l.flag, doc)
			b.lists = append(b.lists, l)
		}
	}
}

// changeLists adds to the body what lists become, and returns those that it has read.
func (b *body) changeLists(cmd *cobra.Command, s *session, target string, members map[string]any) (lists, error) {
	var rec record
	read := lists{}
	for _, l := range b.lists {
		if !cmd.Flags().Changed(l.flag) {
			continue
		}
		if rec.members == nil {
			var err error
			if rec, err = s.find(cmd.Context(), b.noun, target); err != nil {
				return nil, err
			}
		}
		list, changed := members[l.field.Last()].([]string)
		if !changed {
			list = rec.texts(l.field.Shown())
			read[l.field.Last()] = slices.Clone(list)
		}
		for _, text := range l.list(l.given) {
			// A role may be given by the name of what is stored by id.
			same := append([]string{text}, rec.roleIDs(l.field, text)...)
			if n, err := named(l.field.Ref); err == nil { // and so may any other record
				if target, err := s.find(cmd.Context(), n, text); err == nil {
					same = append(same, target.text("id"))
				}
			}
			list = slices.DeleteFunc(list, func(item string) bool { return slices.Contains(same, item) })
			if l.add {
				list = append(list, text)
			}
		}
		members[l.field.Last()] = list
	}
	return read, nil
}

// repeat adds to the body what every change has to say although it stays as it
// is.
func (b *body) repeat(cmd *cobra.Command, s *session, target string, members map[string]any) error {
	for _, l := range b.settings {
		name := l.field.Last()
		if l.field.Required&kind.Patch == 0 || len(l.path) > 1 || members[name] != nil {
			continue
		}
		rec, err := s.find(cmd.Context(), b.noun, target)
		if err != nil {
			return err
		}
		members[name] = rec.at(l.field.Shown())
	}
	return nil
}

// roleIDs are the roles that a record's role list shows by a name.
func (r record) roleIDs(f *kind.Field, name string) (roles []string) {
	if f.Roles == "" {
		return nil
	}
	for _, item := range r.objects(f.Shown() + "Display") {
		if item.text("name") == name || item.text("name") == strings.TrimPrefix(name, "@") || "@"+item.text("name") == name {
			roles = append(roles, item.text("role"))
		}
	}
	return roles
}

func deleteCommand(env Env) *cobra.Command {
	return forEach(kind.Deletes, env, deleteKind, &cobra.Command{
		Use:     "delete KIND NAME…",
		Aliases: []string{"rm"},
		Short:   "Delete records, all of them or none.",
		Example: "  netkeep delete identity bob\n  netkeep delete service web wiki --yes",
	})
}

func deleteKind(env Env, n noun) *cobra.Command {
	cmd := &cobra.Command{
		Use: n.Name + " NAME…", Aliases: n.others(),
		Short:             "Delete some of the " + strings.ReplaceAll(n.Path, "-", " ") + ".",
		Args:              between(1, -1),
		ValidArgsFunction: completeNames(env, n),
	}
	yes := yesFlag(cmd)
	dry := dryFlag(cmd)
	overrideFlag(cmd)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		var changes []change
		for _, name := range args {
			changes = append(changes, change{Op: opDelete, Kind: n.Name, Target: name})
		}
		if !n.Verbs.Has(kind.Patches) || n.Name == authenticators.Name || n.Name == tokens.Name {
			return s.deleteEach(cmd, n, args, *yes)
		}
		if s.Reads && !*yes && !*dry {
			plan, err := s.change(cmd.Context(), changes, true, "")
			if err != nil {
				return s.nearby(cmd.Context(), err, changes)
			}
			if err := s.tell(plan); err != nil {
				return err
			}
			if err := s.sure("Delete " + count(int64(len(args)), n.spoken(), strings.ReplaceAll(n.Path, "-", " ")) + "?"); err != nil {
				return err
			}
		}
		return s.write(cmd, changes, *dry, formText)
	})
	return cmd
}

// deleteEach deletes records of kinds that no list of changes can hold.
func (s *session) deleteEach(cmd *cobra.Command, n noun, names []string, yes bool) error {
	var recs []record
	for _, name := range names {
		rec, err := s.find(cmd.Context(), n, name)
		if err != nil {
			return err
		}
		recs = append(recs, rec)
	}
	if s.Reads && !yes {
		if err := s.sure("Delete " + n.spoken() + " " + strings.Join(names, ", ") + "?"); err != nil {
			return err
		}
	}
	for _, rec := range recs {
		if err := s.do(cmd.Context(), "DELETE", n.at()+"/"+url.PathEscape(rec.text("id")), nil, nil); err != nil {
			return err
		}
		s.Printf("%s %s deleted\n", n.spoken(), screen.Plain(rec.label()))
	}
	return nil
}

func yesFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().BoolP("yes", "y", false, "Do not ask.")
}

func dryFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("dry-run", false, "Show what would change, and change nothing.")
}

// sure asks before something that cannot be undone.
func (s *session) sure(question string) error {
	yes, err := s.Confirm(question)
	switch {
	case errors.Is(err, screen.ErrAhead):
		return fmt.Errorf("%w; give --yes to be asked nothing", err)
	case err == nil && !yes:
		return errDeclined
	}
	return err
}
