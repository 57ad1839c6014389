package program_test

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/client/join"
	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/pki"
	"netkeep.internal/test/machine"
)

// freeAddress is one on which nobody listens at present.
func freeAddress(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", machine.Port(t))
}

// node is one of several controllers.
type node struct {
	*process
	data, listen, peers string
}

// startNode starts a controller that has others, and waits until it is ready.
func startNode(t *testing.T, data string, more ...string) *node {
	t.Helper()
	n := &node{data: data, listen: freeAddress(t), peers: freeAddress(t)}
	n.start(t, more...)
	return n
}

// start starts it again where it was.
func (n *node) start(t *testing.T, more ...string) {
	t.Helper()
	n.process = n.launch(t, more...)
	n.ready()
}

func (n *node) launch(t *testing.T, more ...string) *process {
	t.Helper()
	return launch(t, settings{
		args: append([]string{"run", "--data", n.data, "--listen", n.listen, "--cluster-listen", n.peers}, more...),
		env:  []string{"NETKEEP_ADMIN_PASSWORD=" + password},
	})
}

// client is somebody who is logged in there, once the store has a leader.
func (n *node) client() *client {
	n.t.Helper()
	c := connect(n.t, n.ready(), filepath.Join(n.data, "pki", "root.crt"))
	awaitTrue(n.t, "a login at "+n.listen, func() bool { return c.login("admin", password) == nil })
	return c
}

func inviteBy(t *testing.T, c *client) string {
	t.Helper()
	return c.must(t, 200, http.MethodPost, "cluster/invitations", nil).body["data"].(M)["token"].(string)
}

// awaitVotes waits until so many controllers decide.
func awaitVotes(t *testing.T, c *client, want int) {
	t.Helper()
	awaitTrue(t, fmt.Sprintf("%d controllers with a vote", want), func() bool {
		a, err := c.do(http.MethodGet, "cluster/members", nil)
		if err != nil || a.status != 200 {
			return false
		}
		votes := 0
		for _, m := range a.body["data"].([]any) {
			if m.(M)["vote"] == true {
				votes++
			}
		}
		return votes == want
	})
}

func awaitTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(waitTime); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", waitTime, what)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// has waits until a controller shows a service.
func (n *node) has(t *testing.T, name string) {
	t.Helper()
	c := n.client()
	awaitTrue(t, name+" at "+n.listen, func() bool {
		a, err := c.do(http.MethodGet, "services?filter=name%3D%22"+name+"%22", nil)
		return err == nil && a.status == 200 && len(a.body["data"].([]any)) == 1
	})
}

func addService(t *testing.T, c *client, name string) {
	t.Helper()
	awaitTrue(t, "a write of "+name, func() bool {
		a, err := c.do(http.MethodPost, "services", M{"name": name, "encryptionRequired": true})
		return err == nil && (a.status == 201 || a.status == 400 && strings.Contains(fmt.Sprint(a.body), "unique"))
	})
}

