package network

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// keys runs a command on the network's keys.
func (n *network) keys(args ...string) string {
	n.t.Helper()
	cmd := exec.Command(programs.netkeep, append([]string{"keys"}, append(args, "--data", "data")...)...)
	cmd.Dir = n.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Fatalf("netkeep keys %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestRotateRoot gives a network with a public router and SDKs another root CA
// while they carry traffic, in the steps that the page on operations has.
func TestRotateRoot(t *testing.T) {
	t.Parallel()
	n := newNetwork(t)
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	r := n.addRouter("router")
	host, dialer := n.addIdentity("host"), n.addIdentity("dialer")
	n.everyone()
	n.create("services", M{"name": "echo", "encryptionRequired": true})
	n.allow("Bind", "host")
	n.allow("Dial", "dialer")
	hosting := start(t, n.dir, nil, programs.newer, "host", host, "echo")
	hosting.says(t, "hosting echo", 0)
	hold := start(t, n.dir, nil, programs.newer, "hold", dialer, "echo")
	hold.says(t, "word 10", 0)
	dials := func(what string) {
		t.Helper()
		n.eventually(what, func() bool {
			_, err := n.dial(dialer, "echo", 1000, 1)
			return err == nil
		})
	}

	n.keys("rotate", "intermediate")
	dials("another intermediate CA signs")
	r.kill(syscall.SIGTERM)
	r.start("--extend") // under the other one
	dials("the router is back under the other intermediate CA")
	hold.kill(syscall.SIGTERM)
	hold = start(t, n.dir, nil, programs.newer, "hold", dialer, "echo")
	_, from := hold.says(t, "word 10", 0)

	n.keys("rotate", "root")
	n.eventually("the controller has followed", func() bool { return strings.Contains(n.keys("status"), "not yet: router") })
	_, from = hold.says(t, "word", from)
	dials("both roots are trusted")

	// A router of this release gets other certificates when it is started so.
	r.kill(syscall.SIGTERM)
	r.start("--extend")
	n.eventually("the router has followed", func() bool { return strings.Contains(n.keys("status"), "1 of 1 routers") })
	hold.says(t, "failed", from)
	// SDKs never do: a program of ours renews the files of their identities.
	for _, identity := range []string{host, dialer} {
		ours := start(t, n.dir, nil, programs.netkeep, "tunnel", "proxy", "-i", identity, "echo:"+portOf(t, free(t)))
		ours.says(t, "the identity has a new certificate", 0)
		ours.kill(syscall.SIGTERM)
	}
	n.eventually("all have followed", func() bool { return strings.Contains(n.keys("status"), "2 of 2 identities") })
	n.keys("rotate", "root", "--finish")

	hosting.kill(syscall.SIGTERM)
	start(t, n.dir, nil, programs.newer, "host", host, "echo").says(t, "hosting echo", 0)
	dials("the old root has retired")
	r.kill(syscall.SIGTERM)
	r.start()
	dials("the router is back")
}
