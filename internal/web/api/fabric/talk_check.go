package fabric

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// checkWait is how long a router has to answer.
const checkWait = 20 * time.Second

// check does one of the checks, if the frame asks for one.
func (t *talk) check(c *rest.Call, f *wire.Frame) bool {
	asked, err := readCheck(f)
	of := map[int32]struct {
		answer, result int32
		judge          func(context.Context, *model.Router) []byte
	}{
		message.TypeCheckTerminators:    {message.TypeCheckingTerminators, message.TypeCheckedTerminator, nil},
		message.TypeCheckLinks:          {message.TypeCheckingLinks, message.TypeCheckedLinks, t.checkLinks},
		message.TypeCheckSDKTerminators: {message.TypeCheckingSDKTerminators, message.TypeCheckedSDKTerminators, t.checkHosts(terminator.BindingEdge)},
		message.TypeCheckTunnels:        {message.TypeCheckingTunnels, message.TypeCheckedTunnels, t.checkHosts(terminator.BindingTunnel)},
		message.TypeCheckConnections:    {message.TypeCheckingConnections, message.TypeCheckedConnections, t.checkConnections},
		message.TypeCheckCircuits:       {message.TypeCheckingCircuits, message.TypeCheckedCircuits, t.checkCircuits},
		message.TypeCheckDialers:        {message.TypeCheckingDialers, 0, nil},
		message.TypeCheckDataModel:      {message.TypeCheckingDataModel, message.TypeCheckedDataModel, t.checkModel(asked.Fix)},
	}
	one, is := of[f.Type]
	if !is {
		return false
	}
	answer := func(n int, err error) bool {
		said := &message.Checking{Success: err == nil, Count: uint64(n)}
		if err != nil {
			said.Message = err.Error()
		}
		t.reply(f, &wire.Frame{Type: one.answer, Body: message.Marshal(said)})
		return true
	}
	switch {
	case err != nil:
		return answer(0, err)
	case !c.May("router:inspect"):
		return answer(0, errors.New(noInspector))
	case f.Type == message.TypeCheckDialers: // routers dial controllers, and never the other way
		return answer(0, nil)
	case f.Type == message.TypeCheckTerminators:
		n, begin, err := t.checkTerminators(c, asked)
		if answer(n, err); err == nil {
			begin() // after the answer, which says how many follow
		}
		return true
	}
	routers, err := picked(model.Routers, routerJoins(t.s)(nil), t.state.Snapshot(), asked.Filter)
	if answer(len(routers), err); err == nil {
		t.each(routers, func(ctx context.Context, r *model.Router) {
			t.send(&wire.Frame{Type: one.result, Body: one.judge(ctx, r)})
		})
	}
	return true
}

// readCheck reads what is asked for; one type of frame says it in another order.
func readCheck(f *wire.Frame) (message.Check, error) {
	if f.Type == message.TypeCheckDataModel {
		asked, err := message.Unmarshal[message.CheckDataModel](f.Body)
		if err != nil {
			return message.Check{}, err
		}
		return message.Check{Filter: asked.Filter, Fix: asked.Fix}, nil
	}
	asked, err := message.Unmarshal[message.Check](f.Body)
	if err != nil {
		return message.Check{}, err
	}
	return *asked, nil
}

// picked are the records that a filter picks, all of them: sort and limit do not count.
func picked[T any](k *kind.Kind[T], joins []filter.Symbol[kind.Record], snap *state.Snapshot, text string) (some []*T, err error) {
	q, err := filter.Compile(k.Symbols.With(joins...), text)
	if err != nil {
		return nil, err
	}
	for rec := range snap.All(k.Def) {
		if q.Match(rec) {
			some = append(some, any(rec).(*T))
		}
	}
	return some, nil
}

// each asks routers, some at a time, while the talk goes on.
func (t *talk) each(routers []*model.Router, ask func(context.Context, *model.Router)) {
	t.work.Go(func() {
		slots := make(chan struct{}, inspectors)
		var asked sync.WaitGroup
		for _, r := range routers {
			select {
			case slots <- struct{}{}:
			case <-t.ctx.Done():
			}
			if t.ctx.Err() != nil {
				break
			}
			asked.Go(func() {
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(t.ctx, checkWait)
				defer cancel()
				ask(ctx, r)
			})
		}
		asked.Wait()
	})
}

// know asks a router what it knows under a name.
func (t *talk) know(ctx context.Context, r *model.Router, name string, into any) error {
	said, err := t.s.Fabric.Inspect(ctx, r.ID, []string{name})
	if err != nil {
		return err
	}
	text, ok := said.Values[name]
	if !ok {
		return errors.New(cmp.Or(strings.Join(said.Errors, ", "), "the router does not say what it knows of "+name))
	}
	return json.Unmarshal([]byte(text), into)
}

