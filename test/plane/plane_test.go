// Package plane measures what it costs a router to carry bytes, beside the least
// that any program in Go pays for it: a relay between two TLS connections, measured
// in the same run. Each carries in a process of its own; whoever sends and takes is
// here, and counts for nothing.
package plane

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/router/home"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(partVariable); name != "" {
		if err := part(name); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// piece is what is written at once: what programs that copy have room for.
const piece = 32 << 10

// give sends who asks as many bytes as it wants, again and again.
func give(conn net.Conn) {
	defer conn.Close()
	data := make([]byte, piece)
	for {
		var want [8]byte
		if _, err := io.ReadFull(conn, want[:]); err != nil {
			return
		}
		for left := int64(binary.BigEndian.Uint64(want[:])); left > 0; left -= piece {
			if _, err := conn.Write(data[:min(left, piece)]); err != nil {
				return
			}
		}
	}
}

func serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go give(conn)
	}
}

// way is how bytes get from one end to the other, and the processes that they
// pass through.
type way struct {
	name     string
	dial     func() (net.Conn, error)
	carriers []*carrier
}

func (w *way) used(b *testing.B) (all used) {
	for _, c := range w.carriers {
		all = all.and(c.used(b))
	}
	return all
}

// carry takes so many bytes over some connections at once, and returns what that
// cost: not what it cost to make them.
func (w *way) carry(b *testing.B, conns int, bytes int64) used {
	b.Helper()
	open := make([]net.Conn, conns)
	for i := range open {
		var err error
		open[i], err = w.dial()
		must(b, err)
		defer open[i].Close()
		must(b, take(open[i], 1))
	}
	before := w.used(b)
	var all sync.WaitGroup
	for _, conn := range open {
		all.Go(func() {
			if err := take(conn, bytes/int64(conns)); err != nil {
				b.Error(w.name, err)
			}
		})
	}
	all.Wait()
	return w.used(b).less(before)
}

// take asks for bytes, and takes them.
func take(conn net.Conn, bytes int64) error {
	if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, uint64(bytes))); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, conn, bytes)
	return err
}

// carries reports whether there is a way by now.
func (w *way) carries() bool {
	conn, err := w.dial()
	if err != nil {
		return false
	}
	defer conn.Close()
	return take(conn, 1) == nil
}

// world is all that is measured: the relay first.
func world(b *testing.B) []*way {
	b.Helper()
	s, err := servertest.Open(b.TempDir())
	must(b, err)
	b.Cleanup(func() { _ = s.Close() })
	n := networktest.New(b, s)
	ways := []*way{relayed(b)}
	near, far := addRouter(b, n, "near"), addRouter(b, n, "far")
	for _, ends := range []struct {
		name  string
		plain bool
	}{{"ends in clients", false}, {"ends in routers", true}} {
		flow := func(o *sdk.Options) { o.Plain = ends.plain }
		service := n.AddService("of "+ends.name, false)
		l, err := n.Client(n.AddIdentity("host of "+ends.name, "near"), flow).Listen(b.Context(), service, sdk.ListenOptions{})
		must(b, err)
		b.Cleanup(func() { _ = l.Close() })
		go serve(l)
		for _, at := range []struct {
			name, router string
			carriers     []*carrier
		}{{"one router", "near", []*carrier{near}}, {"two linked", "far", []*carrier{near, far}}} {
			user := n.Client(n.AddIdentity("user of "+ends.name+" "+at.router, at.router), flow)
			w := &way{name: ends.name + ", " + at.name, carriers: at.carriers}
			w.dial = func() (net.Conn, error) { return user.Dial(b.Context(), service, sdk.DialOptions{}) }
			n.Eventually("there is a way: "+w.name, w.carries)
			ways = append(ways, w)
		}
	}
	return ways
}

// relayed is the way over the relay.
func relayed(b *testing.B) *way {
	b.Helper()
	dir := identify(b)
	config, err := papers(dir)
	must(b, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	must(b, err)
	b.Cleanup(func() { _ = l.Close() })
	go serve(l)
	c := start(b, "relay", dir, l.Addr().String())
	return &way{name: "relay", carriers: []*carrier{c}, dial: func() (net.Conn, error) { return tls.Dial("tcp", c.address, config) }}
}

// addRouter enrolls a router and runs it. Those with its word use it, and no other.
func addRouter(b *testing.B, n *networktest.Network, word string) *carrier {
	b.Helper()
	n.Admin.Post(networktest.Management+"edge-router-policies", networktest.M{
		"name": word, "semantic": "AnyOf", "identityRoles": []string{"#" + word}, "edgeRouterRoles": []string{"#" + word},
	}).Want(201)
	id := n.Admin.Post(networktest.Management+"edge-routers", networktest.M{"name": word, "roleAttributes": []string{n.Word + "-" + word, word}}).Want(201).ID()
	n.Admin.Post(networktest.Management+"service-edge-router-policies", networktest.M{
		"name": word, "semantic": "AnyOf", "serviceRoles": []string{"#" + n.Word}, "edgeRouterRoles": []string{"#" + word},
	}).Want(201)
	inv, err := enroll.Read(n.Admin.Get(networktest.Management + "edge-routers/" + id).Want(200).Data()["enrollmentJwt"].(string))
	must(b, err)
	set := home.DefaultSettings()
	set.Listen, set.Advertise, set.Metrics = "127.0.0.1:0", []string{"127.0.0.1"}, home.MetricsOff
	set.Fill()
	dir := filepath.Join(b.TempDir(), "router")
	must(b, home.Enroll(b.Context(), dir, inv, set, false, enroll.Options{Now: time.Now}))
	return start(b, "router", dir, "")
}

// BenchmarkCarry tells for each way what its processes have used for a GiB, and how
// many times what the relay did. Everything is measured in turns, so that what the
// machine does besides falls on all.
//
//	go test -run '^$' -bench Carry -benchtime 5x ./test/plane
//
// With PLANE_PROFILE=DIRECTORY each process leaves its profile there.
func BenchmarkCarry(b *testing.B) {
	const bytes = 128 << 20
	ways := world(b)
	for _, conns := range []int{1, 50} {
		b.Run(fmt.Sprint(conns), func(b *testing.B) {
			all := make([]used, len(ways))
			for b.Loop() {
				for i, w := range ways {
					all[i] = all[i].and(w.carry(b, conns, bytes))
				}
			}
			gib := float64(b.N) * bytes / (1 << 30)
			for i, w := range ways {
				fmt.Printf("%2d connections, %-28s %5.2f CPU s/GiB, %4.2f times the relay; %7.0f objects and %6.1f MiB allocated a GiB\n",
					conns, w.name, all[i].cpu.Seconds()/gib, all[i].cpu.Seconds()/all[0].cpu.Seconds(),
					float64(all[i].objects)/gib, float64(all[i].bytes)/gib/(1<<20))
			}
		})
	}
}
