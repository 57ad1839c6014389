package network

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// several is a network of three controllers, each of which answers in the place of
// another that is gone. What is made is made at the first.
type several struct {
	*network
	nodes   []*controller
	routers []*router
	board   *process    // holds the wires between them
	guard   string      // the policy that is taken away now and then
	struck  []time.Time // when something happened to a controller
}

// controller is one of several.
type controller struct {
	*network
	all *several
	n   int
}

func newSeveral(t *testing.T) *several {
	t.Helper()
	s := &several{network: &network{t: t}, board: start(t, "", nil, programs.switchboard)}
	for i := range 3 {
		peers := free(t)
		n := &network{t: t, dir: t.TempDir(), address: free(t), metrics: free(t)}
		n.flags = []string{"--cluster-listen", peers, "--cluster-advertise", s.lay(i, peers), "--routers-reserve", free(t), "--store-grace", "5s", "--store-refuse", "5s"}
		n.started = func(pid int) { s.tell("is %d %d", i, pid) }
		var once []string
		if i > 0 {
			once = []string{"--join", s.call("POST", "cluster/invitations", nil)["token"].(string)}
			n.token = s.token
		}
		n.begin(once...)
		s.nodes = append(s.nodes, &controller{n, s, i})
		if i == 0 {
			s.network = n
		}
	}
	s.eventually("three votes", func() bool {
		votes := 0
		for _, m := range s.list("cluster/members") {
			if m["vote"] == true {
				votes++
			}
		}
		return votes == 3
	})
	return s
}

// tell tells the switchboard to do something, and returns what it says.
func (s *several) tell(format string, args ...any) string {
	from := s.board.next()
	said := fmt.Sprintf(format, args...)
	if _, err := fmt.Fprintln(s.board.in, said); err != nil {
		s.t.Fatal(err)
	}
	words := strings.Fields(said)
	if words[0] == "lay" {
		words = []string{"laid", words[1]}
	}
	line, _ := s.board.says(s.t, strings.Join(words, " "), from)
	return line
}

func (s *several) lay(n int, address string) string {
	return strings.Fields(s.tell("lay %d %s", n, address))[2]
}

// others are all controllers but one.
func (c *controller) others() []*controller {
	return slices.DeleteFunc(slices.Clone(c.all.nodes), func(n *controller) bool { return n == c })
}

// lapses is how often a controller was not heard of for so long that it gave its id
// up, since it was started.
func (c *controller) lapses() (n int) {
	c.control.mu.Lock()
	defer c.control.mu.Unlock()
	for _, line := range c.control.lines {
		if strings.Contains(line, "has not heard of this controller for too long") {
			n++
		}
	}
	return n
}

// well returns what tells whether all controllers but this one have been well since:
// on a machine that stands still for seconds none is.
func (c *controller) well() func() bool {
	var before []int
	for _, other := range c.others() {
		before = append(before, other.lapses())
	}
	return func() bool {
		for i, other := range c.others() {
			if other.lapses() > before[i] {
				c.t.Logf("controller %d, which nothing had happened to, gave its id up: the machine is too busy to tell", other.n)
				return false
			}
		}
		return true
	}
}

// ids are those of what there is at a path of an API, in order.
func (c *controller) ids(path string) (ids []string) {
	c.t.Helper()
	for _, one := range c.list(path) {
		ids = append(ids, one["id"].(string))
	}
	slices.Sort(ids)
	return ids
}

// has is how many routers are connected to the controller; less than 0 if it does
// not answer.
func (c *controller) has() int {
	members, err := c.try("GET", "cluster/members", nil)
	if err != nil {
		return -1
	}
	for _, one := range members["list"].([]any) {
		if m := one.(M); m["self"] == true {
			return int(m["routers"].(float64))
		}
	}
	return -1
}

