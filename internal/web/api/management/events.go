package management

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/spell"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// happening is what became of one record, as streams tell it.
type happening struct {
	rev    state.Rev
	at     time.Time
	place  int  // among all changes of the revision, from 1
	last   bool // whether no other follows in the revision
	author state.Author
	state.Change

	entry *model.AuditEntry // if it is no change, but what the audit log tells
	live  *herald.Event     // or what happens among routers
}

// The verbs of a happening.
const (
	verbCreated = "created"
	verbUpdated = "updated"
	verbDeleted = "deleted"
)

func (h *happening) verb() string {
	switch {
	case h.entry != nil:
		return h.entry.Event
	case h.live != nil:
		return h.live.Verb
	case h.Before == nil:
		return verbCreated
	case h.After == nil:
		return verbDeleted
	}
	return verbUpdated
}

// name is what the record is called, or was.
func (h *happening) name() string {
	if h.entry != nil {
		return h.entry.TargetName
	}
	if h.live != nil {
		return h.live.Name
	}
	if h.After != nil {
		return h.Def.Label(h.After)
	}
	return h.Def.Label(h.Before)
}

// happenings is what filters may ask of them.
var happenings = func() *filter.Schema[*happening] {
	text := func(name string, of func(*happening) string) filter.Symbol[*happening] {
		return filter.Symbol[*happening]{Name: name, Type: filter.String, One: func(h *happening) filter.Value { return filter.StringValue(of(h)) }}
	}
	return filter.NewSchema(
		text("kind", func(h *happening) string { return h.Def.Name }),
		text("id", func(h *happening) string { return h.ID }),
		text("name", (*happening).name),
		text("verb", (*happening).verb),
		text("authorKind", func(h *happening) string { return h.author.Kind }),
		text("authorId", func(h *happening) string { return h.author.ID }),
		text("authorName", func(h *happening) string { return h.author.Name }),
		text("operation", func(h *happening) string { return h.author.Operation }),
		text("source", func(h *happening) string { return h.author.Source }),
		filter.Symbol[*happening]{Name: "at", Type: filter.Time, One: func(h *happening) filter.Value { return filter.TimeValue(h.at) }},
	)
}()

// The parameters of events.
var (
	eventKinds  = rest.FieldsParam("kinds", "Kinds of the records whose changes are told, such as services, with commas between them; all if not given. What is told only to who names it: audit-entries for what the audit log tells, and presences, links and circuits for what happens among the routers of this controller.")
	eventFilter = rest.TextParam("filter", "Which events: a filter over kind, id, name, verb (created, updated or deleted), authorKind, authorId, authorName, operation, source and at; all if not given.")
)

// mountEvents offers what happens in the network, as it does.
func mountEvents(a *rest.API, s *api.Service, mounted map[*kind.Def]*rest.Mounted) {
	var kinds []*kind.Def
	for d := range mounted {
		if d.Lane == kind.Model && d.Verbs.Has(kind.Creates|kind.Lists) {
			kinds = append(kinds, d)
		}
	}
	slices.SortFunc(kinds, func(a, b *kind.Def) int { return strings.Compare(a.Name, b.Name) })
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/events", Name: "streamEvents", Tag: "events",
		Doc: "Be told of every change of a record as it happens, by whom and on what occasion, with the record before and after: as server-sent events, " +
			"until the session ends. The first event is named ready, or reset if what came after the last that the client has got is not known any more.",
		Auth: rest.Admin, Need: "event:read", Params: []rest.Parameter{rest.LastEvent, eventKinds, eventFilter},
	}, func(c *rest.Call, _ rest.None) (rest.Stream, error) {
		f := &follower{network: s.Network(), kinds: kinds, others: append([]*kind.Def{model.AuditEntries.Def}, liveKinds...), herald: s.Herald}
		if err := f.read(c); err != nil {
			return rest.Stream{}, err
		}
		return f.stream(c)
	})
}

// follower is who is told of events.
type follower struct {
	network string
	kinds   []*kind.Def
	others  []*kind.Def // that are told to who names them
	where   *filter.Query[*happening]
	from    position // where it was; zero if nowhere
	fresh   bool     // whether nothing was told yet

	herald *herald.Herald
	live   *herald.Listener // nil if nothing of that is asked for
	events chan state.Event
	wake   chan struct{}
	rest   []*happening // that are told next
}

// position is that of an event in the log of a network.
type position struct {
	network string
	rev     state.Rev
	place   int // 0 if all of the revision is known
}

func (p position) String() string {
	id := p.network + "-" + strconv.FormatInt(int64(p.rev), 10)
	if p.place > 0 {
		id += "-" + strconv.Itoa(p.place)
	}
	return id
}

