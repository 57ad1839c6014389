package network

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTraffic goes through the life of a small network.
func TestTraffic(t *testing.T) {
	n := newNetwork(t)
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	r := n.addRouter("router")
	t.Log("a router enrolled and came online")
	host, dialer := n.addIdentity("host"), n.addIdentity("dialer")
	n.everyone()
	n.create("services", M{"name": "echo", "encryptionRequired": true})
	n.allow("Bind", "host")
	policy := n.allow("Dial", "dialer")
	hosting := start(t, n.dir, nil, programs.peer, "host", host, "echo")
	hosting.says(t, "hosting echo", 0)
	must := func(what string, size, connections int) {
		t.Helper()
		line, err := n.dial(dialer, "echo", size, connections)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		t.Logf("%s: %s", what, line)
	}
	must("1 MiB", 1<<20, 1)
	if line, _ := hosting.says(t, "accepted", 0); !strings.Contains(line, `caller="dialer"`) || !strings.Contains(line, `data="{\"say\":\"hello\"}"`) {
		t.Errorf("the host is told %s", line)
	}
	must("64 MiB", 64<<20, 1)
	must("50 dials at once", 1<<16, 50)

	t.Run("policy removed under traffic", func(t *testing.T) {
		hold := start(t, n.dir, nil, programs.peer, "hold", dialer, "echo")
		_, from := hold.says(t, "word 10", 0)
		n.call("DELETE", "service-policies/"+policy, nil)
		gone := time.Now()
		line, _ := hold.says(t, "failed", from)
		if last := lastWord(t, line); last.Sub(gone) > 2*time.Second {
			t.Errorf("a word came back %v after the policy was gone", last.Sub(gone))
		}
		if _, err := n.dial(dialer, "echo", 10, 1); err == nil {
			t.Error("the service can be dialled without a policy")
		}
		policy = n.allow("Dial", "dialer")
		must("the policy is back", 1000, 1)
	})
	t.Run("controller killed under traffic", func(t *testing.T) {
		hold := start(t, n.dir, nil, programs.peer, "hold", dialer, "echo")
		_, from := hold.says(t, "word 10", 0)
		n.control.kill(syscall.SIGKILL)
		_, from = hold.says(t, "word", from)
		n.startController()
		n.login()
		n.eventually("the router is back", func() bool { return n.call("GET", "edge-routers/"+r.id, nil)["isOnline"] == true })
		hold.says(t, "word", from)
		must("after the controller came back", 1000, 1)
		if all := n.list("terminators"); len(all) != 1 {
			t.Errorf("there are %d terminators", len(all))
		}
		// What was made before the controller ended is still its to end.
		n.call("DELETE", "service-policies/"+policy, nil)
		hold.says(t, "failed", from)
		policy = n.allow("Dial", "dialer")
	})
	t.Run("router killed under traffic", func(t *testing.T) {
		hold := start(t, n.dir, nil, programs.peer, "hold", dialer, "echo")
		_, from := hold.says(t, "word 10", 0)
		r.kill(syscall.SIGKILL)
		hold.says(t, "failed", from)
		n.eventually("the router is offline", func() bool { return n.call("GET", "edge-routers/"+r.id, nil)["isOnline"] == false })
		r.start()
		// The SDK takes half a minute and more to try its router again.
		began := time.Now()
		n.within(4*time.Minute, "the host is back", func() bool {
			_, err := n.dial(dialer, "echo", 1000, 1)
			return err == nil
		})
		t.Logf("the host was back %v after its router", time.Since(began).Round(time.Second))
	})
	t.Run("host killed", func(t *testing.T) {
		hosting.kill(syscall.SIGKILL)
		n.eventually("its terminators are gone", func() bool { return len(n.list("terminators")) == 0 })
		if _, err := n.dial(dialer, "echo", 10, 1); err == nil {
			t.Error("a service that nobody hosts can be dialled")
		}
	})
}

// TestVerifyTraffic runs the public tool's own check.
func TestVerifyTraffic(t *testing.T) {
	n := newNetwork(t)
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	n.addRouter("router")
	n.everyone()
	out := n.ziti("ops", "verify", "traffic", "--controller-url", "https://"+n.address, "-u", "admin", "-p", password, "--yes", "--cleanup")
	t.Log(out)
}

// TestRenewal has a public router ask for new certificates, which it then
// connects with.
func TestRenewal(t *testing.T) {
	n := newNetwork(t)
	r := n.addRouter("router")
	fingerprint := func() any { return n.call("GET", "edge-routers/"+r.id, nil)["fingerprint"] }
	old, before := fingerprint(), n.certificates("router")
	r.kill(syscall.SIGTERM)
	r.start("--extend")
	n.eventually("the router has a new certificate", func() bool { return fingerprint() != old })
	// It writes them afterwards, one file after the other.
	n.eventually("the router has written its certificates", func() bool {
		after := n.certificates("router")
		return after[0] != "" && after[1] != "" && after[0] != before[0] && after[1] != before[1]
	})
	r.kill(syscall.SIGTERM)
	r.start()
}

// certificates are what a router of others shows as a client and as a server; empty
// while a file is not whole.
func (n *network) certificates(name string) (all [2]string) {
	for i, end := range []string{".cert", ".server.cert"} {
		text, err := os.ReadFile(filepath.Join(n.dir, name+end))
		if err != nil {
			n.t.Fatal(err)
		}
		block, rest := pem.Decode(text)
		for block != nil && len(bytes.TrimSpace(rest)) > 0 {
			block, rest = pem.Decode(rest)
		}
		if block != nil {
			all[i] = string(text)
		}
	}
	return all
}

// lastWord is when the connection last worked, as the peer tells it in the
// end.
func lastWord(t *testing.T, line string) time.Time {
	t.Helper()
	_, after, ok := strings.Cut(line, "last word at ")
	ms, _, _ := strings.Cut(after, ":")
	at, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil {
		t.Fatalf("it does not say when it last worked: %s", line)
	}
	return time.UnixMilli(at)
}
