package attack_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
)

// attacking is set for a process that attacks and tests nothing.
const attacking = "NETKEEP_TEST_ATTACKS"

// order is what a process is told that attacks.
type order struct {
	Misdeed       string
	Address, From string
	ID            string // of the router that it is
	Certificate   [][]byte
	Key           []byte // PKCS #8
	Victim        string // another router
	Dialing       string // tokens of a line that it hosts
	Dialer        string
	Hosting       string
	Terminator    string
}

func orders(t *testing.T, misdeed string, opt scripted.Options, hung line, victim string) order {
	t.Helper()
	cert := opt.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return order{
		Misdeed: misdeed, Address: opt.Address, From: opt.From.(*net.TCPAddr).IP.String(), ID: opt.ID, Certificate: cert.Certificate, Key: key,
		Victim: victim, Dialing: hung.dialing, Dialer: hung.dialer, Hosting: hung.hosting, Terminator: hung.terminator,
	}
}

// besiege has another process attack until ctx ends, and returns how many bytes
// were in use at most. The process has the lowest priority.
func besiege(ctx context.Context, t *testing.T, o order, ready func()) (used int64) {
	told, err := json.Marshal(o)
	if err != nil {
		t.Error(err)
		return 0
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), "nice", "-n", "19", os.Args[0])
	c.Env, c.Stderr = append(os.Environ(), attacking+"=1"), os.Stderr
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err1 != nil || err2 != nil || c.Start() != nil {
		t.Error("no process attacks: is there no nice(1)?")
		return 0
	}
	_, _ = in.Write(told) // if it fails the process says why
	var heard sync.WaitGroup
	heard.Go(func() {
		for said := bufio.NewScanner(out); said.Scan(); {
			if said.Text() == "ready" {
				ready()
			} else {
				t.Logf("the attacker: %s", said.Text())
			}
		}
	})
	sample := time.NewTicker(20 * time.Millisecond)
	defer sample.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-sample.C:
			used = max(used, live())
		}
	}
	used = max(used, heap())
	_ = in.Close() // that ends it
	heard.Wait()
	if err := c.Wait(); err != nil {
		t.Errorf("the attacker: %v", err)
	}
	return used
}

// live is how many bytes were in use when that was last found out.
func live() int64 {
	m := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(m)
	return int64(m[0].Value.Uint64())
}

// attackAsTold attacks until there is nothing more to read, and says how.
func attackAsTold(in io.Reader, out io.Writer) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var o order
	d := json.NewDecoder(in)
	if err := d.Decode(&o); err != nil {
		panic(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	key, err := x509.ParsePKCS8PrivateKey(o.Key)
	if err != nil {
		panic(err)
	}
	opt := scripted.Options{
		Address: o.Address, From: &net.TCPAddr{IP: net.ParseIP(o.From)}, ID: o.ID, Now: time.Now, Edge: "127.0.0.1:3022", Aside: true,
		// Whom it attacks is nothing that it has to be sure of.
		TLS: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{{Certificate: o.Certificate, PrivateKey: key}}},
		Route: func(*message.Route) (wire.Headers, error) {
			<-ctx.Done()
			return nil, nil
		},
	}
	say := misdeeds[o.Misdeed](o, &opt)
	said, came := misbehave(ctx, opt, sync.OnceFunc(func() { fmt.Fprintln(out, "ready") }), say)
	fmt.Fprintf(out, "said %d things, let in %d times\n", said, came)
}

// misbehave has a router say something again and again, each time when what came
// before was heard. When it is cut off it comes again.
func misbehave(ctx context.Context, opt scripted.Options, ready func(), say func(ctx context.Context, r *scripted.Router, i int) error) (said, came int) {
	for ctx.Err() == nil {
		r, err := scripted.Connect(ctx, opt)
		if err != nil {
			ready() // it is kept out
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
			continue
		}
		for came++; ctx.Err() == nil && say(ctx, r, said) == nil; said++ {
			if _, err := r.Request(ctx, &wire.Frame{Type: message.TypePing}); err != nil {
				break
			}
			if said == 20 {
				ready()
			}
		}
		ready()
		r.Close()
	}
	return said, came
}

// misdeed prepares what a router says again and again.
type misdeed func(o order, opt *scripted.Options) (say func(ctx context.Context, r *scripted.Router, i int) error)

