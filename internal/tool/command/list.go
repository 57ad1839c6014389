package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/tool/screen"
)

func listCommand(env Env) *cobra.Command {
	return forEach(kind.Lists, env, listKind, &cobra.Command{
		Use:     "list KIND",
		Aliases: []string{"ls"},
		Short:   "List records of a kind.",
		Example: "  netkeep list identities --filter 'name contains \"bob\"'\n  netkeep list services -o name",
	})
}

// listing is what a list is asked for.
type listing struct {
	filter, sort string
	of           string // kind and name of what they belong to
	only         []*condition
	roles        []string
	limit        int64
}

func listKind(env Env, n noun) *cobra.Command {
	cmd := &cobra.Command{
		Use:     n.Path,
		Aliases: slices.DeleteFunc(append([]string{n.Name}, n.others()...), func(s string) bool { return s == n.Path }),
		Short:   "List " + strings.ReplaceAll(n.Path, "-", " ") + ": " + n.what() + ".",
		Args:    Exactly(0),
	}
	var l listing
	output := outputFlag(cmd, formTable, formWide, formName, formCSV)
	l.flags(cmd, n)
	l.only = n.conditions(env, cmd)
	if n.Lane == kind.Model || n.Lane == kind.Session {
		cmd.Flags().StringVar(&l.of, "of", "", "Only those that belong to this record, such as service-policy/NAME or identity/NAME.")
	}
	at, within := new(string), new(string)
	if n.Noted {
		at = atFlag(cmd)
	}
	if n.endsBySelf() {
		within = expiringFlag(cmd)
	}
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		if err := s.lookBack(*at); err != nil {
			return err
		}
		if err := s.expiring(&l, *within); err != nil {
			return err
		}
		return s.list(cmd, n, l, *output)
	})
	return cmd
}

// flags lets a command be asked for a part of a list.
func (l *listing) flags(cmd *cobra.Command, n noun) {
	cmd.Flags().StringVar(&l.filter, "filter", "", "Which records, such as 'name contains \"x\" and isAdmin = true'.")
	cmd.Flags().StringVar(&l.sort, "sort", "", "Fields to sort by, with commas between them; desc after one turns it around.")
	cmd.Flags().Int64Var(&l.limit, "limit", 0, "How many at most; all if 0.")
	if n.Attributes != nil {
		cmd.Flags().StringSliceVar(&l.roles, "roles", nil, "Only those that have all of these role attributes, such as '#web'.")
	}
}

// query is the list as the API wants it.
func (l listing) query(n noun) remote.List {
	q := remote.List{Path: n.at(), Filter: l.filter, Sort: l.sort, Limit: l.limit, Query: map[string][]string{}}
	for _, role := range l.roles {
		has := "anyOf(roleAttributes) = " + quoted(strings.TrimPrefix(role, "#"))
		if q.Filter != "" {
			has = "(" + q.Filter + ") and " + has
		}
		q.Filter = has
	}
	if q.Sort == "" && n.hasName() && !strings.Contains(strings.ToLower(q.Filter), "sort by") {
		q.Sort = "name"
	}
	return q
}

// owner is the path of the record that others belong to.
func (s *session) owner(cmd *cobra.Command, of string) (string, error) {
	word, name, ok := strings.Cut(of, "/")
	if !ok {
		return "", Usagef("--of must look like KIND/NAME, such as identity/bob")
	}
	n, err := named(word)
	if err != nil {
		return "", err
	}
	id, err := s.idOf(cmd.Context(), n, name)
	return "/" + n.Path + "/" + id, err
}

func (s *session) list(cmd *cobra.Command, n noun, l listing, form string) error {
	q := l.query(n)
	if l.of != "" {
		owner, err := s.owner(cmd, l.of)
		if err != nil {
			return err
		}
		q.Path = owner + q.Path
	}
	for _, c := range l.only {
		if err := s.heed(cmd, c, &q); err != nil {
			return err
		}
	}
	return s.listed(cmd, n, q, n.columns(form == formWide), form)
}

// narrow asks for no more than is shown.
func (s *session) narrow(n noun, q *remote.List, cols []column, form string) {
	var fields []string
	switch form {
	case formTable, formWide, formCSV:
		for _, col := range cols {
			fields = append(fields, col.member)
		}
	case formName:
		fields = []string{"id"}
		if n.hasName() {
			fields = []string{"id", "name"}
		}
	default:
		return
	}
	slices.Sort(fields)
	q.Query.Set("fields", strings.Join(slices.Compact(fields), ","))
}

