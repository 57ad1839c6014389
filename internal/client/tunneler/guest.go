package tunneler

import (
	"net/netip"
	"sync"

	"netkeep.internal/internal/client/intercept"
)

// guests are the connections of programs with services. They have a lock of
// their own: nobody waits for a table of thousands of services to be made.
type guests struct {
	mu      sync.Mutex
	leaving bool
	all     sync.WaitGroup
	open    map[*guest]struct{}
}

// guest is one of them.
type guest struct {
	protocol string
	to       netip.AddrPort
	named    bool
	service  string // its id
	end      func()
}

// enter begins a connection, unless none begins any more.
func (g *guests) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leaving {
		return false
	}
	g.all.Add(1)
	return true
}

// exit ends what enter began.
func (g *guests) exit() { g.all.Done() }

// leave waits until there is no connection, and lets none begin.
func (g *guests) leave() {
	g.mu.Lock()
	g.leaving = true
	g.mu.Unlock()
	g.all.Wait()
}

// hold remembers a connection until the function is called that it returns.
func (g *guests) hold(a *attempt, end func()) (forget func()) {
	one := &guest{protocol: a.protocol, to: a.to, named: a.name != "", service: wayOf(a.rule).id, end: end}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = map[*guest]struct{}{}
	}
	g.open[one] = struct{}{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, one)
	}
}

// cut ends connections to addresses that are not their service's any more: what
// programs send there does not come here from now on.
func (g *guests) cut(table *intercept.Table) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for one := range g.open {
		if one.named {
			continue
		}
		if r := table.ByAddr(one.protocol, one.to); r == nil || wayOf(r).id != one.service {
			go one.end()
		}
	}
}