// sees is how many controllers are there as this one sees it.
func (c *controller) sees() (online int) {
	all, err := c.try("GET", "controllers", nil)
	if err != nil {
		return -1
	}
	for _, one := range all["list"].([]any) {
		if one.(M)["isOnline"] == true {
			online++
		}
	}
	return online
}

// carried is how many circuits all routers together say that they carry; less than 0
// if not all of them say so.
func (c *controller) carried() (circuits int) {
	c.t.Helper()
	req, err := http.NewRequest("POST", "https://"+c.address+"/fabric/v1/inspections", strings.NewReader(`{"appRegex":".*","requestedValues":["router-circuits"]}`))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("zt-session", c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var said struct {
		Values []struct {
			Value struct{ Circuits map[string]any }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || len(said.Values) != len(c.all.routers) {
		return -1
	}
	for _, v := range said.Values {
		circuits += len(v.Value.Circuits)
	}
	return circuits
}

// whole waits until every controller is there, and every router at each.
func (s *several) whole() {
	s.t.Helper()
	s.within(2*soon, "every router is at every controller", func() bool {
		return !slices.ContainsFunc(s.nodes, func(c *controller) bool { return c.sees() != len(s.nodes) || c.has() != len(s.routers) })
	})
}

// addRouters adds routers of ours and public ones, which have their kind as a word.
func (s *several) addRouters(ours, public int) {
	s.t.Helper()
	config := strings.Replace(routerConfig, `ctrl: {endpoint: "tls:%[2]s"}`, `ctrl: {endpoint: "tls:%[2]s", endpointsFile: %[1]s.endpoints.yml}`, 1)
	for i := range public {
		s.routers = append(s.routers, s.addRouterAs(M{"name": fmt.Sprint("p", i), "roleAttributes": []string{"public"}}, config))
	}
	for i := range ours {
		r := s.addOwnRouter(fmt.Sprint("o", i))
		s.call("PATCH", "edge-routers/"+r.id, M{"roleAttributes": []string{"ours"}})
		s.routers = append(s.routers, r)
	}
	s.whole()
}

// addClient makes an identity with words at one of the controllers, enrolls it, and
// returns its file.
func (c *controller) addClient(name string, words ...string) string {
	c.t.Helper()
	id := c.create("identities", M{"name": name, "type": "Device", "isAdmin": false, "roleAttributes": words, "enrollment": M{"ott": true}})
	jwt := c.call("GET", "identities/"+id, nil)["enrollment"].(M)["ott"].(M)["jwt"].(string)
	c.write(name+".jwt", jwt)
	c.netkeep("enroll", name+".jwt", "-o", name+".json")
	return filepath.Join(c.dir, name+".json")
}

// fault is what happens to a controller, and how it ends.
type fault struct {
	name       string
	begin, end func(c *controller)
}

var faults = []fault{
	{"killed", func(c *controller) { c.control.kill(syscall.SIGKILL) }, func(c *controller) { c.startController() }},
	{"paused",
		func(c *controller) { _ = c.control.cmd.Process.Signal(syscall.SIGSTOP) },
		func(c *controller) { _ = c.control.cmd.Process.Signal(syscall.SIGCONT) }},
	{"cut off", func(c *controller) { c.all.tell("cut %d", c.n) }, func(c *controller) { c.all.tell("join %d", c.n) }},
}

// sessions counts those that there are twice, for the same client, service and
// purpose, and those whose API session is gone.
func (c *controller) sessions() (double, orphans int) {
	c.t.Helper()
	api := map[string]bool{}
	for _, one := range c.list("api-sessions?limit=500") {
		api[one["id"].(string)] = true
	}
	seen := map[string]bool{}
	for _, one := range c.list("sessions?limit=500") {
		of := one["apiSessionId"].(string)
		key := fmt.Sprint(of, one["serviceId"], one["type"])
		if seen[key] {
			double++
		}
		if seen[key] = true; !api[of] {
			orphans++
		}
	}
	return double, orphans
}