// show writes records that were listed.
func (s *session) show(n noun, cols []column, recs []record, total int64, form string) error {
	t := rows(cols, recs)
	switch form {
	case formName:
		var b strings.Builder
		for _, rec := range recs {
			b.WriteString(screen.Plain(rec.label()))
			b.WriteByte('\n')
		}
		_, err := fmt.Fprint(s.Out, b.String())
		return err
	case formCSV:
		return s.csv(t)
	}
	if len(recs) == 0 {
		s.Notef("There are no %s.", strings.ReplaceAll(n.Path, "-", " "))
		return nil
	}
	if err := s.Write(t); err != nil {
		return err
	}
	if int64(len(recs)) < total && s.Shows {
		s.Notef("%s", s.Faint(fmt.Sprintf("These are %d of %d.", len(recs), total)))
	}
	return nil
}

// listWhole writes records as they are answered, one after the other.
func (s *session) listWhole(cmd *cobra.Command, q remote.List, form string, progress *screen.Progress) error {
	if s.Shows {
		q.Progress = nil // it would run through the output
	}
	written := 0
	write := func(text string) error { _, err := fmt.Fprint(s.Out, text); return err }
	_, err := s.Each(cmd.Context(), q, func(raw jsontext.Value) error {
		data, err := rendered(form, raw, s.Shows)
		if err != nil {
			return err
		}
		text := string(data)
		if form == formYAML {
			text = indentList(text)
		} else {
			text = strings.TrimSuffix(text, "\n")
			if written == 0 {
				text = "[\n" + text
			} else {
				text = ",\n" + text
			}
		}
		written++
		return write(text)
	})
	progress.End()
	switch {
	case err != nil:
		return err
	case written == 0:
		return write("[]\n")
	case form == formJSON:
		return write("\n]\n")
	}
	return nil
}

// indentList writes a YAML object as an item of a list.
func indentList(text string) string {
	return "- " + strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\n  "), "  ")
}

func getCommand(env Env) *cobra.Command {
	return forEach(kind.Gets, env, getKind, &cobra.Command{
		Use:     "get KIND NAME",
		Short:   "Show one record, by its name or id.",
		Example: "  netkeep get identity bob\n  netkeep get service web -o yaml",
	})
}

func getKind(env Env, n noun) *cobra.Command {
	cmd := &cobra.Command{
		Use:               n.Name + " NAME",
		Aliases:           n.others(),
		Short:             "Show one of the " + strings.ReplaceAll(n.Path, "-", " ") + ".",
		Args:              Exactly(1),
		ValidArgsFunction: completeNames(env, n),
	}
	output := outputFlag(cmd, formText, formTable, formWide, formName, formCSV)
	at := new(string)
	if n.Noted {
		at = atFlag(cmd)
	}
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		if err := s.lookBack(*at); err != nil {
			return err
		}
		rec, err := s.find(cmd.Context(), n, args[0])
		if err != nil {
			return err
		}
		switch *output {
		case formText:
			return s.detail(rec)
		case formJSON, formYAML:
			return s.raw(*output, rec.raw)
		}
		return s.show(n, n.columns(*output == formWide), []record{rec}, 1, *output)
	})
	return cmd
}

// detail shows a record for people: what it has, and nothing that is empty.
func (s *session) detail(rec record) error {
	members, order, err := ordered(rec.raw)
	if err != nil {
		return err
	}
	var names, values []string
	width := 0
	add := func(name, value string) {
		if value != "" {
			names, values = append(names, name), append(values, value)
			width = max(width, len(name))
		}
	}
	for _, name := range order {
		if name == "_links" || members[name+"Display"] != nil || hasTwin(members, name) {
			continue
		}
		s.spread(add, strings.TrimSuffix(name, "Display"), members[name])
	}
	for i, name := range names {
		s.Printf("%s  %s\n", s.Strong(name+strings.Repeat(" ", width-len(name))), screen.Plain(values[i]))
	}
	return nil
}

// hasTwin reports whether a member is the id of what another shows by name.
func hasTwin(members map[string]jsontext.Value, name string) bool {
	base, ok := strings.CutSuffix(name, "Id")
	return ok && members[base].Kind() == '{'
}

// spread adds a member, or the members of one that is an object without a name.
func (s *session) spread(add func(name, value string), name string, raw jsontext.Value) {
	if raw.Kind() == '{' {
		inner, order, err := ordered(raw)
		if err == nil && len(inner["name"]) == 0 && len(inner) <= 12 {
			for _, member := range order {
				s.spread(add, name+"."+member, inner[member])
			}
			return
		}
	}
	add(name, cell(raw))
}

// ordered reads an object and the order of its members.
func ordered(raw jsontext.Value) (members map[string]jsontext.Value, order []string, err error) {
	rec, err := readRecord(raw)
	if err != nil {
		return nil, nil, err
	}
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)))
	if _, err := dec.ReadToken(); err != nil {
		return nil, nil, err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, nil, err
		}
		order = append(order, name.String())
		if err := dec.SkipValue(); err != nil {
			return nil, nil, err
		}
	}
	return rec.members, order, nil
}
