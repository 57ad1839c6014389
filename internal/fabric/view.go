package fabric

import (
	"context"
	"strings"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/seam"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// View is the fabric as the rest of the program sees it.
func (f *Fabric) View() seam.Fabric {
	return view{kind.Sources{model.Presences.Def: presences{f}, model.Links.Def: f.Links, model.Circuits.Def: circuits{f}}, f}
}

// view is a Fabric in the words of the seam.
type view struct {
	kind.Sources
	fabric *Fabric
}

// EndCircuit does not wait for what is on its way: a router would wait until
// nobody uses the circuit any more, and go on with one that is out of our hands.
func (v view) EndCircuit(ctx context.Context, id string) (bool, error) {
	if ended := v.fabric.endCircuit(id); ended || v.fabric.opt.Alone {
		return ended, nil
	}
	return v.fabric.opt.Ask(ctx, askEnd+id)
}

// askEnd is what a question to other controllers begins with of which the rest is a
// circuit that is to end.
const askEnd = "end circuit "

// endCircuit ends a circuit that was made under an id which this controller answers
// under.
func (f *Fabric) endCircuit(id string) bool {
	for _, f := range f.both() {
		if f.Circuits.End(id, true) {
			return true
		}
	}
	return false
}

// Asked answers what another controller asks all others.
func (f *Fabric) Asked(what string) bool {
	if rest, is := strings.CutPrefix(what, askLink); is {
		f.askedLink(rest)
		return false // so that all others hear of it
	}
	id, ends := strings.CutPrefix(what, askEnd)
	return ends && f.endCircuit(id)
}

func (v view) Path(from, to string) (seam.Path, bool) {
	p, ok := v.fabric.graph.Between(from, to)
	return seam.Path(p), ok
}

func (v view) Inspect(ctx context.Context, routerID string, names []string) (seam.Inspected, error) {
	r, ok := v.fabric.Get(routerID)
	if !ok {
		return seam.Inspected{}, seam.ErrAway
	}
	return r.InspectAll(ctx, names)
}

func (v view) CompareModel(ctx context.Context, routerID string, mend bool) ([]string, error) {
	r, ok := v.fabric.Get(routerID)
	if !ok {
		return nil, seam.ErrAway
	}
	return v.fabric.models.Compare(ctx, r, mend)
}

func (v view) ModelIndex() (index uint64, timeline string) { return v.fabric.models.Index() }

func (v view) Carried() map[string][]string { return v.fabric.Carried() }

func (v view) Hosted(ctx context.Context, routerID string, terminators []*model.Terminator) (map[string]seam.Host, error) {
	r, ok := v.fabric.Get(routerID)
	if !ok {
		return nil, seam.ErrAway
	}
	question := &message.ValidateTerminators{}
	for _, t := range terminators {
		question.Terminators = append(question.Terminators, message.Terminator{ID: t.ID, Binding: t.Binding, Address: t.Address})
	}
	reply, err := r.Request(ctx, control.Message(message.TypeValidateTerminators, question))
	if err != nil {
		return nil, err
	}
	answer, err := message.Unmarshal[message.TerminatorsValidated](reply.Body)
	if err != nil {
		return nil, err
	}
	hosts := make(map[string]seam.Host, len(answer.States))
	for id, said := range answer.States {
		hosts[id] = seam.Host{Valid: said.Valid, Reason: said.Reason, Detail: said.Detail}
	}
	return hosts, nil
}
