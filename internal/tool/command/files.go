package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep/internal/tool/manifest"
	"netkeep/internal/tool/remote"
	"netkeep/internal/tool/screen"
)

// source is a controller as files are compared with.
type source struct{ *session }

// List reads a whole collection.
func (s source) List(ctx context.Context, path string) (all []jsontext.Value, err error) {
	_, err = s.Each(ctx, remote.List{Path: "/" + path}, func(raw jsontext.Value) error {
		all = append(all, raw)
		return nil
	})
	return all, err
}

// labelFlag lets files be those of a part of the network.
func labelFlag(cmd *cobra.Command) func() (*manifest.Label, error) {
	text := cmd.Flags().String("label", "", "Tag, as in team=web, of the records that these files are about; all records if not given.")
	return func() (*manifest.Label, error) {
		if *text == "" {
			return nil, nil
		}
		name, value, ok := strings.Cut(*text, "=")
		if !ok || name == "" || value == "" {
			return nil, Usagef("--label must look like team=web")
		}
		return &manifest.Label{Name: name, Value: value}, nil
	}
}

func exportCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export [DIRECTORY]",
		Short: "Write the network to files, one for each kind.",
		Long: "Write what people decide about the network to YAML files, one for each kind of record:\n" +
			"by names in the place of ids, and without what goes without saying. Without a directory,\n" +
			"all goes to standard output. The same network always gives the same bytes. What a\n" +
			"controller makes by itself is left out, and so is every secret.",
		Example: "  netkeep export network\n  netkeep export --label team=web > web.yaml",
		Args:    between(0, 1),
	}
	label := labelFlag(cmd)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		l, err := label()
		if err != nil {
			return err
		}
		if len(args) > 0 {
			files, err := manifest.Export(cmd.Context(), source{s}, args[0], l)
			for _, name := range files {
				s.Printf("%s\n", screen.Plain(name))
			}
			return err
		}
		network, err := manifest.Load(cmd.Context(), source{s})
		if err != nil {
			return err
		}
		text, err := network.Encode(l)
		if err != nil {
			return err
		}
		_, err = s.Out.Write(text)
		return err
	})
	return cmd
}

// wanted is what plan and apply have in common.
type wanted struct {
	env   Env
	label func() (*manifest.Label, error)
	opt   manifest.Options
}

func newWanted(cmd *cobra.Command, env Env) *wanted {
	w := &wanted{env: env, label: labelFlag(cmd)}
	cmd.Flags().BoolVar(&w.opt.Prune, "prune", false, "Delete what is not in the files, except for what a controller makes by itself; with --label, only what has it.")
	cmd.Flags().BoolVar(&w.opt.Adopt, "adopt", false, "Give the label to records that the files name and that do not have it.")
	return w
}

// mostChanges is how many changes a controller makes at once.
const mostChanges = 10_000

// changes are what makes the network what the files say.
func (w *wanted) changes(ctx context.Context, s *session, paths []string) (*manifest.Plan, []change, error) {
	var err error
	if w.opt.Label, err = w.label(); err != nil {
		return nil, nil, err
	}
	if w.opt.Adopt && w.opt.Label == nil {
		return nil, nil, Usagef("--adopt needs a --label to give")
	}
	files, err := manifest.Read(paths, w.env.Stdin)
	if err != nil {
		return nil, nil, s.mistakes(err)
	}
	for _, note := range files.Notes {
		s.Notef("%s", screen.Plain(note))
	}
	now, err := manifest.Load(ctx, source{s})
	if err != nil {
		return nil, nil, err
	}
	p, err := manifest.Compare(files, now, w.opt)
	if err != nil {
		return nil, nil, s.mistakes(err)
	}
	if n := len(p.Changes); n > mostChanges {
		return nil, nil, fmt.Errorf("these are %d changes, and a controller makes %d at once: apply some of the files first", n, mostChanges)
	}
	changes := make([]change, len(p.Changes))
	for i, c := range p.Changes {
		changes[i] = change{Op: c.Op, Kind: c.Kind, Target: c.Target}
		for name, raw := range c.Body {
			if changes[i].Body == nil {
				changes[i].Body = map[string]any{}
			}
			changes[i].Body[name] = raw
		}
		if name, ok := unquote(c.Body["name"]); ok {
			changes[i].Body["name"] = name
		}
	}
	return p, changes, nil
}

// mistakes tells each mistake in files on a line of its own.
func (s *session) mistakes(err error) error {
	found, ok := errors.AsType[manifest.Mistakes](err)
	if !ok {
		return err
	}
	for _, m := range found {
		s.Notef("%s", m)
	}
	return Usagef("the files cannot be meant so; nothing was done")
}

// look has the controller say what the changes would do, and tells it.
func (w *wanted) look(ctx context.Context, s *session, paths []string, form string) (*plan, []change, error) {
	wish, changes, err := w.changes(ctx, s, paths)
	if err != nil {
		return nil, nil, err
	}
	p := new(plan)
	if len(changes) > 0 {
		if p, err = s.change(ctx, changes, true, ""); err != nil {
			return nil, nil, s.nearby(ctx, err, changes)
		}
	}
	if form != formText {
		return p, changes, s.value(form, p)
	}
	if err := s.tell(p); err != nil {
		return nil, nil, err
	}
	for _, text := range wish.Replaced {
		s.Printf("%s %s\n", s.Bad("replaced:"), screen.Plain(text))
	}
	return p, changes, nil
}

// differs reports whether a plan does anything.
func (p *plan) differs() bool { return p.Counts.Created+p.Counts.Changed+p.Counts.Deleted > 0 }

func planCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan FILE…",
		Short: "Show what would change if the network became what files say.",
		Long: "Compare files, or directories of them, with the network, and show what would change: records,\n" +
			"what follows for others, and who gains or loses which service. Nothing is changed. - is\n" +
			"standard input; exports of OpenZiti are understood.",
		Example: "  netkeep plan network\n  netkeep plan network --prune --check",
		Args:    between(1, -1),
	}
	w := newWanted(cmd, env)
	check := cmd.Flags().Bool("check", false, "End with exit code 8 if something would change.")
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		p, _, err := w.look(cmd.Context(), s, args, *output)
		if err == nil && *check && p.differs() {
			return errDiffers
		}
		return err
	})
	return cmd
}

func applyCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply FILE…",
		Short: "Make the network what files say, all of it or nothing.",
		Long: "Show what would change, as plan does, ask, and make exactly these changes: if the network\n" +
			"changes in between so that something else would come of them, nothing is done.",
		Example: "  netkeep apply network\n  netkeep apply web.yaml --label team=web --prune --yes",
		Args:    between(1, -1),
	}
	w := newWanted(cmd, env)
	yes := yesFlag(cmd)
	dry := dryFlag(cmd)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		p, changes, err := w.look(cmd.Context(), s, args, formText)
		if err != nil || *dry || !p.differs() {
			return err
		}
		if !*yes {
			if err := s.sure("Make these changes?"); err != nil {
				return err
			}
		}
		done, err := s.change(cmd.Context(), changes, false, p.Digest)
		if err != nil {
			return s.nearby(cmd.Context(), err, changes)
		}
		s.Printf("%d created, %d changed, %d deleted.\n", done.Counts.Created, done.Counts.Changed, done.Counts.Deleted)
		return nil
	})
	return cmd
}
