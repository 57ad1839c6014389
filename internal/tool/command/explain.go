package command

import (
	"context"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/screen"
)

// explanation is why somebody can or cannot use a service.
type explanation struct {
	Identity string   `json:"identity"`
	Service  string   `json:"service"`
	Type     string   `json:"type"`
	Allowed  bool     `json:"allowed"`
	Unknown  []string `json:"unknown"`
	Links    []struct {
		Link    string `json:"link"`
		Passed  bool   `json:"passed"`
		What    string `json:"what"`
		Remedy  string `json:"remedy"`
		Because []struct {
			Kind  string `json:"kind"`
			Name  string `json:"name"`
			Role  string `json:"role"`
			From  string `json:"from"`
			Until string `json:"until"`
		} `json:"because"`
	} `json:"links"`
}

// both are the ids of an identity and a service that were named.
func (s *session) both(ctx context.Context, args []string) (identity, service string, err error) {
	if identity, err = s.idOf(ctx, identities, args[0]); err == nil {
		service, err = s.idOf(ctx, services, args[1])
	}
	return identity, service, err
}

func explainCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "explain IDENTITY SERVICE",
		Short:             "Say why an identity can or cannot use a service, link by link, and what would let it.",
		Example:           "  netkeep explain bob wiki\n  netkeep explain server wiki --bind",
		Args:              Exactly(2),
		ValidArgsFunction: completeBoth(env),
	}
	bind := cmd.Flags().Bool("bind", false, "Whether it can host the service.")
	cmd.Flags().Bool("dial", true, "Whether it can use the service.")
	output, at := outputFlag(cmd, formText), atFlag(cmd)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		if err := s.lookBack(*at); err != nil {
			return err
		}
		identity, service, err := s.both(cmd.Context(), args)
		if err != nil {
			return err
		}
		var raw jsontext.Value
		query := url.Values{"type": {typeName(*bind)}}
		if s.at != "" {
			query.Set("at", s.at)
		}
		if err := s.Get(cmd.Context(), "/identities/"+identity+"/explain/"+service, query, &raw); err != nil {
			return err
		}
		var e explanation
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		if err := told(s, *output, raw, s.explain); err != nil || e.Allowed {
			return err
		}
		return errCannot
	})
	return cmd
}

// completeBoth completes an identity and then a service.
func completeBoth(env Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return completeNames(env, identities)(cmd, args, begun)
		}
		return completeNames(env, services)(cmd, args, begun)
	}
}

func typeName(bind bool) string {
	if bind {
		return "Bind"
	}
	return "Dial"
}

func (s *session) explain(e explanation) error {
	doing := "use"
	if e.Type == "Bind" {
		doing = "host"
	}
	can, could := "can", "cannot"
	switch {
	case s.toCome():
		can, could = "will be able to", "will not be able to"
	case s.at != "":
		can, could = "could", "could not"
	}
	if can = s.Good(can); !e.Allowed {
		can = s.Bad(could)
	}
	s.Printf("%s %s %s %s.\n\n", screen.Plain(e.Identity), can, doing, screen.Plain(e.Service))
	width := 0
	for _, l := range e.Links {
		width = max(width, len(l.Link))
	}
	for _, l := range e.Links {
		mark := s.Bad("FAIL")
		if l.Passed {
			mark = s.Good("pass")
		}
		indent := width + 8
		s.Printf("%s  %-*s  %s\n", mark, width, l.Link, s.Flow(screen.Plain(l.What), indent))
		for _, b := range l.Because {
			by := ""
			if b.Role != "" {
				by = " by " + b.Role
			}
			if b.From != "" {
				by += ", which the signer " + b.From + " says"
			}
			if b.Until != "" {
				by += ", until " + b.Until
			}
			text := s.Flow(strings.ReplaceAll(b.Kind, "-", " ")+" "+screen.Plain(b.Name+by), indent)
			s.Printf("%s%s\n", strings.Repeat(" ", indent), s.Faint(text))
		}
		if l.Remedy != "" {
			// With more room than the rest: whoever copies a command wants one line.
			s.Printf("      -> %s\n", s.Flow(screen.Plain(l.Remedy), 9))
		}
	}
	if len(e.Unknown) > 0 {
		when := "in the past"
		if s.toCome() {
			when = "yet"
		}
		s.Printf("\nNothing is known %s of: %s.\n", when, strings.Join(e.Unknown, ", "))
	}
	return nil
}

func whoCanCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{
		Use:     "who-can dial|bind SERVICE",
		Short:   "List the identities that policies let use or host a service.",
		Example: "  netkeep who-can dial wiki",
	})
	for _, bind := range []bool{false, true} {
		use, short := "dial SERVICE", "List the identities that may use a service."
		if bind {
			use, short = "bind SERVICE", "List the identities that may host a service."
		}
		c := &cobra.Command{Use: use, Short: short, Args: Exactly(1), ValidArgsFunction: completeNames(env, services)}
		output := outputFlag(c, formTable, formWide, formName, formCSV)
		var l listing
		l.flags(c, identities)
		at := atFlag(c)
		c.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
			if err := s.lookBack(*at); err != nil {
				return err
			}
			id, err := s.idOf(cmd.Context(), services, args[0])
			if err != nil {
				return err
			}
			q := l.query(identities)
			q.Path = "/services/" + id + "/who-can"
			q.Query.Set("type", typeName(bind))
			return s.listed(cmd, identities, q, append(identities.columns(*output == formWide), column{head: "until", path: "until", member: "until"}), *output)
		})
		cmd.AddCommand(c)
	}
	return cmd
}

func whatCanCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "what-can IDENTITY", Short: "List the services that an identity may use or host.",
		Args: Exactly(1), ValidArgsFunction: completeNames(env, identities),
	}
	output := outputFlag(cmd, formTable, formName, formCSV)
	var l listing
	l.flags(cmd, services)
	at := atFlag(cmd)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		if err := s.lookBack(*at); err != nil {
			return err
		}
		id, err := s.idOf(cmd.Context(), identities, args[0])
		if err != nil {
			return err
		}
		q := l.query(services)
		q.Path = "/identities/" + id + "/what-can"
		return s.listed(cmd, services, q, []column{
			{head: "service", path: "name", member: "name"}, {head: "dial", path: "dial", member: "dial"}, {head: "bind", path: "bind", member: "bind"},
			{head: "roles", path: "roleAttributes", member: "roleAttributes"},
			{head: "dial until", path: "dialUntil", member: "dialUntil"}, {head: "bind until", path: "bindUntil", member: "bindUntil"},
		}, *output)
	})
	return cmd
}

// listed shows a list that is asked for in a way of its own.
func (s *session) listed(cmd *cobra.Command, n noun, q remote.List, cols []column, form string) error {
	s.narrow(n, &q, cols, form)
	if s.at != "" {
		q.Query.Set("at", s.at)
	}
	progress := s.Progress("Reading "+strings.ReplaceAll(n.Path, "-", " "), 0, s.now)
	q.Progress = progress.Set
	defer progress.End()
	if form == formJSON || form == formYAML {
		return s.listWhole(cmd, q, form, progress)
	}
	var recs []record
	total, err := s.Each(cmd.Context(), q, func(raw jsontext.Value) error {
		rec, err := readRecord(raw)
		recs = append(recs, rec)
		return err
	})
	if err != nil {
		return err
	}
	progress.End()
	return s.show(n, cols, recs, total, form)
}