// readPosition reads the id of an event.
func readPosition(id string) (p position, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" {
		return p, false
	}
	rev, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || rev < 1 {
		return p, false
	}
	p = position{network: parts[0], rev: state.Rev(rev)}
	if len(parts) == 3 {
		if p.place, err = strconv.Atoi(parts[2]); err != nil || p.place < 1 {
			return p, false
		}
	}
	return p, true
}

// read takes in what a request asks for. What can match nothing is refused: nobody is
// to wait for what never comes.
func (f *follower) read(c *rest.Call) (err error) {
	if f.kinds, err = chosen(f.kinds, f.others, eventKinds.Of(c)); err != nil {
		return err
	}
	if f.where, err = filter.Compile(happenings, eventFilter.Of(c)); err != nil {
		return err
	}
	_, _, limited := f.where.Limit()
	if _, skips := f.where.Skip(); skips || limited || len(f.where.Sort()) > 0 {
		return fault.Invalid("filter", "must only say which events: they come in their own order, and all of them", eventFilter.Of(c))
	}
	last := rest.LastEvent.Of(c)
	if last == "" {
		return nil
	}
	var ok bool
	if f.from, ok = readPosition(last); !ok {
		return fault.Invalid("Last-Event-ID", "must be the id of an event; leave it out to begin with what happens next", last)
	}
	return nil
}

// chosen are the kinds of these names, in the singular or the plural; the usual ones if
// there are no names.
func chosen(usual, others []*kind.Def, names []string) ([]*kind.Def, error) {
	if len(names) == 0 {
		return usual, nil
	}
	var some []*kind.Def
	all := slices.Concat(usual, others)
	for _, name := range names {
		i := slices.IndexFunc(all, func(d *kind.Def) bool { return d.Path == name || d.Name == name })
		if i < 0 {
			var paths []string
			for _, d := range all {
				paths = append(paths, d.Path)
			}
			return nil, fault.Invalid("kinds", "must name kinds whose changes are told; the nearest is "+spell.Nearest(name, paths), name)
		}
		if !slices.Contains(some, all[i]) {
			some = append(some, all[i])
		}
	}
	return some, nil
}

const (
	// eventsAhead is how many steps are read before they are sent, and eventsBytes
	// about how much is sent at a time.
	eventsAhead = 16
	eventsBytes = 256 << 10
	// behindTime is how long one waits for what another controller has told already.
	behindTime = 2 * time.Second
)

// stream begins to follow.
func (f *follower) stream(c *rest.Call) (rest.Stream, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(c.Context()))
	f.events, f.wake = make(chan state.Event, eventsAhead), make(chan struct{}, 1)
	sub := f.subscribe(c).Bare()
	f.listen()
	over := make(chan struct{})
	go func() {
		defer close(over)
		f.pump(ctx, sub)
	}()
	return rest.Stream{Wake: f.wake, Take: f.take, Over: func() {
		stop()
		<-over
		if f.live != nil {
			f.live.Close()
		}
	}}, nil
}

// subscribe goes on where the client was, if that is in the log of this network and
// still known.
func (f *follower) subscribe(c *rest.Call) *state.Subscription {
	at := f.from
	if f.fresh = at.rev == 0; f.fresh || at.network != f.network {
		return c.State.Subscribe(f.stored()...)
	}
	if c.State.Snapshot().Rev < at.rev { // another controller has told of more
		ctx, cancel := context.WithTimeout(c.Context(), behindTime)
		defer cancel()
		_, _ = c.State.Since(ctx, at.rev) // in vain if the store is another one
	}
	if at.place > 0 {
		at.rev-- // the rest of it comes first
	}
	return c.State.SubscribeAt(at.rev, f.stored()...)
}

// pump reads events ahead of the client, until ctx ends or the State is closed.
func (f *follower) pump(ctx context.Context, sub *state.Subscription) {
	defer close(f.events)
	for {
		ev, err := sub.Next(ctx)
		if err != nil {
			f.nudge()
			return
		}
		select {
		case f.events <- ev:
			f.nudge()
		case <-ctx.Done():
			return
		}
	}
}

func (f *follower) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

var errNoMore = fault.New(fault.CodeUnavailable, "the controller stops; go on at another, or at this one when it is back")

// take appends what is to be told next.
func (f *follower) take(dst []byte) ([]byte, error) {
	for len(dst) < eventsBytes {
		if len(f.rest) > 0 {
			dst = f.tell(dst, f.rest[0])
			f.rest = f.rest[1:]
			continue
		}
		select {
		case ev, more := <-f.events:
			if !more {
				f.nudge() // for who looks again
				return dst, errNoMore
			}
			if ev.Reset != nil {
				dst = f.begin(dst, ev)
				continue
			}
			f.rest = f.of(ev)
		default:
			var more bool
			if dst, more = f.takeLive(dst); !more {
				return dst, nil
			}
		}
	}
	f.nudge()
	return dst, nil
}

