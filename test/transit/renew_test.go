package transit

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
)

// clock is one that a test sets forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time         { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) forward(months float64) { c.ahead.Add(int64(months * 30 * 24 * float64(time.Hour))) }

// diary is what a client logs.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) count(words string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Count(d.text.String(), words)
}

// living has a client live by a clock and write a diary.
func living(by *clock, d *diary) func(*sdk.Options) {
	return func(o *sdk.Options) {
		o.Now, o.Poll, o.Log = by.now, 20*time.Millisecond, slog.New(slog.NewTextHandler(d, nil))
	}
}

// known is the fingerprint that the controller knows an identity by.
func known(n *networktest.Network, i networktest.Identity) string {
	n.T.Helper()
	return n.Admin.Get(networktest.Management + "identities/" + i.ID).Want(200).At("data.authenticators.cert.fingerprint").(string)
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

// TestIdentityRenewed has an identity's certificate renewed while services are
// hosted and dialled with it.
func TestIdentityRenewed(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	service := n.AddService("renewed", true)
	var by clock
	var said diary
	hosting := n.Client(host, living(&by, &said))
	l := n.Echo(hosting, service)
	defer l.Close()
	dialling := n.Client(user)
	echoes := func() bool {
		conn, err := dialling.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
		if err != nil {
			return false
		}
		defer conn.Close()
		send(t, conn, "hello")
		buf := make([]byte, 5)
		_, err = conn.Read(buf)
		return err == nil && string(buf) == "hello"
	}
	n.Eventually("the service is there", echoes)
	file, was := contents(t, host.File), known(n, host)
	// Something of another program that the file holds too.
	file = strings.Replace(file, `"ztAPI"`, `"ours": {"kept": true}, "ztAPI"`, 1)
	put(t, host.File, file)

	// What is connected is left alone for as long as there is time.
	busy, err := dialling.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	idle := n.AddIdentity("idle")
	n.Client(idle, living(&by, new(diary)))
	idleWas := known(n, idle)
	by.forward(9)
	n.Eventually("who has nothing connected has another certificate", func() bool { return known(n, idle) != idleWas })
	if known(n, host) != was {
		t.Error("the certificate is renewed while something is connected and there is time")
	}
	by.forward(1.5)
	n.Eventually("the controller knows it by another certificate", func() bool { return known(n, host) != was })
	n.Eventually("the file has it", func() bool { return contents(t, host.File) != file && gone(host.File+".next") })
	if renewed := contents(t, host.File); !strings.Contains(renewed, `"kept": true`) {
		t.Errorf("what the file held besides is lost:\n%s", renewed)
	}
	if info, err := os.Stat(host.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	n.Eventually("the service is there again", echoes)
	if got := said.count("the identity has a new certificate"); got != 1 {
		t.Errorf("it was renewed %d times", got)
	}
	if ends := said.count(`level=INFO msg="the connection to a router has ended"`); ends != 1 || said.count("level=WARN") > 0 {
		t.Errorf("a renewal that was planned is told as a mishap: %s", said.text.String())
	}
	if err := hosting.Close(); err != nil {
		t.Fatal(err)
	}
	_ = n.Client(host).Close() // with the new file, and the clock as it is

	old := host
	old.File += ".old"
	put(t, old.File, file)
	if _, err := sdk.Open(t.Context(), sdk.Options{Identity: old.File, Now: time.Now}); err == nil || !strings.Contains(err.Error(), "its certificate was replaced") {
		t.Errorf("the old certificate: %v", err)
	}
	if _, err := sdk.Open(t.Context(), sdk.Options{Identity: old.File, Now: func() time.Time { return time.Now().AddDate(2, 0, 0) }}); err == nil || !strings.Contains(err.Error(), "ended at") {
		t.Errorf("the old certificate, long after its end: %v", err)
	}
}

// TestIdentityRenewedWhenAsked has an admin ask for another certificate of an
// identity long before it is time for one.
func TestIdentityRenewedWhenAsked(t *testing.T) {
	n := networktest.New(t, shared)
	host := n.AddIdentity("host")
	var by clock
	n.Client(host, living(&by, new(diary)))
	was := known(n, host)
	auth := n.Admin.Get("identities/" + host.ID + "/authenticators").List()[0]["id"].(string)
	n.Admin.Post("authenticators/"+auth+"/request-extend", M{"rollKeys": true}).Want(200)
	by.forward(0.5)
	n.Eventually("the controller knows it by another certificate", func() bool { return known(n, host) != was })
	got := n.Admin.Get("authenticators/" + auth).Want(200).Data()
	if got["isExtendRequested"] != false || got["isKeyRollRequested"] != false || got["lastExtendRolledKeys"] != true {
		t.Errorf("the authenticator shows %v", got)
	}
}

// TestIdentityRenewalCutShort loses power at every step of a renewal.
func TestIdentityRenewalCutShort(t *testing.T) {
	n := networktest.New(t, shared)
	i := n.AddIdentity("somebody")
	before, was := contents(t, i.File), known(n, i)
	var by clock
	by.forward(24) // the controller does not mind that it has ended
	c := n.Client(i, living(&by, new(diary)))
	n.Eventually("it is renewed", func() bool { return known(n, i) != was && contents(t, i.File) != before })
	_ = c.Close()
	after := contents(t, i.File)
	for name, step := range map[string]struct{ file, next string }{
		"after the controller was told": {before, after},
		"before it was told":            {after, before},
		"while it was written":          {after, after[:100]},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, i.File, step.file)
			put(t, i.File+".next", step.next)
			c := n.Client(i, living(new(clock), new(diary)))
			defer c.Close()
			n.Eventually("it finds out which counts", func() bool { return gone(i.File+".next") && contents(t, i.File) == after })
		})
	}
}