// checkLinks compares links that a router has with those that are known here.
func (t *talk) checkLinks(ctx context.Context, r *model.Router) []byte {
	out := &message.CheckedLinks{RouterID: r.ID, RouterName: r.Name}
	var said struct {
		Links []struct {
			ID        string `json:"id"`
			Iteration int    `json:"iteration"`
			Dest      string `json:"dest"`
			Dialed    bool   `json:"dialed"`
		} `json:"links"`
	}
	if err := t.know(ctx, r, "links", &said); err != nil {
		out.Message = err.Error()
		return message.Marshal(out)
	}
	out.Success = true
	here := map[string]*model.Link{}
	for l := range model.Links.All(t.s.Fabric) {
		if _, ends := l.Other(r.ID); ends {
			here[l.ID] = l
		}
	}
	for _, l := range said.Links {
		one := message.CheckedLink{ID: l.ID, AtRouter: message.LinkStateEstablished, Dest: l.Dest, Dialed: l.Dialed}
		_, one.DestConnected = t.s.Routers.Connected(l.Dest)
		if known := here[l.ID]; known != nil {
			one.AtController = message.LinkStateEstablished
			if known.Iteration != l.Iteration && l.Dialed {
				one.Messages = append(one.Messages, fmt.Sprintf("the router has dialled it %d times, the controller knows of %d", l.Iteration, known.Iteration))
			}
		}
		// A link to a router that is away is nothing that the controller would have to know.
		one.Valid = len(one.Messages) == 0 && (one.AtController == message.LinkStateEstablished || !one.DestConnected)
		out.Links = append(out.Links, one)
		delete(here, l.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(here)) {
		l := here[id]
		other, _ := l.Other(r.ID)
		one := message.CheckedLink{ID: id, AtController: message.LinkStateEstablished, Dest: other, Dialed: l.SourceID == r.ID}
		_, one.DestConnected = t.s.Routers.Connected(other)
		out.Links = append(out.Links, one)
	}
	return message.Marshal(out)
}

// checkCircuits compares circuits that a router carries with those that are known here.
func (t *talk) checkCircuits(ctx context.Context, r *model.Router) []byte {
	out := &message.CheckedCircuits{RouterID: r.ID, RouterName: r.Name, Circuits: map[string]message.CheckedCircuit{}}
	var said struct {
		Circuits map[string]struct {
			Owner  string            `json:"ctrlId"`
			Routes map[string]string `json:"routes"`
		} `json:"circuits"`
	}
	if err := t.know(ctx, r, "router-circuits", &said); err != nil {
		out.Message = err.Error()
		return message.Marshal(out)
	}
	out.Success = true
	for c := range model.Circuits.All(t.s.Fabric) {
		if slices.Contains(c.Path, r.ID) {
			carried, forwarded := said.Circuits[c.ID]
			out.Circuits[c.ID] = message.CheckedCircuit{ID: c.ID, NotForwarded: !forwarded, WhereItGoes: carried.Routes}
		}
	}
	for id, c := range said.Circuits {
		if _, known := out.Circuits[id]; !known && (c.Owner == "" || c.Owner == t.s.ControllerID) {
			out.Circuits[id] = message.CheckedCircuit{ID: id, NotAtController: true, WhereItGoes: c.Routes}
		}
	}
	return message.Marshal(out)
}

// checkHosts asks a router which of the terminators of a binding are still.
func (t *talk) checkHosts(binding string) func(context.Context, *model.Router) []byte {
	return func(ctx context.Context, r *model.Router) []byte {
		out := &message.CheckedHosts{RouterID: r.ID, RouterName: r.Name}
		var some []*model.Terminator
		for host := range model.Terminators.Select(t.state.Snapshot(), "router", r.ID) {
			if host.Binding == binding {
				some = append(some, host)
			}
		}
		said, err := t.hosted(ctx, r.ID, some)
		if err != nil {
			out.Message = err.Error()
			return message.Marshal(out)
		}
		out.Success = true
		for _, host := range some {
			one := message.CheckedHost{TerminatorID: host.ID, Valid: said[host.ID].Valid, AtRouter: "established"}
			if !one.Valid {
				one.AtRouter = cmp.Or(said[host.ID].Detail, "unknown")
			}
			out.Hosts = append(out.Hosts, one)
		}
		return message.Marshal(out)
	}
}

// hostedAtOnce is how many terminators one frame asks about.
const hostedAtOnce = 1000

// hosted asks a router which of its terminators are still.
func (t *talk) hosted(ctx context.Context, routerID string, some []*model.Terminator) (map[string]seam.Host, error) {
	all := map[string]seam.Host{}
	if _, online := t.s.Routers.Connected(routerID); !online {
		return nil, seam.ErrAway
	}
	for part := range slices.Chunk(some, hostedAtOnce) {
		said, err := t.s.Fabric.Hosted(ctx, routerID, part)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, said)
	}
	return all, nil
}

