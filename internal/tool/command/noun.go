package command

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/spell"
	"netkeep.internal/internal/model"
)

// noun is a kind as commands speak of it.
type noun struct{ *kind.Def }

// nouns are the kinds that something can be done with.
func nouns(verbs kind.Verbs) (all []noun) {
	for _, d := range model.All.Defs {
		if d.Verbs.Has(verbs) {
			all = append(all, noun{d})
		}
	}
	slices.SortFunc(all, func(a, b noun) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// forEach gives a command one beneath it for every kind that something can be
// done with; verb returns nil where another command does it.
func forEach(verbs kind.Verbs, env Env, verb func(Env, noun) *cobra.Command, cmd *cobra.Command) *cobra.Command {
	for _, n := range nouns(verbs) {
		if c := verb(env, n); c != nil {
			cmd.AddCommand(c)
		}
	}
	return Parent(cmd)
}

// named returns the kind that a word stands for.
func named(word string) (noun, error) {
	var words []string
	for _, n := range nouns(kind.Lists) {
		if word == n.Name || slices.Contains(n.others(), word) {
			return n, nil
		}
		words = append(words, n.Name, n.Path)
	}
	if near := spell.Near(word, words); len(near) > 0 {
		return noun{}, Usagef("there is no kind %q; did you mean %s?", word, strings.Join(near, " or "))
	}
	return noun{}, Usagef("there is no kind %q; see: netkeep list --help", word)
}

// others are further words for the kind: its plural, and the initials of a
// long one.
func (n noun) others() []string {
	words := strings.Split(n.Name, "-")
	if len(words) == 1 {
		return []string{n.Path}
	}
	var initials strings.Builder
	for _, w := range words {
		initials.WriteByte(w[0])
	}
	return []string{n.Path, initials.String()}
}

// spoken is the kind's name as one would say it.
func (n noun) spoken() string { return strings.ReplaceAll(n.Name, "-", " ") }

// what is the kind in a sentence: what its documentation says after "Create a".
func (n noun) what() string {
	_, after, ok := strings.Cut(n.Doc, ": ")
	if !ok {
		return strings.TrimSuffix(n.Doc, ".")
	}
	return strings.TrimSuffix(after, ".")
}

// hasName reports whether people call the records by a name.
func (n noun) hasName() bool { return n.Field("name") != nil }

// at is where the records are.
func (n noun) at() string {
	if n.Lane == kind.Volatile {
		return fabricRoot + "/" + n.Path
	}
	return "/" + n.Path
}

// quoted writes a text as filters do.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// find returns the record with a name or id.
func (s *session) find(ctx context.Context, n noun, word string) (record, error) {
	list := remote.List{Path: n.at(), Filter: "id = " + quoted(word), Limit: 2}
	if n.hasName() {
		list.Filter += " or name = " + quoted(word)
	}
	if s.at != "" {
		list.Query = map[string][]string{"at": {s.at}}
	}
	page, err := s.Page(ctx, list, 0)
	if err != nil {
		return record{}, err
	}
	var found record
	for _, raw := range page.Records {
		rec, err := readRecord(raw)
		if err != nil {
			return record{}, err
		}
		if found.members == nil || rec.text("id") == word {
			found = rec
		}
	}
	if found.members == nil {
		return record{}, s.missing(ctx, n, word)
	}
	return found, nil
}

// idOf returns the id of the record with a name or id.
func (s *session) idOf(ctx context.Context, n noun, word string) (string, error) {
	rec, err := s.find(ctx, n, word)
	if err != nil {
		return "", err
	}
	return rec.text("id"), nil
}

// missing says that there is no such record, and which names are near.
func (s *session) missing(ctx context.Context, n noun, word string) error {
	advice := "see: netkeep list " + n.Path
	if near := spell.Near(word, s.namesLike(ctx, n, word)); len(near) > 0 {
		advice = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return markf(remote.ErrMissing, "there is no %s %q; %s", n.spoken(), word, advice)
}

// namesLike are names that begin or end as a word does.
func (s *session) namesLike(ctx context.Context, n noun, word string) (names []string) {
	const part = 3
	if !n.hasName() || len(word) < part {
		return nil
	}
	list := remote.List{
		Path: n.at(), Limit: 500, Query: map[string][]string{"fields": {"name"}},
		Filter: "name icontains " + quoted(word[:part]) + " or name icontains " + quoted(word[len(word)-part:]),
	}
	page, err := s.Page(ctx, list, 0)
	if err != nil {
		return nil // what is missing is said in any case
	}
	for _, raw := range page.Records {
		if rec, err := readRecord(raw); err == nil {
			names = append(names, rec.text("name"))
		}
	}
	return names
}

// completeNames offers the names of records to a shell.
func completeNames(env Env, n noun) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		s, err := connect(cmd, env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := remote.List{Path: n.at(), Limit: 100, Query: map[string][]string{"fields": {"id"}}}
		label := "id"
		if n.hasName() {
			label, list.Sort = "name", "name"
			list.Query.Set("fields", "name")
			if begun != "" {
				list.Filter = "name contains " + quoted(begun)
			}
		}
		page, err := s.Page(cmd.Context(), list, 0)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, raw := range page.Records {
			if rec, err := readRecord(raw); err == nil && strings.HasPrefix(rec.text(label), begun) {
				words = append(words, rec.text(label))
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// record is one of an answer's.
type record struct {
	raw     jsontext.Value
	members map[string]jsontext.Value
}

func readRecord(raw jsontext.Value) (record, error) {
	rec := record{raw: raw}
	if err := json.Unmarshal(raw, &rec.members); err != nil {
		return record{}, fmt.Errorf("the controller answered with a record that is no object: %w", err)
	}
	return rec, nil
}

// at returns a member by its path.
func (r record) at(path string) jsontext.Value {
	name, rest, deeper := strings.Cut(path, ".")
	raw := r.members[name]
	if !deeper || raw.Kind() != '{' {
		return raw
	}
	inner, err := readRecord(raw)
	if err != nil {
		return nil
	}
	return inner.at(rest)
}

// text is a member that is a text.
func (r record) text(path string) string {
	s, _ := unquote(r.at(path))
	return s
}

// texts is a member that is a list of texts.
func (r record) texts(path string) (list []string) {
	if json.Unmarshal(r.at(path), &list) != nil {
		return nil
	}
	return list
}

func unquote(raw jsontext.Value) (string, bool) {
	if raw.Kind() != '"' {
		return "", false
	}
	b, err := jsontext.AppendUnquote(nil, raw)
	return string(b), err == nil
}

// label is what people call the record.
func (r record) label() string {
	if name := r.text("name"); name != "" {
		return name
	}
	return r.text("id")
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}
