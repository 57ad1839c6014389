package pki

import (
	"crypto"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLostServerKeyCutShort(t *testing.T) {
	for step := 1; step <= 2; step++ {
		for _, after := range []bool{false, true} {
			c := newClock()
			dir := t.TempDir()
			must(Open(dir, options(c)))(t)
			if err := os.Remove(filepath.Join(dir, serverKeyFile)); err != nil {
				t.Fatal(err)
			}
			if _, err := open(stopping(dir, step, after), options(c)); !errors.Is(err, errStopped) {
				t.Fatalf("opening: %v", err)
			}
			if _, err := Open(dir, options(c)); err != nil {
				t.Fatal(err)
			}
			wantConsistent(t, dir, c.Now())
		}
	}
}

// late is when a server certificate is renewed.
const late = serverLifetime*2/3 + day

func TestRenewCutShort(t *testing.T) {
	for _, after := range []bool{false, true} {
		c := newClock()
		dir := t.TempDir()
		ks := must(Open(dir, options(c)))(t)
		before := contents(t, dir)
		ks.folder = stopping(dir, 1, after)
		c.Add(late)
		if err := ks.RenewIfDue(); !errors.Is(err, errStopped) {
			t.Fatalf("renewing: %v", err)
		}
		if changed := contents(t, dir)[serverFile] != before[serverFile]; changed != after {
			t.Errorf("stopped after=%t: certificate changed %t", after, changed)
		}
		if _, err := Open(dir, options(c)); err != nil {
			t.Fatal(err)
		}
		wantConsistent(t, dir, c.Now())
		wantKept(t, before, contents(t, dir), serverFile)
	}
}

func TestServerIssuedAgain(t *testing.T) {
	asked := Options{DNSNames: []string{"a.example"}, IPs: []net.IP{net.IPv4(192, 0, 2, 1)}}
	for name, tt := range map[string]struct {
		later  time.Duration // since the first opening
		opt    Options
		change func(t *testing.T, dir string)
		want   bool
	}{
		"same":             {opt: asked},
		"fewer names":      {opt: Options{}},
		"two thirds":       {later: 243 * day, opt: asked},
		"less than third":  {later: 244 * day, opt: asked, want: true},
		"expired":          {later: 500 * day, opt: asked, want: true},
		"CA yet to begin":  {later: -time.Hour, opt: asked},
		"other DNS name":   {opt: Options{DNSNames: []string{"b.example"}}, want: true},
		"other address":    {opt: Options{IPs: []net.IP{net.IPv4(192, 0, 2, 2)}}, want: true},
		"other signing CA": {opt: asked, want: true, change: func(t *testing.T, dir string) { newSigningCA(t, dir, ecKey(t)) }},
		"CA certified again": {opt: asked, want: true, change: func(t *testing.T, dir string) {
			newSigningCA(t, dir, must(folder{path: dir}.readKey(intermediateKeyFile))(t))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			dir := t.TempDir()
			must(Open(dir, Options{Now: c.Now, DNSNames: asked.DNSNames, IPs: asked.IPs}))(t)
			if tt.change != nil {
				tt.change(t, dir)
			}
			before := contents(t, dir)
			c.Add(tt.later)
			tt.opt.Now = c.Now
			ks := must(Open(dir, tt.opt))(t)
			after := contents(t, dir)
			wantKept(t, before, after, serverFile)
			if got := after[serverFile] != before[serverFile]; got != tt.want {
				t.Errorf("issued again: %t, want %t", got, tt.want)
			}
			if tt.later >= 0 {
				wantConsistent(t, dir, c.Now())
			}
			if err := ks.RenewIfDue(); err != nil {
				t.Fatal(err)
			}
			if contents(t, dir)[serverFile] != after[serverFile] {
				t.Error("issued again twice")
			}
		})
	}
}

func TestServerIssuedAgainWhenClockIsSetRight(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	must(Open(dir, options(c)))(t)
	c.Add(300 * day)
	must(Open(dir, options(c)))(t)
	c.Add(-299 * day)
	must(Open(dir, options(c)))(t)
	wantConsistent(t, dir, c.Now())
}

// newSigningCA gives the keystore an intermediate with the key under the same
// root.
func newSigningCA(t *testing.T, dir string, key crypto.Signer) {
	t.Helper()
	f := folder{path: dir, rename: os.Rename}
	root := authority{
		cert: must(f.readCertificates(rootFile, 1))(t)[0],
		key:  must(f.readKey(rootKeyFile))(t),
	}
	cert := must(newIntermediate(root, key, base))(t)
	for name, data := range map[string][]byte{
		intermediateKeyFile: must(EncodeKey(key))(t),
		intermediateFile:    EncodeCertificates(cert),
	} {
		if err := f.write(name, data); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRenew(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	ks := must(Open(dir, options(c)))(t)
	before, old := contents(t, dir), ks.Inventory()
	c.Add(late)
	if err := ks.RenewIfDue(); err != nil {
		t.Fatal(err)
	}
	after := contents(t, dir)
	wantKept(t, before, after, serverFile)
	if after[serverFile] == before[serverFile] {
		t.Error("certificate not renewed")
	}
	old[2].NotAfter = old[2].NotAfter.Add(late)
	if diff := cmp.Diff(old, ks.Inventory()); diff != "" {
		t.Errorf("inventory: %s", diff)
	}
	if diff := cmp.Diff([]string{"root", "intermediate", "server"}, []string{old[0].Name, old[1].Name, old[2].Name}); diff != "" {
		t.Error(diff)
	}
}

// TestServerUnderEndingCA checks that nothing is issued over and over while the
// CA's own end is near, and that an ended CA signs nothing.
func TestServerUnderEndingCA(t *testing.T) {
	c := newClock()
	dir := t.TempDir()
	ks := must(Open(dir, options(c)))(t)
	end := ks.Intermediate().NotAfter
	c.Add(end.Sub(c.Now()) - 30*day)
	ks = must(Open(dir, options(c)))(t)
	if !ks.server.NotAfter.Equal(end) {
		t.Errorf("server ends %v, CA %v", ks.server.NotAfter, end)
	}
	before := contents(t, dir)
	c.Add(29 * day)
	must(Open(dir, options(c)))(t)
	if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
		t.Errorf("issued again without gain: %s", diff)
	}
	c.Add(2 * day)
	if err := os.Remove(filepath.Join(dir, serverFile)); err != nil {
		t.Fatal(err)
	}
	wantError(t, ks.RenewIfDue(), "expired on")
}
