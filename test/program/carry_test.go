package program_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"netkeep.internal/test/machine"
)

var carryRounds = flag.Int("carry-rounds", 2, "how often to kill a controller whose router carries traffic")

// carried is how many connections there are at every kill.
const carried = 4

// TestKillCarrying kills a controller with a router inside that carries traffic, while
// others write. Every byte that comes out of a connection is the right one, each
// connection ends and does not hang, and there are others as soon as the controller is
// there again, without a word to the tunneler; nothing is left of those before.
func TestKillCarrying(t *testing.T) {
	t.Parallel() // it waits more than it works
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	seed := uint64(time.Now().UnixNano())
	moments := rand.New(rand.NewPCG(seed, 0))
	listen, router, local := "127.0.0.1:"+machine.Port(t), "127.0.0.1:"+machine.Port(t), machine.Port(t)
	start := func() *process {
		p := launch(t, settings{
			args: []string{"run", "--data", data, "--listen", listen, "--router", router},
			env:  []string{"NETKEEP_ADMIN_PASSWORD=" + password},
		})
		p.ready()
		return p
	}
	p := start()
	c := p.client(data)
	crew := newCrew(t, c, seed)
	c.addEcho(t)
	for _, typ := range []string{"Dial", "Bind"} {
		c.must(t, 201, "POST", "service-policies", M{"name": typ, "type": typ, "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}})
	}
	_, file := c.addTunneler(t, dir, "tunneler")
	launch(t, settings{args: []string{"tunnel", "run", "--identity", file, "echo:" + local}})
	var gaps []time.Duration
	for range *carryRounds {
		var talks []*talk
		for range carried {
			talks = append(talks, newTalk(dialEcho(t, local), moments.Uint64()))
		}
		writeUntilKilled(p, c, crew, 5+moments.Int64N(mostWrites), time.Duration(moments.Int64N(int64(20*time.Millisecond))))
		for _, talk := range talks {
			if err := talk.wait(); err != nil {
				t.Errorf("a connection whose router was killed: %v", err)
			}
		}
		p = start()
		began := time.Now()
		_ = dialEcho(t, local).Close()
		gaps = append(gaps, time.Since(began))
		c = c.on(t, p, data)
		crew.settle(t, c)
		c.circuits(t, p, 0)
		if t.Failed() {
			return
		}
	}
	t.Logf("connections were there again after %v", gaps)
	crew.report(t, *carryRounds)
	p.stop()
}

// circuits waits until there are so many.
func (c *client) circuits(t *testing.T, p *process, want int) {
	t.Helper()
	for deadline := time.Now().Add(waitTime); ; {
		there := c.must(t, 200, http.MethodGet, "/fabric/v1/circuits", nil).body["data"].([]any)
		if len(there) == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there are %d circuits, not %d: %v", len(there), want, there)
		}
		select {
		case <-p.ended:
			t.Fatal("the process ended")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// talk says something to a connection and listens to what comes back, until it ends.
type talk struct {
	conn  net.Conn
	ended chan error
}

// newTalk begins one. What is said follows from the seed.
func newTalk(conn net.Conn, seed uint64) *talk {
	k := &talk{conn: conn, ended: make(chan error, 1)}
	var key [32]byte
	copy(key[:], fmt.Sprint(seed))
	said, heard := rand.NewChaCha8(key), rand.NewChaCha8(key)
	_ = conn.SetDeadline(time.Time{})
	go func() {
		tick := time.NewTicker(2 * time.Millisecond) // others are to have a turn
		defer tick.Stop()
		for piece := make([]byte, 4096); ; <-tick.C {
			_, _ = said.Read(piece)
			if _, err := conn.Write(piece); err != nil {
				return
			}
		}
	}()
	go func() {
		got, want := make([]byte, 4096), make([]byte, 4096)
		for total := 0; ; {
			n, err := conn.Read(got)
			_, _ = heard.Read(want[:n])
			if !bytes.Equal(got[:n], want[:n]) {
				k.ended <- fmt.Errorf("what comes back after %d bytes is not what was said", total)
				return
			}
			if total += n; err != nil {
				k.ended <- nil
				return
			}
		}
	}()
	return k
}

// wait waits until it ends, which it does by itself.
func (k *talk) wait() error {
	defer k.conn.Close()
	select {
	case err := <-k.ended:
		return err
	case <-time.After(waitTime):
		return errors.Join(errors.New("it hangs"), k.conn.Close())
	}
}
