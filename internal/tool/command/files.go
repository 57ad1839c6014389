package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/tool/manifest"
	"netkeep.internal/internal/tool/screen"
)

// source is a controller as files are compared with.
type source struct{ *session }

// List reads a whole collection.
func (s source) List(ctx context.Context, path string) (all []jsontext.Value, err error) {
	progress := s.Progress("Reading "+strings.ReplaceAll(path, "-", " "), 0, s.now)
	defer progress.End()
	list := remote.List{Path: "/" + path, Progress: progress.Set, Query: map[string][]string{}}
	if n, err := named(path); err == nil && !slices.Contains(saysMore, n.Name) {
		list.Query.Set("fields", strings.Join(n.decided(), ","))
	}
	_, err = s.Each(ctx, list, func(raw jsontext.Value) error {
		all = append(all, raw)
		return nil
	})
	return all, err
}

// saysMore are the kinds of which answers also say what a controller keeps or made,
// which is no field of theirs.
var saysMore = []string{"edge-router", "edge-router-policy", "service-edge-router-policy"}

// decided are the members of a record that people decide on, and who made it.
func (n noun) decided() (members []string) {
	for _, f := range n.Fields {
		if !f.Secret && !f.Hidden && (f.Taken(kind.Create) || f.Name == "id" || f.Form == kind.Bool) {
			members = append(members, f.Shown())
		}
	}
	return members
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
			"by names in the place of ids, and without what goes without saying. Without a directory, or\n" +
			"with -, all goes to standard output. The same network always gives the same bytes. What a\n" +
			"controller makes by itself is left out, and so is every secret.",
		Example: "  netkeep export network\n  netkeep export --label team=web > web.yaml",
		Args:    between(0, 1),
	}
	label := labelFlag(cmd)
	abroad := cmd.Flags().Bool("openziti", false, "Write JSON that ziti ops import reads, to standard output; what that cannot say is named on standard error.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		l, err := label()
		if err != nil {
			return err
		}
		if *abroad {
			if l != nil || len(args) > 0 {
				return Usagef("--openziti writes all of the network to standard output, without --label")
			}
			return exportAbroad(cmd.Context(), s)
		}
		if len(args) > 0 && args[0] != "-" {
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

// exportAbroad writes the network as OpenZiti's command line reads it.
func exportAbroad(ctx context.Context, s *session) error {
	network, err := manifest.Load(ctx, source{s})
	if err != nil {
		return err
	}
	text, left, err := network.EncodeAbroad()
	if err != nil {
		return err
	}
	for _, what := range left {
		s.Notef("left out: %s", screen.Plain(what))
	}
	_, err = s.Out.Write(text)
	return err
}

// wanted is what plan and apply have in common.
type wanted struct {
	env   Env
	label func() (*manifest.Label, error)
	opt   manifest.Options

	maxDeletes int // -1 if nobody has said
}

func newWanted(cmd *cobra.Command, env Env) *wanted {
	w := &wanted{env: env, label: labelFlag(cmd)}
	cmd.Flags().BoolVar(&w.opt.Prune, "prune", false, "Delete what is not in the files, except for what a controller makes by itself; with --label, only what has it.")
	cmd.Flags().IntVar(&w.maxDeletes, "max-deletes", -1, "How many records --prune may delete; needed if that is more than a tenth of those that the files look after.")
	cmd.Flags().BoolVar(&w.opt.Adopt, "adopt", false, "Give the label to records that the files name and that do not have it.")
	return w
}

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
	if n := len(p.Changes); n > mostChanges && p.Repaired > 0 {
		return nil, nil, fmt.Errorf("these are %d changes, which takes several parts, and some of them make records anew that others refer to, which takes one: apply some of the files first", n)
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
func (w *wanted) look(ctx context.Context, s *session, paths []string, form string, binding bool) (*plan, []change, error) {
	wish, changes, err := w.changes(ctx, s, paths)
	if err == nil {
		err = w.spare(s, wish, binding)
	}
	if err != nil {
		return nil, nil, err
	}
	p := new(plan)
	switch {
	case len(changes) > mostChanges:
		p = counted(changes)
	case len(changes) > 0:
		if p, err = s.change(ctx, changes, true, ""); err != nil {
			return nil, nil, s.nearby(ctx, err, changes)
		}
	}
	switch {
	case form != formText && binding:
		return p, changes, nil // what was done is told later
	case form != formText:
		return p, changes, s.value(form, p)
	case len(changes) > mostChanges:
		s.tellParts(p, changes)
		return p, changes, nil
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
	save := cmd.Flags().String("save", "", "File to write the plan to, for netkeep apply --plan.")
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		p, changes, err := w.look(cmd.Context(), s, args, *output, *save != "" && *output == formText)
		if err == nil && *save != "" {
			err = s.savePlan(*save, p, changes)
		}
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
			"changes in between so that something else would come of them, nothing is done. More than\n" +
			"10000 changes are made in parts, each of which is made whole or not at all; after a part\n" +
			"that fails, the same command goes on from there.",
		Example: "  netkeep apply network\n  netkeep apply web.yaml --label team=web --prune --yes\n  netkeep plan network --save plan.json && netkeep apply --plan plan.json",
		Args:    between(0, -1),
	}
	w := newWanted(cmd, env)
	yes := yesFlag(cmd)
	dry := dryFlag(cmd)
	overrideFlag(cmd)
	output := outputFlag(cmd, formText)
	saved := cmd.Flags().String("plan", "", "File that netkeep plan --save wrote: these changes are made, if the outcome is still the one that was shown.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		if (*saved == "") == (len(args) == 0) {
			return Usagef("give files or --plan: %s", cmd.UseLine())
		}
		if *output != formText && !*yes && !*dry && *saved == "" {
			return Usagef("give --yes with -o %s: there is nobody to ask", *output)
		}
		if *saved != "" {
			return s.applyPlan(cmd.Context(), env, *saved, *output)
		}
		p, changes, err := w.look(cmd.Context(), s, args, *output, !*dry)
		if err == nil && !*dry && !p.differs() && *output != formText {
			return s.value(*output, p)
		}
		if err != nil || *dry || !p.differs() {
			return err
		}
		if !*yes {
			if err := s.sure("Make these changes?"); err != nil {
				return err
			}
		}
		return s.apply(cmd.Context(), changes, p.Digest, *output)
	})
	return cmd
}

// savedPlan is a plan in a file.
type savedPlan struct {
	Controller string   `json:"controller"`
	Digest     string   `json:"digest"`
	Changes    []change `json:"changes"`
}

func (s *session) savePlan(file string, p *plan, changes []change) error {
	data, err := json.Marshal(savedPlan{s.profile.Address, p.Digest, changes}, json.Deterministic(true))
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o600)
}

// applyPlan makes the changes of a plan that was looked at before.
func (s *session) applyPlan(ctx context.Context, env Env, file, form string) error {
	data, err := readFile(env, file, maxPlan)
	if err != nil {
		return err
	}
	var saved savedPlan
	switch err := json.Unmarshal(data, &saved); {
	case err != nil:
		return fmt.Errorf("%s is no plan: %w", file, err)
	case saved.Controller != s.profile.Address:
		return fmt.Errorf("%s is a plan for %s, and you are logged in to %s", file, saved.Controller, s.profile.Address)
	case len(saved.Changes) == 0:
		s.Printf("Nothing would change.\n")
		return nil
	}
	return s.apply(ctx, saved.Changes, saved.Digest, form)
}

// maxPlan is more than a controller takes.
const maxPlan = 128 << 20
