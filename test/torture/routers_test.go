package torture

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

var (
	sites       = flag.Int("sites", 2, "how many sites there are, each with routers of its own")
	perSite     = flag.Int("routers", 3, "how many routers each site has; two of them lead to other sites")
	connections = flag.Int("connections", 12, "how many connections there are at once")
	deaths      = flag.Int("deaths", 1, "how often three in ten of all routers are killed")
	deathEvery  = flag.Duration("death-every", 0, "how long apart")
)

// TestRoutersDie has routers die, many at once, under connections from site to site.
// Whatever arrives is right, connections that cannot go on end at both ends, and when all
// is quiet no circuit is left and there are the links that there should be.
func TestRoutersDie(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Log.Level = "error" })
	w := newSites(t, s)
	before := w.links(t)
	ctx, stop := context.WithCancel(t.Context())
	var talking sync.WaitGroup
	for i := range *connections {
		mine := rand.New(rand.NewPCG(w.Uint64(), 0))
		talking.Go(func() { w.talk(ctx, t, i, mine) })
	}
	for range *deaths {
		begun := time.Now()
		servertest.Eventually(t, networktest.Soon, "traffic", w.all(2**connections))
		w.die(t)
		servertest.Eventually(t, networktest.Soon, "traffic again", w.all(2**connections))
		if t.Failed() {
			break
		}
		<-time.After(time.Until(begun.Add(*deathEvery)))
	}
	stop()
	talking.Wait()
	t.Logf("%d routers, %d links, killed %d times; %d connections ended well, %d were cut, %d could not be made; %d MiB came back right",
		len(w.routers), before, w.killed, w.done.Load(), w.cut.Load(), w.refused.Load(), w.bytes.Load()>>20)
	servertest.Eventually(t, networktest.Soon, "the end of all connections where services are hosted", func() bool { return w.open.Load() == 0 })
	servertest.Eventually(t, networktest.Soon, "no circuit", func() bool { return len(w.list(t, "circuits")) == 0 })
	servertest.Eventually(t, networktest.Soon, "the links that there should be", func() bool { return len(w.list(t, "links")) == before })
}

// world is sites with routers, clients and services.
type world struct {
	*rand.Rand

	s        *servertest.Server
	routers  []*networktest.Router
	clients  []*sdk.Client
	services []string
	killed   int

	open                            atomic.Int64 // connections, where they are hosted
	done, cut, refused, bytes, told atomic.Int64
}

// newSites makes them. Two routers of each site have links to those of other sites.
func newSites(t *testing.T, s *servertest.Server) *world {
	w := &world{Rand: chance(t), s: s}
	var nets []*networktest.Network
	for range *sites {
		n := networktest.New(t, s)
		nets = append(nets, n)
	}
	pairs := *sites * (*perSite * (*perSite - 1) / 2)
	for i, n := range nets {
		for j := range *perSite {
			groups := []string{n.Word}
			if j < 2 {
				groups = append(groups, "between")
			}
			w.routers = append(w.routers, n.AddRouterIn(groups, fmt.Sprintf("r%d", j)))
		}
		w.clients = append(w.clients, n.Client(n.AddIdentity("client")))
		host := n.Client(n.AddIdentity("host"))
		service := n.AddService("echo", i%2 == 0)
		id := n.Admin.Get(networktest.Management + "services?filter=" + `name%3D%22` + service + "%22").Want(200).List()[0]["id"].(string)
		for _, other := range nets {
			if other != n {
				n.Admin.Post(networktest.Management+"service-policies", M{
					"name": other.Word + " to " + service, "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#" + other.Word}, "serviceRoles": []string{"@" + id},
				}).Want(201)
				n.Admin.Post(networktest.Management+"service-edge-router-policies", M{
					"name": other.Word + " carries " + service, "semantic": "AnyOf", "serviceRoles": []string{"@" + id}, "edgeRouterRoles": []string{"#" + other.Word},
				}).Want(201)
			}
		}
		w.host(t, host, service)
		w.services = append(w.services, service)
	}
	between := 2 * *sites
	want := pairs + between*(between-1)/2 - *sites // two of a site have one link, in whichever group
	servertest.Eventually(t, networktest.Soon, fmt.Sprintf("%d links", want), func() bool { return len(w.list(t, "links")) >= want })
	return w
}

// list asks the controller what there is.
func (w *world) list(t *testing.T, what string) []M {
	t.Helper()
	return w.s.Admin(t).Get("/fabric/v1/" + what + "?limit=-1").Want(200).List()
}

func (w *world) links(t *testing.T) int { return len(w.list(t, "links")) }

// host has a service echo, and counts the connections that are there.
func (w *world) host(t *testing.T, c *sdk.Client, service string) {
	t.Helper()
	l, err := c.Listen(t.Context(), service, sdk.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.open.Add(1)
			go func() {
				defer w.open.Add(-1)
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
}

// talk has one connection after the other, until ctx ends.
func (w *world) talk(ctx context.Context, t *testing.T, i int, r *rand.Rand) {
	for ctx.Err() == nil {
		c, service := w.clients[i%len(w.clients)], w.services[r.IntN(len(w.services))]
		limit, cancel := context.WithTimeout(ctx, networktest.Soon)
		conn, err := c.Dial(limit, service, sdk.DialOptions{})
		cancel()
		if err != nil {
			w.refused.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond): // as somebody does who tries again
			}
			continue
		}
		switch wrong, err := w.say(ctx, conn, r); {
		case wrong:
			t.Errorf("other bytes come back than were sent to %s", service)
		case err == nil:
			w.done.Add(1)
		default:
			if e, is := err.(net.Error); is && e.Timeout() {
				t.Errorf("a connection to %s hangs", service)
			}
			w.cut.Add(1)
		}
		_ = conn.Close()
	}
}

// say says some words, each when the one before has come back.
func (w *world) say(ctx context.Context, conn net.Conn, r *rand.Rand) (wrong bool, err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for words := 5 + r.IntN(200); words > 0 && ctx.Err() == nil; words-- {
		said := make([]byte, 1+r.IntN(4096))
		for i := range said {
			said[i] = byte(r.Uint32())
		}
		_ = conn.SetDeadline(time.Now().Add(2 * networktest.Soon))
		if _, err := conn.Write(said); err != nil {
			return false, err
		}
		heard := make([]byte, len(said))
		n, err := io.ReadFull(conn, heard)
		if !bytes.Equal(heard[:n], said[:n]) {
			return true, nil
		}
		w.bytes.Add(int64(n))
		if err != nil {
			return false, err
		}
		w.told.Add(1)
		<-tick.C
	}
	return false, nil
}

// all reports whether so many words came back from now on.
func (w *world) all(words int) func() bool {
	from := w.told.Load()
	return func() bool { return w.told.Load() >= from+int64(words) }
}

// die kills three in ten of all routers at once, and has them come back.
func (w *world) die(t *testing.T) {
	t.Helper()
	dead := w.Perm(len(w.routers))[:max(1, len(w.routers)*3/10)]
	for _, i := range dead {
		w.routers[i].Kill()
		w.killed++
	}
	for _, i := range dead {
		w.routers[i].Restart()
	}
}
