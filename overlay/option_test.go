package overlay_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"netkeep.internal/overlay"
	"netkeep.internal/test/networktest"
)

// precedences are as the controller calls them.
var precedences = map[overlay.Precedence]string{
	overlay.PrecedenceDefault: "default", overlay.PrecedenceRequired: "required", overlay.PrecedenceFailed: "failed",
}

// answer has a listener say who it is to all who come, and what they gave along.
func answer(l *overlay.Listener, who string) {
	for {
		conn, err := l.AcceptConn()
		if err != nil {
			return
		}
		fmt.Fprintf(conn, "%s got %q", who, conn.Data())
		_ = conn.Close()
	}
}

// TestOptions hosts one service several times in ways that were drawn, and dials
// it with and without a name: what hosts said is what the controller knows of
// them, and what dialers said is what hosts get.
func TestOptions(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	service := n.AddService("many", true)
	identity := n.AddIdentity("host")
	host, user := open(t, identity.File), open(t, n.AddIdentity("user").File)
	hosts := map[string]M{} // by instance
	for i := range 6 {
		name, cost, precedence := fmt.Sprint("instance ", i), uint16(rand.N(1<<16)), overlay.Precedence(rand.N(3))
		choice := overlay.ListenOption(overlay.WithInstance(name))
		if i == 0 {
			name, choice = identity.Name, overlay.AsIdentity()
		}
		l, err := host.Listen(t.Context(), service, choice, overlay.WithCost(cost), overlay.WithPrecedence(precedence), overlay.WithSecret([]byte("hush")))
		must(t, err)
		if l.Addr().String() != service {
			t.Errorf("a listener is at %s", l.Addr())
		}
		hosts[name] = M{"cost": float64(cost), "precedence": precedences[precedence]}
		go answer(l, name)
	}
	for _, terminator := range n.Admin.Get(networktest.Management + `terminators?limit=100&filter=service.name="` + service + `"`).Want(200).List() {
		name := terminator["identity"].(string)
		want := hosts[name]
		if terminator["cost"] != want["cost"] || terminator["precedence"] != want["precedence"] {
			t.Errorf("%s was to be %v, and is %v", name, want, terminator)
		}
	}
	for name := range hosts {
		word := fmt.Sprint("word ", rand.Uint64())
		conn, err := user.Dial(t.Context(), service, overlay.WithInstance(name), overlay.WithData([]byte(word)), overlay.WithTimeout(networktest.Soon))
		must(t, err)
		if conn.Service() != service || conn.Circuit() == "" {
			t.Errorf("the connection is to %q, in the circuit %q", conn.Service(), conn.Circuit())
		}
		got, err := io.ReadAll(conn)
		must(t, err)
		if want := fmt.Sprintf("%s got %q", name, word); string(got) != want {
			t.Errorf("dialled %s: %s", name, got)
		}
		must(t, conn.Close())
	}
	if _, err := user.Dial(t.Context(), service, overlay.WithInstance("nobody")); err == nil {
		t.Error("there is a host that nobody is")
	}
	// A name has one owner, and those who know its secret.
	ctx, cancel := context.WithTimeout(t.Context(), networktest.Soon)
	defer cancel()
	_, err := user.Listen(ctx, service, overlay.WithInstance(identity.Name), overlay.WithSecret([]byte("guess")))
	if overlay.CodeOf(err) != "INVALID_INSTANCE" || !errors.Is(err, overlay.ErrRefused) || ctx.Err() != nil {
		t.Errorf("somebody else hosts under the name, or is not told at once that another does: %v", err)
	}
	l, err := user.Listen(t.Context(), service, overlay.WithInstance(identity.Name), overlay.WithSecret([]byte("hush")))
	must(t, err)
	must(t, l.Close())
}

// TestBounds has dials and listeners give up when they are told to.
func TestBounds(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("router")
	service := n.AddService("slow", true)
	host, user := open(t, n.AddIdentity("host").File), open(t, n.AddIdentity("user").File)
	// Somebody listens, and never accepts. The time is enough to get as far as that.
	l, err := host.Listen(t.Context(), service)
	must(t, err)
	_, err = user.Dial(t.Context(), service, overlay.WithTimeout(2*time.Second))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "was not connected in time") {
		t.Errorf("a dial that was to be short: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := user.Dial(ctx, service)
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("a dial that was called off: %v", err)
	}

	other := n.AddService("other", true)
	for name, listen := range map[string]func() error{
		"called off": func() error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := host.Listen(ctx, other)
			return err
		},
		"too late": func() error {
			_, err := host.Listen(t.Context(), other, overlay.WithTimeout(time.Nanosecond))
			return err
		},
	} {
		if err := listen(); err == nil {
			t.Errorf("a listener that was %s is there", name)
		}
	}
	// One that is there does not depend on the context that it was made with.
	ctx, cancel = context.WithCancel(t.Context())
	kept, err := host.Listen(ctx, other)
	must(t, err)
	cancel()
	go answer(kept, "it")
	conn, err := user.Dial(t.Context(), other)
	must(t, err)
	if got, err := io.ReadAll(conn); string(got) != `it got ""` || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	router.Stop()
	must(t, kept.Close())
	must(t, l.Close())
	if _, err := l.AcceptConn(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a listener that was closed: %v", err)
	}
}
