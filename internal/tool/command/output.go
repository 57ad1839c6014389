package command

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/lang/document"
	"netkeep.internal/internal/tool/screen"
)

// The forms of output.
const (
	formTable = "table"
	formWide  = "wide"
	formJSON  = "json"
	formYAML  = "yaml"
	formName  = "name"
	formCSV   = "csv"
	formText  = "text" // sentences for people
)

// outputFlag gives a command a flag for the form of its output.
func outputFlag(cmd *cobra.Command, usual string, more ...string) *string {
	forms := append([]string{usual, formJSON, formYAML}, more...)
	v := &choice{value: usual, of: forms}
	cmd.Flags().VarP(v, "output", "o", "Form of the output: "+strings.Join(forms, ", ")+".")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
	return &v.value
}

// choice is a flag that is one of a few words.
type choice struct {
	value string
	of    []string
}

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "FORM" }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("must be one of %s", strings.Join(c.of, ", "))
	}
	c.value = s
	return nil
}

// value writes something as JSON or YAML.
func (s *session) value(form string, v any) error {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return s.raw(form, data)
}

// raw writes JSON as JSON or YAML.
func (s *session) raw(form string, raw jsontext.Value) error {
	text, err := rendered(form, raw, s.Shows)
	if err != nil {
		return err
	}
	_, err = s.Out.Write(text)
	return err
}

// told writes an answer as it came, or has text tell it to people.
func told[T any](s *session, form string, raw jsontext.Value, text func(T) error) error {
	if form != formText {
		return s.raw(form, raw)
	}
	var answer T
	if err := json.Unmarshal(raw, &answer); err != nil {
		return err
	}
	return text(answer)
}

// rendered is JSON as JSON or YAML for people. For a terminal, whatever would
// move the cursor or change colours is written as an escape.
func rendered(form string, raw jsontext.Value, shown bool) ([]byte, error) {
	if form == formYAML {
		return document.YAML(raw)
	}
	raw = slices.Clone(raw)
	if err := raw.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, err
	}
	if shown {
		raw = screen.EscapeJSON(raw)
	}
	return append(raw, '\n'), nil
}

// column is one of a table's.
type column struct {
	head   string
	path   string // of the member that is shown
	member string // that an answer must hold for it
	// say, if set, is how the value is shown.
	say func(jsontext.Value) string
}

// columns are what a table of the kind shows.
func (n noun) columns(wide bool) (cols []column) {
	for _, c := range n.Table(wide) {
		col := column{head: c.Head, path: c.Path, member: c.Member}
		switch {
		case c.Path == "path.nodes":
			col.say = sayWay
		case c.Field != nil && c.Field.Lasts():
			col.say = sayLatency
		}
		cols = append(cols, col)
	}
	return cols
}

// cell is a value as a table shows it.
func cell(raw jsontext.Value) string {
	switch raw.Kind() {
	case '"':
		text, _ := unquote(raw)
		return shortTime(text)
	case 't':
		return "yes"
	case 'f':
		return "no"
	case '[':
		return strings.Join(cells(raw), ",")
	case '{':
		rec, err := readRecord(raw)
		switch {
		case err != nil || len(rec.members) == 0:
			return ""
		case rec.text("name") != "":
			return rec.text("name")
		case rec.text("id") != "" && rec.members["_links"] != nil:
			return rec.text("id") // of what has no name
		}
		return string(raw)
	case 'n', 0:
		return ""
	}
	return string(raw)
}

// cells are the entries of a list as a table shows them.
func cells(raw jsontext.Value) []string {
	var items []jsontext.Value
	if json.Unmarshal(raw, &items) != nil {
		return nil
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = cell(item)
	}
	return texts
}

// shortTime is a moment without what nobody reads; other texts stay.
func shortTime(text string) string {
	if len(text) < len("2006-01-02T15:04:05Z") || text[4] != '-' {
		return text
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

// rows turns records into those of a table.
func rows(cols []column, recs []record) screen.Table {
	t := screen.Table{}
	for _, col := range cols {
		t.Heads = append(t.Heads, col.head)
	}
	for _, rec := range recs {
		row := make([]string, len(cols))
		for i, col := range cols {
			say := cell
			if col.say != nil {
				say = col.say
			}
			row[i] = say(rec.at(col.path))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// csv writes a table for a spreadsheet, or for eyes if it goes to a terminal.
func (s *session) csv(t screen.Table) error {
	if s.Shows {
		for _, row := range t.Rows {
			for i, cell := range row {
				row[i] = screen.Plain(cell)
			}
		}
	}
	c := csv.NewWriter(s.Out)
	if err := c.Write(t.Heads); err != nil {
		return err
	}
	return c.WriteAll(t.Rows)
}
