package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// members takes the lists of controllers that a router is told.
type members chan *message.Members

func (m members) take(f *wire.Frame) {
	if f.Type == message.TypeMembers {
		if list, err := message.Unmarshal[message.Members](f.Body); err == nil {
			m <- list
		}
	}
}

// want waits for a list of so many controllers, whose index is larger than one
// before.
func (m members) want(t *testing.T, count int, above uint64) *message.Members {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case list := <-m:
			if len(list.Addresses) == count && len(list.Controllers) == count && list.Index > above {
				return list
			}
		case <-late:
			t.Fatalf("nobody tells a router of %d controllers", count)
		}
	}
}

// TestRoutersAreTold has a second controller come: routers of both generations hear
// where both are, and hear it again when they ask.
func TestRoutersAreTold(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	old, young := make(members, 100), make(members, 100)
	r := a.AddRouter(t).Connect(t, func(o *scripted.Options) { o.Grouped, o.Seen = true, young.take })
	a.AddRouter(t).Connect(t, func(o *scripted.Options) { o.Seen = old.take })
	if mask := r.Welcome[message.HeaderCapabilities]; len(mask) != 1 || mask[0] != 0x7e {
		t.Errorf("a controller that others may join can do % x: routers of the first generation end when they learn later of the data model", mask)
	}
	alone := young.want(t, 1, 0)
	b := closing(t, second(t, a, use))
	both := young.want(t, 2, alone.Index)
	for _, s := range []*servertest.Server{a, b} {
		address := "tls:" + s.RouterAddress()
		if !slices.Contains(both.Addresses, address) || !slices.ContainsFunc(both.Controllers, func(m message.Member) bool { return m.Endpoints[0].Address == address }) {
			t.Errorf("routers are told of %+v, without %s", both, address)
		}
	}
	if !both.Leader {
		t.Error("nobody says that it leads: a router of the first generation that hosts something hears nothing for ten seconds after each connection")
	}
	if both.Controllers[0].ID == both.Controllers[1].ID {
		t.Errorf("both controllers are %s", both.Controllers[0].ID)
	}
	if err := r.Send(&wire.Frame{Type: message.TypeMembersRequest}); err != nil {
		t.Fatal(err)
	}
	young.want(t, 2, both.Index-1)
	old.want(t, 2, alone.Index)
}

// TestCircuitsOfOthers has a router carry circuits that nobody knows, some by the
// word of another controller: those are left alone.
func TestCircuitsOfOthers(t *testing.T) {
	beside(t)
	s := servertest.Start(t, func(*config.Config) {})
	const each = 20
	gone := make(chan string, 2*each)
	s.AddRouter(t).Connect(t, func(o *scripted.Options) {
		o.Circuits, o.Owners = map[string]*message.Route{}, map[string]string{}
		for i := range each {
			mine, other := fmt.Sprintf("mine%d.x.y", i), fmt.Sprintf("other%d.x.y", i)
			o.Circuits[mine], o.Circuits[other] = &message.Route{}, &message.Route{}
			o.Owners[other] = "netkeep-0123456789ab"
		}
		o.Seen = func(f *wire.Frame) {
			if m, err := message.Unmarshal[message.Unroute](f.Body); f.Type == message.TypeUnroute && err == nil {
				gone <- m.CircuitID
			}
		}
	})
	late := time.After(30 * time.Second)
	for range each {
		select {
		case id := <-gone:
			if id[:5] == "other" {
				t.Fatalf("the circuit %s of another controller was taken away", id)
			}
		case <-late:
			t.Fatal("circuits that rest on nothing were not taken away")
		}
	}
}

// TestOneTells has routers of others connected to two controllers: of each, one
// tells it who may connect, and both that somebody may not any more. When that one
// is gone, the other does.
func TestOneTells(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	b := second(t, a, use)
	controllers := []*servertest.Server{a, b}
	for _, s := range controllers { // until each knows of the other
		servertest.Eventually(t, 30*time.Second, "two controllers", func() bool {
			list := s.Nobody(t).Get(client + "controllers").List()
			return len(list) == 2 && list[0]["isOnline"] == true && list[1]["isOnline"] == true
		})
	}
	const routers = 16
	var told [routers][2]*scripted.Router
	tells := func(i, at int) bool {
		known := make(chan bool, 1)
		_ = told[i][at].Await(t.Context(), func(k scripted.Known) bool { known <- k.Synced > 0; return true })
		return <-known
	}
	for i := range routers {
		r := a.AddRouter(t)
		for at, s := range controllers {
			opt := r.Options()
			opt.Address = s.RouterAddress()
			var err error
			if told[i][at], err = scripted.Connect(t.Context(), opt); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(told[i][at].Close)
		}
		servertest.Eventually(t, 30*time.Second, "somebody tells a router", func() bool { return tells(i, 0) || tells(i, 1) })
	}
	var share [2]int
	for i := range routers {
		for at := range controllers {
			if tells(i, at) {
				share[at]++
			}
		}
	}
	if share[0]+share[1] != routers || share[0] == 0 || share[1] == 0 {
		t.Fatalf("of %d routers the controllers tell %v", routers, share)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range routers {
		servertest.Eventually(t, 30*time.Second, "the other controller tells a router", func() bool { return tells(i, 0) })
	}
}
