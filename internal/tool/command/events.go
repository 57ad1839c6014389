package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/screen"
)

// event is a change of a record, as the controller tells it.
type event struct {
	Kind   string    `json:"kind"`
	ID     string    `json:"id"`
	Name   string    `json:"name"`
	Verb   string    `json:"verb"`
	At     time.Time `json:"at"`
	Author struct {
		Kind      string `json:"kind"`
		ID        string `json:"id"`
		Name      string `json:"name"`
		Operation string `json:"operation"`
		Source    string `json:"source"`
	} `json:"author"`
	Reason  string `json:"reason"`  // of what happens among routers
	Message string `json:"message"` // of what is no change
}

// auditEvent is an entry of the audit log, as the controller tells it.
type auditEvent struct {
	Event      string    `json:"event"`
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason"`
	Count      int64     `json:"count"`
	CreatedAt  time.Time `json:"createdAt"`
	ActorKind  string    `json:"actorKind"`
	ActorName  string    `json:"actorName"`
	Address    string    `json:"address"`
	TargetKind string    `json:"targetKind"`
	TargetName string    `json:"targetName"`
}

// line is what people see of it.
func (e *auditEvent) line() string {
	by := e.ActorName
	if by == "" {
		by = e.ActorKind
	}
	parts := []string{e.CreatedAt.Local().Format("2006-01-02 15:04:05"), e.Event}
	for _, part := range []string{e.TargetKind, e.TargetName} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	parts = append(parts, "by", by)
	if e.Address != "" {
		parts = append(parts, "from", e.Address)
	}
	if e.Count > 1 {
		parts = append(parts, fmt.Sprintf("%d times", e.Count))
	}
	line := strings.Join(parts, " ")
	if e.Reason != "" {
		line += ": " + e.Reason
	}
	return line
}

// eventsPause is how long one waits before a stream that has ended is asked for again.
const eventsPause = time.Second

func eventsCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show what changes in the network as it happens, and who changes it, until you stop it.",
		Long: "Show what changes in the network as it happens, and who changes it, until you stop it. Where the\n" +
			"controller goes away it is asked again, or another is, and nothing is left out; where that was too\n" +
			"long for anybody to know what was between, a line says so.",
		Example: "  netkeep events\n" +
			"  netkeep events --kinds services,service-policies --filter 'authorName = \"ann\"'\n" +
			"  netkeep events --kinds audit-entries --filter 'verb = \"login-refused\"'\n" +
			"  netkeep events --json --from ID",
		Args: Exactly(0),
	}
	kinds := cmd.Flags().StringSlice("kinds", nil, "Kinds of the records whose changes are shown, such as services, and audit-entries, presences, links or circuits for what the audit log tells and what happens among routers; all records if not given.")
	where := cmd.Flags().String("filter", "", "Which events, as a filter over kind, id, name, verb, authorKind, authorId, authorName, operation, source and at; all if not given.")
	from := cmd.Flags().String("from", "", "Id of the event to go on after, which --json shows; what happens from now on if not given.")
	times := cmd.Flags().Int("times", 0, "How many lines to show in all; until you stop it if 0.")
	asJSON := cmd.Flags().Bool("json", false, "Show each event as a line of JSON, with the record before and after.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		query := url.Values{}
		if len(*kinds) > 0 {
			query.Set("kinds", strings.Join(*kinds, ","))
		}
		if *where != "" {
			query.Set("filter", *where)
		}
		f := &eventFeed{session: s, query: query, last: *from, json: *asJSON, left: *times}
		return f.run(cmd.Context())
	})
	return cmd
}

// eventFeed is what events are shown by.
type eventFeed struct {
	*session
	query url.Values
	last  string // id of the last event
	json  bool
	left  int // lines to show; any number if 0
}

// errShown is that enough was shown.
var errShown = errors.New("enough was shown")

// run shows events until ctx ends, enough were shown or the controller refuses.
func (f *eventFeed) run(ctx context.Context) error {
	renew, said := f.Renew, false
	for {
		f.Renew = renew // a session ends more than once while somebody looks
		r := remote.Request{Method: http.MethodGet, Path: "/events", Query: f.query}
		if f.last != "" {
			r.Header = map[string]string{"Last-Event-ID": f.last}
		}
		err := f.Stream(ctx, r, func() { said = false }, f.show)
		switch {
		case ctx.Err() != nil || errors.Is(err, errShown):
			return nil
		case !passing(err):
			return err
		case !said:
			f.Notef("%v; it is asked again", err)
			said = true
		}
		select {
		case <-time.After(eventsPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// passing reports whether an error may be gone in a while.
func passing(err error) bool {
	if _, doubtful := errors.AsType[*remote.Untrusted](err); doubtful {
		return false
	}
	e, said := errors.AsType[*remote.Error](err)
	return errors.Is(err, remote.ErrUnreachable) || said && slices.Contains([]int{http.StatusTooManyRequests, http.StatusServiceUnavailable}, e.Status)
}

// show shows an event.
func (f *eventFeed) show(e remote.Event) error {
	if e.ID != "" {
		f.last = e.ID
	}
	var told event
	if err := json.Unmarshal(e.Data, &told); err != nil {
		return err
	}
	switch {
	case e.Name == remote.EventEnd:
		f.Notef("%s", screen.Plain(told.Message))
	case f.json:
		line, err := json.Marshal(struct {
			Event string         `json:"event"`
			ID    string         `json:"eventId"`
			Data  jsontext.Value `json:"data"`
		}{e.Name, e.ID, jsontext.Value(e.Data)})
		if err != nil {
			return err
		}
		return f.line(string(screen.EscapeJSON(line)))
	case e.Name == "reset" || e.Name == "missed":
		f.Notef("%s", screen.Plain(told.Message))
	case e.Name == "audit":
		var entry auditEvent
		if err := json.Unmarshal(e.Data, &entry); err != nil {
			return err
		}
		return f.line(screen.Plain(entry.line()))
	case slices.Contains([]string{"change", "router", "link", "circuit"}, e.Name):
		return f.line(screen.Plain(told.line()))
	}
	return nil
}

// line shows one.
func (f *eventFeed) line(text string) error {
	f.Printf("%s\n", text)
	if f.left--; f.left == 0 {
		return errShown
	}
	return nil
}

// line is what people see of an event.
func (e *event) line() string {
	name, by := e.Name, e.Author.Name
	if name == "" {
		name = e.ID
	}
	if by == "" {
		by = e.Author.Kind
	}
	parts := []string{e.At.Local().Format("2006-01-02 15:04:05"), e.Verb, e.Kind, name, "by", by}
	if e.Author.Operation != "" {
		parts = append(parts, "("+e.Author.Operation+")")
	}
	if e.Author.Source != "" {
		parts = append(parts, "from", e.Author.Source)
	}
	line := strings.Join(parts, " ")
	if e.Reason != "" {
		line += ": " + e.Reason
	}
	return line
}