// begin tells where the stream begins, and if that is not where the client was, that
// it has to look for itself.
func (f *follower) begin(dst []byte, ev state.Event) []byte {
	name, said := "reset", "what happened after the last event is not known here any more: read again what you need, and go on from here"
	switch {
	case f.fresh:
		name, said = "ready", "every change from here on is told"
	case f.from.rev > 0 && f.from.network != f.network:
		said = "the last event is of another network, or of before its root CA was replaced: read again what you need, and go on from here"
	}
	f.fresh, f.from = false, position{}
	at := position{network: f.network, rev: ev.Rev}
	return rest.AppendEvent(dst, name, at.String(), func(dst []byte) []byte {
		dst = strconv.AppendInt(append(dst, `{"revision":`...), int64(ev.Rev), 10)
		return append(kind.AppendText(append(dst, `,"message":`...), said), '}')
	})
}

// of are the happenings of an event that the client wants and has not got.
func (f *follower) of(ev state.Event) (some []*happening) {
	var all []*happening
	for _, w := range ev.Writes {
		for _, c := range w.Changes {
			all = append(all, &happening{at: ev.Time, author: w.Author, Change: c})
		}
	}
	if slices.Contains(f.kinds, model.AuditEntries.Def) {
		all = append(all, noted(ev)...) // after the others, whose places are the same for all
	}
	for i, h := range all {
		h.rev, h.place, h.last = ev.Rev, i+1, i+1 == len(all)
		if ev.Rev == f.from.rev && h.place <= f.from.place {
			continue
		}
		if slices.Contains(f.kinds, h.Def) && f.where.Match(h) {
			some = append(some, h)
		}
	}
	return some
}

// stored are the kinds as the log has them.
func (f *follower) stored() []*kind.Def {
	kinds := slices.DeleteFunc(slices.Clone(f.kinds), isLive)
	if len(kinds) == 0 { // where none are all, and one that hardly ever changes does
		return []*kind.Def{model.Controllers.Def}
	}
	if i := slices.Index(kinds, model.AuditEntries.Def); i >= 0 {
		kinds[i] = model.AuditBlocks.Def
	}
	return kinds
}

// noted are the entries that the audit log got with an event.
func noted(ev state.Event) (some []*happening) {
	for _, w := range ev.Writes {
		for _, e := range w.Entries {
			block, ok := e.Record.(*model.AuditBlock)
			if !ok {
				continue
			}
			for _, entry := range audit.Fresh(block) {
				by := state.Author{
					Kind: entry.ActorKind, ID: entry.ActorID, Name: entry.ActorName, Operation: entry.Operation, Request: entry.RequestID, Source: entry.Address,
				}
				ref := state.Ref{Def: model.AuditEntries.Def, ID: entry.ID}
				some = append(some, &happening{at: entry.CreatedAt.Time(), author: by, Change: state.Change{Ref: ref, After: entry}, entry: entry})
			}
		}
	}
	return some
}

// tell appends one happening.
func (f *follower) tell(dst []byte, h *happening) []byte {
	at := position{network: f.network, rev: h.rev, place: h.place}
	if h.last {
		at.place = 0
	}
	if h.entry != nil {
		return rest.AppendEvent(dst, "audit", at.String(), func(dst []byte) []byte { return h.Def.AppendOpen(dst, h.entry) })
	}
	return rest.AppendEvent(dst, "change", at.String(), h.append)
}

// append adds a happening as JSON.
func (h *happening) append(dst []byte) []byte {
	dst = h.appendHead(dst)
	dst = strconv.AppendInt(append(dst, `,"revision":`...), int64(h.rev), 10)
	dst = h.appendAuthor(dst)
	dst = h.Def.AppendOpen(append(dst, `,"before":`...), h.Before)
	dst = h.Def.AppendOpen(append(dst, `,"after":`...), h.After)
	return append(dst, '}')
}

// appendMember adds a text.
func appendMember(dst []byte, name, value string) []byte {
	return kind.AppendKeyed(dst, kind.NewKey(nil, name), func(dst []byte) []byte { return kind.AppendText(dst, value) })
}

// appendHead adds what is told of all.
func (h *happening) appendHead(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "kind", h.Def.Name)
	dst = appendMember(dst, "id", h.ID)
	dst = appendMember(dst, "name", h.name())
	dst = appendMember(dst, "verb", h.verb())
	return kind.AppendTime(append(dst, `,"at":`...), h.at)
}

// appendAuthor adds who is behind it.
func (h *happening) appendAuthor(dst []byte) []byte {
	dst = append(dst, `,"author":{`...)
	for _, part := range []struct{ name, value string }{
		{"kind", h.author.Kind}, {"id", h.author.ID}, {"name", h.author.Name},
		{"operation", h.author.Operation}, {"request", h.author.Request}, {"source", h.author.Source},
	} {
		if part.value != "" {
			dst = appendMember(dst, part.name, part.value)
		}
	}
	return append(dst, '}')
}