// checkConnections compares who a router says is connected to it with what is known
// here.
func (t *talk) checkConnections(ctx context.Context, r *model.Router) []byte {
	out := &message.CheckedComponent{Type: "router", ID: r.ID, Name: r.Name}
	var said struct {
		Identities map[string]struct {
			Connections []struct {
				Closed bool `json:"closed"`
			} `json:"connections"`
		} `json:"identity_connections"`
	}
	if err := t.know(ctx, r, "identity-connection-statuses", &said); err != nil {
		out.Errors = append(out.Errors, err.Error())
		return message.Marshal(out)
	}
	out.Success = true
	for _, id := range slices.Sorted(maps.Keys(said.Identities)) {
		connected := false
		for _, c := range said.Identities[id].Connections {
			connected = connected || !c.Closed
		}
		if connected && !t.s.Routers.Carries(id) {
			out.Errors = append(out.Errors, "the router says that identity "+id+" is connected, and the controller does not know of it")
		}
	}
	return message.Marshal(out)
}

// checkModel asks a router whether the data model that it knows is what it was told. There is
// no row for the controller: it keeps no model beside the records, and makes what each router
// is told of them.
func (t *talk) checkModel(mend bool) func(context.Context, *model.Router) []byte {
	return func(ctx context.Context, r *model.Router) []byte {
		out := &message.CheckedComponent{Type: "router", ID: r.ID, Name: r.Name}
		differences, err := t.s.Fabric.CompareModel(ctx, r.ID, mend)
		if out.Success, out.Errors = err == nil, differences; err != nil {
			out.Errors = []string{err.Error()}
		}
		return message.Marshal(out)
	}
}

// checkTerminators asks the routers of terminators whether they are still, and takes
// those away that are not if that is asked for.
func (t *talk) checkTerminators(c *rest.Call, asked message.Check) (n int, begin func(), err error) {
	snap := t.state.Snapshot()
	if asked.Fix && !c.May("terminator:delete") {
		return 0, nil, errors.New("to mend them needs the power terminator:delete, and none of your admin roles has it")
	}
	some, err := picked(model.Terminators, api.TerminatorSymbols(c), snap, asked.Filter)
	if err != nil {
		return 0, nil, err
	}
	byRouter := map[string][]*model.Terminator{}
	var routers []*model.Router
	for _, host := range some {
		if byRouter[host.RouterID] == nil {
			r, there := model.Routers.Get(snap, host.RouterID)
			if !there {
				r = &model.Router{Meta: kind.Meta{ID: host.RouterID}}
			}
			routers = append(routers, r)
		}
		byRouter[host.RouterID] = append(byRouter[host.RouterID], host)
	}
	author := c.Author()
	ask := func(ctx context.Context, r *model.Router) {
		said, err := t.hosted(ctx, r.ID, byRouter[r.ID])
		for _, host := range byRouter[r.ID] {
			out := checkedTerminator(snap, r, host, said, err)
			if asked.Fix && (out.State == message.TerminatorNobody || out.State == message.TerminatorNoBinding || out.State == message.TerminatorBadState) {
				out.Fixed = t.state.Delete(ctx, author, model.Terminators.Def, host.ID) == nil
			}
			t.send(&wire.Frame{Type: message.TypeCheckedTerminator, Body: message.Marshal(out)})
		}
	}
	return len(some), func() { t.each(routers, ask) }, nil
}

// checkedTerminator is what is known of a terminator when its router was asked.
func checkedTerminator(snap *state.Snapshot, r *model.Router, host *model.Terminator, said map[string]seam.Host, err error) *message.CheckedTerminator {
	out := &message.CheckedTerminator{
		ID: host.ID, ServiceID: host.ServiceID, RouterID: r.ID, RouterName: r.Name, Binding: host.Binding, Address: host.Address, HostID: host.HostID,
		Created: host.CreatedAt.Time().Format(time.RFC3339), State: message.TerminatorUnknown,
	}
	if service, ok := model.Services.Get(snap, host.ServiceID); ok {
		out.ServiceName = service.Name
	}
	state, answered := said[host.ID]
	switch {
	case err != nil:
		out.Detail = err.Error()
	case !answered:
		out.Detail = "the router does not say"
	case state.Valid:
		out.State = message.TerminatorValid
	default:
		out.Detail = state.Detail
		out.State = map[uint32]uint32{0: message.TerminatorNoBinding, 1: message.TerminatorNobody, 2: message.TerminatorBadState}[state.Reason]
		if state.Reason > 2 {
			out.State = message.TerminatorUnknown
		}
	}
	return out
}