// frames is a router that sends what frame makes.
func frames(frame func(i int) *wire.Frame) func(context.Context, *scripted.Router, int) error {
	return func(_ context.Context, r *scripted.Router, i int) error { return r.Send(frame(i)) }
}

// long is a text that is longer than any need be.
var long = strings.Repeat("x", 7<<20)

func (o order) dial(body int) *wire.Frame {
	h := wire.Headers{}
	h.SetText(message.HeaderSessionToken, o.Dialing)
	h.SetText(message.HeaderAPISessionToken, o.Dialer)
	return &wire.Frame{Type: message.TypeCreateCircuit, Headers: h, Body: []byte(long[:body])}
}

var misdeeds = map[string]misdeed{
	"nothing": func(order, *scripted.Options) func(context.Context, *scripted.Router, int) error { // for comparison
		return func(context.Context, *scripted.Router, int) error {
			<-time.After(20 * time.Millisecond)
			return nil
		}
	},
	"large frames": func(o order, _ *scripted.Options) func(context.Context, *scripted.Router, int) error {
		return frames(func(i int) *wire.Frame {
			if i%2 == 0 {
				return o.dial(len(long))
			}
			return &wire.Frame{Type: message.TypeConnectEvents, Body: message.Marshal(&message.ConnectEvents{Events: []message.ConnectEvent{{IdentityID: fmt.Sprint(i) + long, Connected: true}}})}
		})
	},
	"dials that nobody answers": func(o order, _ *scripted.Options) func(context.Context, *scripted.Router, int) error {
		return func(_ context.Context, r *scripted.Router, _ int) error {
			for range 100 {
				if err := r.Send(o.dial(10_000)); err != nil {
					return err
				}
			}
			return nil
		}
	},
	"circuits that there are not": func(_ order, opt *scripted.Options) func(context.Context, *scripted.Router, int) error {
		opt.Circuits = map[string]*message.Route{}
		for i := range 20_000 {
			opt.Circuits[fmt.Sprintf("invented%d", i)] = &message.Route{Forwards: []message.Forward{{From: "in", To: "out"}, {From: "out", To: "in"}}}
		}
		return func(ctx context.Context, r *scripted.Router, _ int) error {
			_ = r.Await(ctx, func(k scripted.Known) bool { return len(k.Circuits) < len(opt.Circuits) })
			return context.Canceled // it connects again
		}
	},
	"links of another": func(o order, _ *scripted.Options) func(context.Context, *scripted.Router, int) error {
		var links message.Links
		for i := range 10_010 {
			links.Links = append(links.Links, message.Link{ID: fmt.Sprintf("invented-%d", i), Destination: o.Victim, Protocol: "tls", DialAddress: "tls:127.0.0.1:1", Iteration: 1})
		}
		return frames(func(int) *wire.Frame {
			return &wire.Frame{Type: message.TypeRouterLinks, Body: message.Marshal(&links)}
		})
	},
	"long names and reasons": func(order, *scripted.Options) func(context.Context, *scripted.Router, int) error {
		return frames(func(i int) *wire.Frame {
			if i%2 == 0 {
				return &wire.Frame{Type: message.TypeResyncRequest, Body: message.Marshal(&message.ResyncRequest{Reason: strings.Repeat("\x01", 60_000)})}
			}
			return &wire.Frame{Type: message.TypeClientHello, Body: message.Marshal(&message.ClientHello{Hostname: long[:[]int{60_000, 3_800_000}[i/2%2]]})}
		})
	},
	"changes of a host": func(o order, _ *scripted.Options) func(context.Context, *scripted.Router, int) error {
		return func(ctx context.Context, r *scripted.Router, i int) error {
			var all sync.WaitGroup
			for n := range 100 {
				all.Go(func() {
					_, _ = r.Request(ctx, &wire.Frame{Type: message.TypeUpdateTerminator, Body: message.Marshal(&message.UpdateTerminator{
						SessionToken: o.Hosting, TerminatorID: o.Terminator, UpdateCost: true, Cost: uint32(100*i+n) % 60_000,
					})})
				})
			}
			all.Wait()
			return nil
		}
	},
	"changes of itself": func(order, *scripted.Options) func(context.Context, *scripted.Router, int) error {
		return frames(func(i int) *wire.Frame {
			return &wire.Frame{Type: []int32{message.TypeQuiesce, message.TypeDequiesce}[i%2]}
		})
	},
}
