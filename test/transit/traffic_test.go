// Package transit sends real traffic through routers and clients of our own,
// under a real controller.
package transit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// M is a JSON object.
type M = servertest.M

var shared *servertest.Server

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "transit")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	if shared, err = servertest.Open(dir); err != nil {
		fmt.Println(err)
		return 1
	}
	defer shared.Close()
	return m.Run()
}

// bytesOf are n bytes that nobody expects.
func bytesOf(seed uint64, n int) []byte {
	b := make([]byte, n)
	var key [32]byte
	key[0] = byte(seed)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

// exchange sends bytes over a new connection to who echoes, and expects them
// back; then it half closes, and expects the end.
func exchange(ctx context.Context, c *sdk.Client, service string, size int) error {
	conn, err := c.Dial(ctx, service, sdk.DialOptions{})
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	if at, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(at)
	}
	data := bytesOf(uint64(size), size)
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, bytes.NewReader(data))
		sent <- errors.Join(err, conn.CloseWrite())
	}()
	got := sha256.New()
	n, err := io.Copy(got, conn)
	if err := errors.Join(err, <-sent); err != nil {
		return fmt.Errorf("after %d of %d bytes: %w", n, size, err)
	}
	if want := sha256.Sum256(data); n != int64(size) || !bytes.Equal(got.Sum(nil), want[:]) {
		return fmt.Errorf("%d bytes came back of %d, or others", n, size)
	}
	return nil
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestTraffic sends bytes through one router and across two, with and without
// encryption between the ends, with ends of streams in clients and in routers.
func TestTraffic(t *testing.T) {
	n := networktest.New(t, shared)
	near, far := n.AddRouter("near", "near"), n.AddRouter("far", "far")
	_ = near
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	n.Eventually("the routers are linked", func() bool { return linked(n, near, far) })
	for _, encrypted := range []bool{true, false} {
		for _, plain := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			t.Run(fmt.Sprintf("encrypted=%v/plain=%v", encrypted, plain), func(t *testing.T) {
				service := n.AddService(fmt.Sprintf("s%v%v%v", encrypted, plain[0], plain[1]), encrypted)
				n.Echo(n.Client(host, func(o *sdk.Options) { o.Plain = plain[1] }), service)
				c := n.Client(user, func(o *sdk.Options) { o.Plain = plain[0] })
				var all sync.WaitGroup
				for _, size := range []int{0, 1, 1000, 100_000, 3_000_000} {
					for range 2 {
						all.Go(func() {
							if err := exchange(within(t, networktest.Soon), c, service, size); err != nil {
								t.Errorf("%d bytes: %v", size, err)
							}
						})
					}
				}
				all.Wait()
			})
		}
	}
	n.Eventually("all circuits are gone", func() bool {
		return near.Carried() == 0 && far.Carried() == 0
	})
}

// linked reports whether two routers have a link.
func linked(n *networktest.Network, a, b *networktest.Router) bool {
	for _, l := range n.Admin.Get("/fabric/v1/links?limit=500").Want(200).List() {
		from, to := end(l, "sourceRouter"), end(l, "destRouter")
		if from == a.ID && to == b.ID || from == b.ID && to == a.ID {
			return true
		}
	}
	return false
}

func end(link M, name string) string {
	router, _ := link[name].(M)
	id, _ := router["id"].(string)
	return id
}

// TestNothingLost has one connection send as much as it can: what the ends of a
// stream have in flight finds room on its way, or most of the time would go into
// waiting until it is sent again. A few may be sent again without need, where
// whoever acknowledges has to wait for a processor, and find none.
func TestNothingLost(t *testing.T) {
	n := networktest.New(t, shared)
	near, far := n.AddRouter("near", "near"), n.AddRouter("far", "far")
	n.Eventually("the routers are linked", func() bool { return linked(n, near, far) })
	service := n.AddService("echo", false)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	if err := exchange(within(t, networktest.Soon), n.Client(n.AddIdentity("user")), service, 32<<20); err != nil {
		t.Fatal(err)
	}
	if near, far := near.Figures(), far.Figures(); near.Lost+far.Lost > 10 || near.Entered+far.Entered < 32<<20 {
		t.Errorf("%d and %d payloads were lost, %d bytes passed", near.Lost, far.Lost, near.Entered+far.Entered)
	}
}

// TestSlowReader has one connection of a client that nobody reads from: others
// of the same client go on.
func TestSlowReader(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	service := n.AddService("echo", true)
	n.Echo(n.Client(host), service)
	c := n.Client(user)
	slow, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	_ = slow.SetWriteDeadline(time.Now().Add(2 * time.Second))
	n64, err := io.Copy(slow, io.LimitReader(rand.NewChaCha8([32]byte{}), 1<<30))
	if ne, ok := errors.AsType[net.Error](err); !ok || !ne.Timeout() {
		t.Fatalf("after %d bytes that nobody reads: %v, where the sender has to wait", n64, err)
	}
	for range 3 {
		if err := exchange(within(t, networktest.Soon), c, service, 500_000); err != nil {
			t.Fatal(err)
		}
	}
}

// oneRouter is a network of one router with a service that is hosted, and
// somebody who may dial it.
func oneRouter(t *testing.T) (n *networktest.Network, r *networktest.Router, c *sdk.Client, service string) {
	t.Helper()
	n = networktest.New(t, shared)
	r = n.AddRouter("one")
	service = n.AddService("echo", true)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	return n, r, n.Client(n.AddIdentity("user")), service
}

// TestRouterRestart ends a router under who hosts and dials: both find back.
func TestRouterRestart(t *testing.T) {
	n, r, c, service := oneRouter(t)
	if err := exchange(within(t, networktest.Soon), c, service, 1000); err != nil {
		t.Fatal(err)
	}
	r.Restart()
	n.Eventually("a dial works again", func() bool { return exchange(within(t, networktest.Soon/4), c, service, 1000) == nil })
}

// TestRouterBack has somebody dial while the only router is away: the next dial
// finds it.
func TestRouterBack(t *testing.T) {
	n, r, c, service := oneRouter(t)
	online := func() bool {
		return n.Admin.Get(networktest.Management + "edge-routers/" + r.ID).Want(200).Data()["isOnline"] == true
	}
	r.Stop()
	n.Eventually("the router is away", func() bool { return !online() })
	if err := exchange(within(t, networktest.Soon), c, service, 1000); err == nil || !strings.Contains(err.Error(), "online") {
		t.Errorf("a dial without a router: %v", err)
	}
	r.Restart()
	n.Eventually("the service is hosted again", func() bool {
		err := exchange(within(t, networktest.Soon), c, service, 1000)
		if err != nil && strings.Contains(err.Error(), "online") {
			t.Fatalf("a dial when the router is back: %v", err)
		}
		return err == nil
	})
}
