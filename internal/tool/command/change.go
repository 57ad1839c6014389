package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/advice"
	"netkeep.internal/internal/tool/screen"
)

// What a change does.
const (
	opCreate = "create"
	opPatch  = "patch"
	opDelete = "delete"
)

// change is one of a list that is carried out whole or not at all.
type change struct {
	Op     string         `json:"op"`
	Kind   string         `json:"kind"`
	Target string         `json:"target,omitempty"`
	Body   map[string]any `json:"body,omitempty"`
}

// plan is what a list of changes does, or would do.
type plan struct {
	Applied bool   `json:"applied"`
	Digest  string `json:"digest"`
	Counts  struct {
		Created   int `json:"created"`
		Changed   int `json:"changed"`
		Unchanged int `json:"unchanged"`
		Deleted   int `json:"deleted"`
	} `json:"counts"`
	Changes          []outcome `json:"changes"`
	Consequences     []outcome `json:"consequences"`
	MoreConsequences bool      `json:"moreConsequences"`
	Access           moves     `json:"access"`
	Assertions       []breach  `json:"assertions"`
}

// moves are who gains and loses what.
type moves struct {
	Gained int    `json:"gained"`
	Lost   int    `json:"lost"`
	Pairs  []pair `json:"pairs"`
	More   bool   `json:"more"`
}

// outcome is what became of one record.
type outcome struct {
	Op      string `json:"op,omitempty"`
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	Fields  []struct {
		Name   string         `json:"name"`
		Before jsontext.Value `json:"before"`
		After  jsontext.Value `json:"after"`
	} `json:"fields,omitempty"`
}

// pair is an identity that gains or loses a service.
type pair struct {
	IdentityID string `json:"identityId"`
	Identity   string `json:"identity"`
	ServiceID  string `json:"serviceId"`
	Service    string `json:"service"`
	Type       string `json:"type"`
	Change     string `json:"change"`
}

// changeAs is change for a list that has an id to ask after it by.
func (s *session) changeAs(ctx context.Context, id string, changes []change, look bool, expect string) (*plan, error) {
	body := map[string]any{"changes": changes}
	if id != "" {
		body["id"] = id
	}
	if expect != "" {
		body["expect"] = expect
	}
	req := remote.Request{Method: http.MethodPost, Path: "/changes", Body: body, Query: url.Values{}}
	what := "Making " + count(int64(len(changes)), "change", "changes")
	if look {
		req.Query.Set("plan", "true")
		what = "Planning " + count(int64(len(changes)), "change", "changes")
	}
	if s.override {
		req.Query.Set("override", "true")
	}
	defer s.Working(what, s.now)()
	p := new(plan)
	return p, s.Call(ctx, req, p)
}

// change makes changes, or only looks what they would do.
func (s *session) change(ctx context.Context, changes []change, look bool, expect string) (*plan, error) {
	return s.changeAs(ctx, "", changes, look, expect)
}

// write makes the changes of one command and says what was done.
func (s *session) write(cmd *cobra.Command, changes []change, dry bool, form string) error {
	p, err := s.change(cmd.Context(), changes, dry, "")
	if err != nil {
		return s.nearby(cmd.Context(), err, changes)
	}
	return s.made(p, dry, form)
}

// made says what was done, or would be.
func (s *session) made(p *plan, dry bool, form string) error {
	switch {
	case form == formJSON || form == formYAML:
		return s.value(form, p)
	case form == formName:
		for _, o := range p.Changes {
			s.Printf("%s\n", screen.Plain(o.label()))
		}
		return nil
	case dry:
		return s.tell(p)
	}
	for _, o := range p.Changes {
		s.Printf("%s %s %s%s\n", strings.ReplaceAll(o.Kind, "-", " "), screen.Plain(o.label()), o.Outcome, s.Faint(idOf(o)))
	}
	return nil
}

func idOf(o outcome) string {
	if o.Outcome != "created" || o.ID == "" {
		return ""
	}
	return " (" + o.ID + ")"
}

func (o outcome) label() string {
	if o.Name != "" {
		return o.Name
	}
	return o.ID
}

// at finds the index in the name of a wrong field.
var at = regexp.MustCompile(`^changes\.(\d+)\.(?:body\.)?(.*)$`)

// nearby says of an error which of several changes it is about, and where
// something was not found, what is near.
func (s *session) nearby(ctx context.Context, err error, changes []change) error {
	refused, ok := errors.AsType[*remote.Error](err)
	if !ok {
		return err
	}
	if refused.Code == codeAssertion {
		return fmt.Errorf("%w; if that is meant, give --override", err)
	}
	m := at.FindStringSubmatch(refused.Field)
	if m == nil {
		return err
	}
	i, _ := strconv.Atoi(m[1])
	if i >= len(changes) {
		return err
	}
	c := changes[i]
	n, _ := named(c.Kind)
	if m[2] == "target" && errors.Is(err, remote.ErrMissing) && n.Def != nil {
		return s.missing(ctx, n, c.Target)
	}
	e := *refused
	e.Field = m[2]
	if missing := s.missingTarget(ctx, n, m[2], refused.Value); missing != nil {
		return fmt.Errorf("%s %s: %s: %w", strings.ReplaceAll(c.Kind, "-", " "), c.label(), m[2], missing)
	}
	return &ofChange{which: strings.ReplaceAll(c.Kind, "-", " ") + " " + c.label(), error: &e}
}

