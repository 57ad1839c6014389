package link

import (
	"time"

	"netkeep.internal/internal/wire/message"
)

// faultRepeat is how often controllers are told again what they could not be.
const faultRepeat = 5 * time.Second

// maxFaults bounds what is still to be told. What does not fit is no loss:
// controllers ask which links there are when they are back.
const maxFaults = maxLinks

// news is what controllers have yet to be told, under the mutex of Links.
type news struct {
	all    bool // which links there are
	links  map[string]*Link
	states map[*Link]bool           // of which the connections have changed
	faults map[string]message.Fault // by link
}

func (n *news) init() {
	n.links, n.states, n.faults = map[string]*Link{}, map[*Link]bool{}, map[string]message.Fault{}
}

// restranded has controllers told which connections a link has now.
func (l *Links) restranded(k *Link) {
	if !k.dialled || l.opt.State == nil {
		return
	}
	l.mu.Lock()
	if l.byID[k.id] == k {
		l.news.states[k] = true
	}
	l.mu.Unlock()
	l.notify()
}

// fault has controllers told that a link is gone or going. The first is said of
// a link that is both, and only the last time that it was dialled counts.
func (n *news) fault(f message.Fault) {
	old, has := n.faults[f.ID]
	switch {
	case has && (old.Iteration > f.Iteration || old.Iteration == f.Iteration && old.Subject == message.FaultLink):
	case has || len(n.faults) < maxFaults:
		n.faults[f.ID] = f
	}
}

// notify has Run tell the news.
func (l *Links) notify() {
	select {
	case l.wake <- struct{}{}:
	default: // it will
	}
}

// Connected says that there is a new connection to a controller: it is told of
// all links, and of all that are gone.
func (l *Links) Connected() {
	l.mu.Lock()
	l.news.all = true
	l.mu.Unlock()
	l.notify()
}

// tell tells the news. It is only called by Run, so that controllers hear
// everything in its order: a link that were told of before the list of all,
// and is not on it, would be taken for gone.
func (l *Links) tell() {
	l.mu.Lock()
	complete := l.news.all
	told := l.news.links
	if complete {
		told = l.byKey
	}
	var links []message.Link
	for _, k := range told {
		if k.dialled {
			links = append(links, k.told())
		}
	}
	faults, states := l.news.faults, l.news.states
	l.news = news{}
	l.news.init()
	l.mu.Unlock()

	if complete || len(links) > 0 {
		l.opt.Report(links, complete)
	}
	for k := range states {
		l.opt.State(message.LinkState{ID: k.id, Iteration: k.iteration, Conns: k.conns()})
	}
	var left []message.Fault
	for _, f := range faults {
		if !l.opt.Fault(f) {
			left = append(left, f)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range left {
		l.news.fault(f)
	}
}
