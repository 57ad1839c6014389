package network

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	connections = flag.Int("connections", 30, "how many connections are open while controllers fail")
	dialRate    = flag.Int("dials", 12, "how many dials there are in a second meanwhile")
	rounds      = flag.Int("rounds", 0, "how often each fault happens to each controller; 0 is each fault once")
)

// lasts is how long a fault lasts, which is longer than a controller's lease and
// than it goes on without the store.
const lasts = 8 * time.Second

// clientKinds are ours, and those of others.
var clientKinds = []client{
	{"ours", func() string { return programs.party }, nil},
	{"1.1.0", func() string { return programs.peer }, nil},
	{"1.5.0", func() string { return programs.newer }, nil},
}

// guardedName is the service that is taken away now and then.
const guardedName = "guarded"

// population has routers of ours and public ones carry what clients of ours and of
// others send to each other.
func (s *several) population() []*lane {
	t := s.t
	t.Helper()
	all := []string{"#all"}
	s.addRouters(3, 2)
	for _, kind := range []string{"ours", "public"} {
		s.create("edge-router-policies", M{"name": kind, "semantic": "AnyOf", "identityRoles": []string{"#" + kind, "#hosts"}, "edgeRouterRoles": []string{"#" + kind}})
	}
	s.create("service-edge-router-policies", M{"name": "all", "semantic": "AnyOf", "serviceRoles": all, "edgeRouterRoles": all})
	s.create("services", M{"name": "echo", "encryptionRequired": true, "terminatorStrategy": "random", "roleAttributes": []string{"echo"}})
	s.create("services", M{"name": guardedName, "encryptionRequired": true, "terminatorStrategy": "random", "roleAttributes": []string{guardedName}})
	s.create("service-policies", M{"name": "host", "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{"#hosts"}, "serviceRoles": all})
	s.create("service-policies", M{"name": "dial", "type": "Dial", "semantic": "AnyOf", "identityRoles": all, "serviceRoles": []string{"#echo"}})
	s.guard = s.nodes[0].permit()
	var hosts []*process
	for i, c := range clientKinds {
		file := s.nodes[i].addClient("host-"+c.name, "hosts")
		hosts = append(hosts, start(t, s.dir, nil, c.program(), c.args("host", file, "echo", guardedName)...))
	}
	for _, h := range hosts {
		h.says(t, "hosting echo", 0)
		h.says(t, "hosting "+guardedName, 0)
	}
	var lanes []*lane
	for i, c := range clientKinds {
		for j, kind := range []string{"ours", "public"} {
			file := s.nodes[(i+j)%3].addClient(fmt.Sprintf("%s-at-%s", c.name, kind), kind)
			p := start(t, s.dir, nil, c.program(), c.args("lead", file, "echo")...)
			line, _ := p.says(t, "leading from", 0)
			lanes = append(lanes, &lane{sdk: c.name, at: kind, address: strings.Fields(line)[2]})
		}
	}
	return lanes
}

// TestSeveralControllers has three controllers fail, one after the other and each
// in every way, while clients of all kinds talk over routers of all kinds: nobody
// who talks notices, and afterwards nothing is left that should not be there.
func TestSeveralControllers(t *testing.T) {
	s := newSeveral(t)
	lanes := s.population()
	f := begin(t, lanes, "echo", *connections, *dialRate)
	before := s.steady()
	for i, c := range s.nodes {
		for k, what := range faults {
			for range max(1, *rounds) {
				if *rounds > 0 || k == i {
					s.suffer(f, c, what)
				}
			}
		}
	}
	for _, pair := range [][2]int{{1, 0}, {0, 1}, {0, 2}, {1, 2}, {2, 0}, {2, 1}} {
		if *rounds > 0 || pair == [2]int{1, 0} {
			s.revoke(lanes, s.nodes[pair[0]], s.nodes[pair[1]])
		}
	}
	f.end()
	_, failed, broken, _ := f.take()
	s.judge(failed, broken)
	s.quiet(before)
}

// inventory is what there is of that which faults must not change, at each
// controller.
func (s *several) inventory() (all []string) {
	s.t.Helper()
	for _, c := range s.nodes {
		all = append(all, fmt.Sprintf("links %v\nterminators %v", c.ids("/fabric/v1/links?limit=500"), c.ids("terminators?limit=500")))
	}
	return all
}

// steady waits until all that is made by itself is made: then nothing of the inventory
// changes for a while, and all controllers have the same.
func (s *several) steady() (all []string) {
	s.t.Helper()
	since := time.Now()
	s.within(2*soon, "nothing changes any more", func() bool {
		now := s.inventory()
		if !slices.Equal(now, all) || len(slices.Compact(slices.Clone(now))) > 1 {
			all, since = now, time.Now()
		}
		return time.Since(since) > 5*time.Second
	})
	return all
}

// suffer has something happen to a controller while there is traffic.
func (s *several) suffer(f *traffic, c *controller, what fault) {
	t := s.t
	t.Helper()
	links, well := s.links(), c.well()
	at := time.Now()
	s.struck = append(s.struck, at)
	what.begin(c)
	f.wait(lasts)
	back := time.Now()
	s.struck = append(s.struck, back)
	what.end(c)
	s.whole()
	whole := time.Since(back)
	f.wait(3 * time.Second)
	dials, failed, broken, slow := f.take()
	t.Logf("controller %d %s for %v, whole again %v later: %d dials, the slowest took %v; failed: %s; broken: %s",
		c.n, what.name, back.Sub(at).Round(time.Second), whole.Round(100*time.Millisecond), dials, slow.Round(10*time.Millisecond), told(failed, at), told(broken, at))
	if !well() {
		s.judge(nil, broken)
		return
	}
	s.judge(failed, broken)
	late := slices.DeleteFunc(failed, func(i incident) bool { return i.at.Before(back) })
	if len(late)*few > dials {
		t.Errorf("%d of %d dials failed after the controller was back", len(late), dials)
	}
	if now := s.links(); !slices.Equal(links, now) {
		t.Errorf("links were\n%v\nand are\n%v", links, now)
	}
}

// links are those that each controller knows.
func (s *several) links() (all []string) {
	s.t.Helper()
	for _, c := range s.nodes {
		all = append(all, strings.Join(c.ids("/fabric/v1/links?limit=500"), " "))
	}
	return all
}

// Dials of others may fail for a while after something has happened to a controller
// that their router has told of them, and single ones when it is back, while that
// router connects to it again: at most one of so many.
const (
	grace = 5 * time.Second
	few   = 20
)

// judge fails if more went wrong than may.
func (s *several) judge(failed, broken []incident) {
	s.t.Helper()
	for _, i := range broken {
		s.t.Errorf("a connection of %v broke at %v: %v", i.lane, i.at, i.err)
	}
	for _, i := range failed {
		soonAfter := slices.ContainsFunc(s.struck, func(at time.Time) bool { return i.at.Sub(at) > -time.Second && i.at.Sub(at) < grace })
		if i.sdk == "ours" || !soonAfter {
			s.t.Errorf("a dial of %v failed at %v: %v", i.lane, i.at, i.err)
		}
	}
}

// permit lets all dial the service that they may not dial now and then.
func (c *controller) permit() (policy string) {
	c.t.Helper()
	return c.create("service-policies", M{"name": guardedName, "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#" + guardedName}})
}

// lateness looks at how busy the machine is, until what it returns is asked how much
// too late it has let somebody sleep.
func lateness() func() time.Duration {
	stop, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for {
			began := time.Now()
			select {
			case <-time.After(10 * time.Millisecond):
				most = max(most, time.Since(began)-10*time.Millisecond)
			case <-stop:
				worst <- most
				return
			}
		}
	}()
	return func() time.Duration {
		close(stop)
		return <-worst
	}
}