// TestIdentityShared has two programs with the same file renew it at the same
// time, and a third one with a copy of it.
func TestIdentityShared(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	i, user := n.AddIdentity("somebody"), n.AddIdentity("user")
	one, two := n.AddService("one", true), n.AddService("two", true)
	copied := i
	copied.File += ".copy"
	put(t, copied.File, contents(t, i.File))
	var by clock
	var said, other diary
	n.Echo(n.Client(i, living(&by, &said)), one)
	n.Echo(n.Client(i, living(&by, &said)), two)
	var elsewhere clock
	n.Client(copied, living(&elsewhere, &other))
	was := known(n, i)
	by.forward(9)
	dialling := n.Client(user)
	n.Eventually("it is renewed", func() bool { return known(n, i) != was })
	for _, service := range []string{one, two} {
		n.Eventually(service+" is there", func() bool {
			conn, err := dialling.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
	}
	// One of them may find that the other's is due by its clock, but no more.
	if got := said.count("the identity has a new certificate"); got < 1 || got > 2 {
		t.Errorf("it was renewed %d times", got)
	}
	_ = n.Client(i).Close()
	elsewhere.forward(0.01)
	n.Eventually("who has a copy is told", func() bool { return other.count("the controller knows the identity by another one") == 1 })
}

// TestIdentityNotWritable keeps the old certificate when the new one cannot be
// kept.
func TestIdentityNotWritable(t *testing.T) {
	n := networktest.New(t, shared)
	i := n.AddIdentity("somebody")
	was := known(n, i)
	if err := os.MkdirAll(i.File+".next/full", 0o700); err != nil { // nothing can take its name
		t.Fatal(err)
	}
	var by clock
	by.forward(9)
	var said diary
	c := n.Client(i, living(&by, &said))
	defer c.Close()
	n.Eventually("it is said", func() bool { return said.count("the identity's certificate could not be renewed") == 1 })
	by.forward(0.01) // some hours
	if known(n, i) != was {
		t.Error("a certificate counts that is nowhere kept")
	}
	if err := os.RemoveAll(i.File + ".next"); err != nil {
		t.Fatal(err)
	}
	by.forward(0.01)
	n.Eventually("it is renewed when that can be kept", func() bool { return known(n, i) != was })
	if got := said.count("the identity's certificate could not be renewed"); got != 1 {
		t.Errorf("the same is said %d times in a day", got)
	}
}