// ofChange is an error of one of several changes.
type ofChange struct {
	which string // what people call the record that it is about
	error
}

func (o *ofChange) Error() string { return o.which + ": " + o.error.Error() }
func (o *ofChange) Unwrap() error { return o.error }

// label is what people call the record that a change is about.
func (c change) label() string {
	if name, ok := c.Body["name"].(string); ok && c.Target == "" {
		return name
	}
	return c.Target
}

// missingTarget says which of the records is not there that a field refers to;
// nil if that is not what is wrong.
func (s *session) missingTarget(ctx context.Context, n noun, path string, value jsontext.Value) error {
	if n.Def == nil {
		return nil
	}
	name, _, _ := strings.Cut(path, ".")
	f := n.Field(name)
	if f == nil || len(f.Enum) > 0 || f.Ref == "" && f.Roles == "" {
		return nil
	}
	target, err := named(cmp.Or(f.Ref, f.Roles))
	if err != nil {
		return nil
	}
	text, _ := unquote(value)
	for word := range strings.FieldsSeq(strings.Trim(text, "[]")) {
		if _, err := s.find(ctx, target, strings.TrimPrefix(word, "@")); errors.Is(err, remote.ErrMissing) {
			return err
		}
	}
	return nil
}

// tell says in a terminal's words what a list of changes does.
func (s *session) tell(p *plan) error {
	if p.Counts.Created+p.Counts.Changed+p.Counts.Deleted == 0 {
		s.Printf("Nothing would change.\n")
		return nil
	}
	for _, o := range p.Changes {
		s.tellOutcome(o, "")
	}
	for _, o := range p.Consequences {
		s.tellOutcome(o, "  (follows)")
	}
	if p.MoreConsequences {
		s.Printf("  … and more that follow\n")
	}
	same := ""
	if p.Counts.Unchanged > 0 {
		same = fmt.Sprintf(", %d as they are", p.Counts.Unchanged)
	}
	s.Printf("\n%d to create, %d to change, %d to delete%s.\n", p.Counts.Created, p.Counts.Changed, p.Counts.Deleted, same)
	if err := s.tellAccess(p); err != nil {
		return err
	}
	s.tellBreaches(p)
	s.tellUnverified(p)
	return nil
}

// tellUnverified says what is still to be done for CAs to count that are new.
func (s *session) tellUnverified(p *plan) {
	for _, o := range p.Changes {
		if o.Outcome == "created" && o.Kind == cas.Name {
			s.Printf("ca %s counts for nothing until it is verified: %s\n", screen.Plain(o.label()), screen.Plain(advice.Command("verify", cas.Name, o.label(), "--ca-cert", "FILE", "--ca-key", "FILE")))
		}
	}
}

// marks are how outcomes are told from each other without colour.
func (s *session) mark(outcome string) string {
	switch outcome {
	case "created":
		return s.Good("+")
	case "deleted":
		return s.Bad("-")
	}
	return s.Odd("~")
}

func (s *session) tellOutcome(o outcome, why string) {
	if o.Outcome == "unchanged" {
		return
	}
	s.Printf("%s %s %s%s\n", s.mark(o.Outcome), strings.ReplaceAll(o.Kind, "-", " "), screen.Plain(o.label()), why)
	for _, f := range o.Fields {
		s.Printf("    %s: %s -> %s\n", f.Name, shown(f.Before), shown(f.After))
	}
}

// shown is a value in a difference.
func shown(raw jsontext.Value) string {
	if text := cell(raw); text != "" {
		return screen.Plain(text)
	}
	return "(nothing)"
}

// tellAccess says who gains and loses what.
func (s *session) tellAccess(p *plan) error {
	a := p.Access
	if a.Gained+a.Lost == 0 {
		s.Printf("Nobody gains or loses a service.\n")
		return nil
	}
	return s.tellMoves(a, "gains", "loses")
}

// tellMoves lists who gains and loses what, in these words.
func (s *session) tellMoves(a moves, gains, loses string) error {
	s.Printf("%d gained, %d lost, counted as one identity and one service each:\n\n", a.Gained, a.Lost)
	t := screen.Table{Heads: []string{"", "identity", "service", "type"}}
	for _, pr := range a.Pairs {
		word := loses
		if pr.Change == "gained" {
			word = gains
		}
		t.Rows = append(t.Rows, []string{word, pr.Identity, pr.Service, pr.Type})
	}
	t.Paint = func(row, column int, text string) string {
		switch {
		case column != 0:
			return text
		case a.Pairs[row].Change == "gained":
			return s.Good(text)
		}
		return s.Bad(text)
	}
	if err := s.Write(t); err != nil {
		return err
	}
	if a.More {
		s.Printf("… and more\n")
	}
	return nil
}

// do makes a call that is not of lists.
func (s *session) do(ctx context.Context, method, path string, in, out any) error {
	return s.Call(ctx, remote.Request{Method: method, Path: path, Body: in}, out)
}

// objects is a member that is a list of objects.
func (r record) objects(path string) (list []record) {
	var items []jsontext.Value
	if json.Unmarshal(r.at(path), &items) != nil {
		return nil
	}
	for _, raw := range items {
		if rec, err := readRecord(raw); err == nil {
			list = append(list, rec)
		}
	}
	return list
}