// id is by what others know a controller.
func (n *node) id(t *testing.T) string {
	t.Helper()
	name, err := os.ReadFile(filepath.Join(n.data, "controller"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(name))
}

// noted waits for audit entries that match a filter.
func noted(t *testing.T, c *client, filter string) (entries []M) {
	t.Helper()
	awaitTrue(t, "an entry with "+filter, func() bool {
		a, err := c.do(http.MethodGet, "audit-entries?filter="+url.QueryEscape(filter), nil)
		if err != nil || a.status != http.StatusOK {
			return false
		}
		entries = nil
		for _, e := range a.body["data"].([]any) {
			entries = append(entries, e.(M))
		}
		return len(entries) > 0
	})
	return entries
}

// TestThreeControllers has two controllers join a third, and one of them be
// killed, come back, be removed and come back again.
func TestThreeControllers(t *testing.T) {
	t.Parallel() // it waits more than it works
	a := startNode(t, filepath.Join(t.TempDir(), "a"))
	admin := a.client()
	token := inviteBy(t, admin)
	b := startNode(t, filepath.Join(t.TempDir(), "b"), "--join", token)
	b.logs("two controllers keep the store")
	c := startNode(t, filepath.Join(t.TempDir(), "c"), "--join", inviteBy(t, b.client()))
	awaitVotes(t, admin, 3)
	all := []*node{a, b, c}
	for i, n := range all {
		addService(t, n.client(), fmt.Sprint("service", i))
		for _, other := range all {
			other.has(t, fmt.Sprint("service", i))
		}
	}
	if admin, ok := strings.CutPrefix(b.stdout.String(), "The first admin"); ok {
		t.Errorf("one that joins made an admin: %s", admin)
	}

	for event, targets := range map[string][]*node{"member-invited": nil, "member-joined": {b, c}, "member-promoted": {b, c}} {
		if targets == nil {
			noted(t, admin, `event = "`+event+`" and actorName = "Default Admin"`)
		}
		for _, n := range targets {
			noted(t, admin, `event = "`+event+`" and targetKind = "controller" and targetId = "`+n.id(t)+`"`)
		}
	}

	// The first leads, as it is there for longest.
	a.kill(0)
	addService(t, b.client(), "meanwhile")
	c.has(t, "meanwhile")
	a.start(t)
	a.has(t, "meanwhile")

	// A token that was used does no harm to one that has joined.
	b.stop()
	b.start(t, "--join", token)
	b.has(t, "meanwhile")

	name := c.id(t)
	admin = a.client()
	awaitTrue(t, "a removal", func() bool {
		answer, err := admin.do(http.MethodDelete, "cluster/members/"+name, nil)
		return err == nil && answer.status == 200
	})
	if gone := noted(t, admin, `event = "member-removed" and targetId = "`+name+`"`)[0]; gone["operation"] != "removeClusterMember" || gone["address"] != "127.0.0.1" {
		t.Errorf("it was removed: %v", gone)
	}
	if code := c.wait(); code != 1 || !strings.Contains(c.stderr.String(), "netkeep: this controller was removed from its cluster") {
		t.Errorf("one that was removed ends with %d: %s", code, complaints(c.stderr.String()))
	}
	c.launch(t).failsLate("was removed from its cluster", "netkeep cluster invite")
	recovers(t, a, b)
}

// recovers loses one of two controllers, and goes on with the other.
func recovers(t *testing.T, a, b *node) {
	a.kill(0)
	b.kill(0)
	alone := launch(t, settings{args: []string{"run", "--data", b.data, "--listen", b.listen}})
	alone.failsLate("is kept together with other controllers", "--cluster-listen", "netkeep cluster recover")
	launch(t, settings{args: []string{"cluster", "recover", "--data", b.data}}).fails("--yes")
	done := launch(t, settings{args: []string{"cluster", "recover", "--data", b.data, "--yes"}})
	if code := done.wait(); code != 0 || !strings.Contains(done.stdout.String(), "keeps the store alone now") {
		t.Fatalf("a recovery ends with %d: %s", code, done.stderr.String())
	}
	b.start(t)
	b.has(t, "meanwhile")
	addService(t, b.client(), "alone")
	// One that was given up must not come back as if nothing had been.
	a.launch(t).failsLate("was removed from its cluster")

	// What a member has lost it does not make anew.
	b.stop()
	if err := os.RemoveAll(filepath.Join(a.data, "store")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.data, "cluster"), []byte(`{"stage":"member"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a.launch(t).failsLate("the store of this controller is gone", "netkeep cluster remove")
}

// TestJoinRefused is every way to join that is refused, and that nothing is
// changed by it.
func TestJoinRefused(t *testing.T) {
	a := startNode(t, filepath.Join(t.TempDir(), "a"))
	admin := a.client()
	text := inviteBy(t, admin)
	token, err := join.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	otherData := filepath.Join(t.TempDir(), "other")
	other := controller(t, otherData)
	foreign := other.client(otherData)
	if answer := foreign.must(t, 409, http.MethodPost, "cluster/invitations", nil); !strings.Contains(fmt.Sprint(answer.body), "--cluster-listen") {
		t.Errorf("a controller that nobody can join says %v", answer.body)
	}
	other.stop()
	changed := func(change func(*join.Token)) string {
		next := token
		change(&next)
		return next.Text()
	}
	later := func(t time.Time, by time.Duration) time.Time { return t.Add(by) }
	for name, test := range map[string]struct {
		token, data, advertise string
		says                   []string
		code                   int // 1 if not said
	}{
		"no token":         {token: "hello", says: []string{"it is no token of netkeep cluster invite"}},
		"a wrong secret":   {token: changed(func(t *join.Token) { t.Secret = strings.Repeat("0", 64) }), says: []string{"refuses", "not one of this network"}},
		"another id":       {token: changed(func(t *join.Token) { t.ID = "x" }), says: []string{"refuses", "not one of this network"}},
		"one that is old":  {token: changed(func(t *join.Token) { t.Made, t.Expires = later(t.Made, -2*time.Hour), later(t.Made, -time.Hour) }), says: []string{"the token was good until", "netkeep cluster invite"}},
		"a clock behind":   {token: changed(func(t *join.Token) { t.Made, t.Expires = later(t.Made, time.Hour), later(t.Made, 2*time.Hour) }), says: []string{"the clock of this machine says", "set it right"}},
		"another network":  {token: changed(func(t *join.Token) { t.Root = strings.Repeat("ab", 32) }), says: []string{"is no controller of the network that the token is for"}},
		"nobody there":     {token: changed(func(t *join.Token) { t.Addresses = []string{"127.0.0.1:1"} }), says: []string{"127.0.0.1:1"}, code: 6},
		"another's data":   {token: text, data: otherData, says: []string{"belongs to the network", "empty directory"}},
		"the same data":    {token: text, data: "copy", says: []string{"did not join", "empty directory"}},
		"an address twice": {token: text, advertise: a.peers, says: []string{"another controller", "is at " + a.peers, "--cluster-advertise"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := test.data
			if data == "" || data == "copy" {
				data = filepath.Join(t.TempDir(), "new")
			}
			if test.data == "copy" {
				copyKeys(t, a.data, data)
			}
			args := []string{"run", "--data", data, "--listen", "127.0.0.1:0", "--cluster-listen", freeAddress(t), "--join", test.token}
			if test.advertise != "" {
				args = append(args, "--cluster-advertise", test.advertise)
			}
			launch(t, settings{args: args}).ends(cmp.Or(test.code, 1), test.says...)
			if test.data != "" {
				return
			}
			left, err := os.ReadDir(data)
			if err != nil || len(left) != 1 || left[0].Name() != "lock" {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
	if refused := noted(t, admin, `event = "member-refused"`)[0]; refused["outcome"] != "refused" || refused["address"] != "127.0.0.1" || refused["operation"] != "join" || refused["reason"] == nil {
		t.Errorf("one was refused: %v", refused)
	}
	launch(t, settings{args: []string{"run", "--data", t.TempDir(), "--join", text}}).fails("join needs cluster.listen")
	asked(t, token)
	// None of that has used the token up.
	b := startNode(t, filepath.Join(t.TempDir(), "b"), "--join", text)
	awaitVotes(t, b.client(), 2)
	late := &node{data: filepath.Join(t.TempDir(), "late"), listen: "127.0.0.1:0", peers: freeAddress(t)}
	late.launch(t, "--join", text).failsLate("was used already")
}

// asked asks to join as no controller of this version would.
func asked(t *testing.T, token join.Token) {
	t.Helper()
	to, err := pki.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	right := join.Request{Seal: to.Public(), Version: "v9", Format: format.Current, Time: time.Now(), Peer: freeAddress(t)}
	for name, test := range map[string]struct {
		change func(*join.Request)
		says   string
	}{
		"another format": {func(r *join.Request) { r.Format++ }, "use the same version"},
		"a clock off":    {func(r *join.Request) { r.Time = r.Time.Add(5 * time.Minute) }, "clocks of the two controllers are 5m"},
		"no address":     {func(r *join.Request) { r.Peer = "" }, "--cluster-listen"},
		"a bad address":  {func(r *join.Request) { r.Peer = "x" }, "--cluster-advertise"},
		"a bad key":      {func(r *join.Request) { r.Seal = r.Seal[1:] }, "sealing keys"},
	} {
		req := right
		test.change(&req)
		if _, err := join.Ask(t.Context(), token, req); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