// promptly is how soon a policy that is taken away is in force.
const promptly = 2 * time.Second

// revoke kills a controller and takes a policy away at another: no connection that
// rests on it goes on, whoever made it.
func (s *several) revoke(lanes []*lane, at, dead *controller) {
	t := s.t
	t.Helper()
	type held struct {
		*lane
		*line
	}
	var all []held
	for i := range 3 * len(lanes) {
		l := lanes[i%len(lanes)]
		s.within(2*soon, "the service may be dialled", func() bool {
			conn, err := l.dial(guardedName)
			if err == nil {
				all = append(all, held{l, conn})
			}
			return err == nil
		})
	}
	owned := 0
	for _, one := range dead.list("/fabric/v1/circuits?limit=500") {
		if one["service"].(M)["name"] == guardedName {
			owned++
		}
	}
	well := dead.well()
	s.struck = append(s.struck, time.Now())
	dead.control.kill(syscall.SIGKILL)
	s.eventually("the policy is taken away", func() bool {
		_, err := at.try("DELETE", "service-policies/"+s.guard, nil)
		return err == nil
	})
	gone := time.Now()
	type last struct {
		*lane
		at time.Time
	}
	ends := make(chan last, len(all))
	for _, h := range all {
		go func() {
			var when time.Time
			for end := gone.Add(silence); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if h.line.echo() != nil {
					break
				}
				when = time.Now()
			}
			_ = h.line.Close()
			ends <- last{h.lane, when}
		}()
	}
	late := lateness()
	latest, slowest := time.Duration(0), lanes[0]
	for range all {
		l := <-ends
		if took := l.at.Sub(gone); took > latest {
			latest, slowest = took, l.lane
		}
	}
	if latest > promptly+20*late() && well() {
		t.Errorf("a word of %v came back %v after the policy was gone at controller %d, with controller %d dead", slowest, latest, at.n, dead.n)
	}
	t.Logf("a policy taken away at controller %d with controller %d dead, of whose circuits %d of %d were: in force after %v", at.n, dead.n, owned, len(all), latest.Round(time.Millisecond))
	s.struck = append(s.struck, time.Now()) // its return, as in suffer
	dead.startController()
	s.whole()
	well() // which says it, for whoever reads of dials that failed
	s.guard = at.permit()
}

// quiet looks for what is left when nobody does anything any more.
func (s *several) quiet(before []string) {
	t := s.t
	t.Helper()
	for _, c := range s.nodes {
		var left []M
		for end := time.Now().Add(2 * soon); time.Now().Before(end); time.Sleep(time.Second) {
			if left = c.list("/fabric/v1/circuits?limit=500"); len(left) == 0 {
				break
			}
		}
		for _, one := range left {
			t.Errorf("controller %d still has the circuit %v", c.n, one)
		}
		double, orphans := c.sessions()
		t.Logf("controller %d: circuits %d, sessions doubled %d, left over %d", c.n, len(left), double, orphans)
		if double+orphans > 0 {
			t.Errorf("controller %d has %d sessions twice and %d of nobody", c.n, double, orphans)
		}
	}
	s.within(2*soon, "no router carries anything", func() bool { return s.nodes[0].carried() == 0 })
	if now := s.inventory(); !slices.Equal(before, now) {
		t.Errorf("there were\n%s\nand there are\n%s", strings.Join(before, "\n"), strings.Join(now, "\n"))
	}
}
