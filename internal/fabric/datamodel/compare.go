package datamodel

import (
	"context"
	"fmt"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/wire/message"
)

// Index is how far the records are that routers are told of, and the name of the line of
// time that they are told on.
func (m *Models) Index() (index uint64, timeline string) {
	return uint64(m.Timely(m.State.Snapshot()).Rev), m.timeline
}

// compareTries is how often a router is asked that is told something meanwhile.
const compareTries = 3

// Compare asks a router whether it knows what it was told, and if not to take that for what
// it knows if that is to be mended. One that was told nothing has nothing to compare.
func (m *Models) Compare(ctx context.Context, r *control.Router, mend bool) (differences []string, err error) {
	for range compareTries {
		should, index := m.toldTo(r)
		if should == nil {
			return nil, nil
		}
		question := &message.CompareDataModel{State: message.DataState{Events: changes(&known{}, should), Index: index, Timeline: m.timeline}, Mend: mend}
		reply, err := r.Request(ctx, control.Message(message.TypeCompareDataModel, question))
		if err != nil {
			return nil, err
		}
		answer, err := message.Unmarshal[message.DataModelCompared](reply.Body)
		if err != nil {
			return nil, err
		}
		differences = differences[:0]
		for _, d := range answer.Differences {
			differences = append(differences, fmt.Sprintf("%s %s: %s %s", d.Kind, d.ID, d.What, d.Detail))
		}
		if _, now := m.toldTo(r); len(differences) == 0 || now == index {
			break
		}
	}
	return differences, nil
}

// toldTo is what a router was told last; nil for nothing.
func (m *Models) toldTo(r *control.Router) (*known, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.routers[r.ID]
	if t == nil || t.peer != peer(r) {
		return nil, 0
	}
	return t.knows, t.index
}
