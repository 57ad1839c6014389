package router

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/run/cli"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// followed is a network whose root CA is replaced while others use it.
type followed struct {
	*networktest.Network
	t     *testing.T
	data  string
	ahead atomic.Int64 // of others' clocks
}

func (f *followed) now() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }

// later is a while after which others look whom to trust.
func (f *followed) later() { f.ahead.Add(int64(2 * time.Hour)) }

func (f *followed) keys(code int, words string, args ...string) {
	f.t.Helper()
	says(f.t, code, words, append(append([]string{"keys"}, args...), "--data", f.data)...)
}

// status waits until the command says some words.
func (f *followed) status(words string) {
	f.t.Helper()
	f.Eventually("keys status says "+words, func() bool {
		out := new(output)
		return netkeep(f.t.Context(), time.Now, out, "keys", "status", "--data", f.data) == 0 && strings.Contains(out.String(), words)
	})
}

func (f *followed) root() *x509.Certificate {
	f.t.Helper()
	return certificates(f.t, string(read(f.t, filepath.Join(f.data, "pki", "root.crt"))))[0]
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

func certificates(t *testing.T, text string) []*x509.Certificate {
	t.Helper()
	certs, err := pki.ParseCertificates([]byte(text), 100)
	must(t, err)
	return certs
}

// trusted are those that an identity's file says to trust.
func (f *followed) trusted(i networktest.Identity) []*x509.Certificate {
	f.t.Helper()
	var file struct {
		ID struct {
			CA string `json:"ca"`
		} `json:"id"`
	}
	must(f.t, json.Unmarshal(read(f.t, i.File), &file))
	return certificates(f.t, strings.TrimPrefix(file.ID.CA, "pem:"))
}

func has(certs []*x509.Certificate, cert *x509.Certificate) bool {
	for _, c := range certs {
		if c.Equal(cert) {
			return true
		}
	}
	return false
}

func (f *followed) living(o *sdk.Options) { o.Now, o.Poll = f.now, 20*time.Millisecond }

// asked reports whether all sessions of an identity ask for another certificate.
func (f *followed) asked(i networktest.Identity, want bool) {
	f.t.Helper()
	f.Eventually("sessions say whether another certificate is asked for", func() bool {
		all := f.Admin.Get(management + `api-sessions?filter=identity%3D%22` + i.ID + "%22").Want(200).List()
		for _, one := range all {
			if one["isCertExtendRequested"] != want {
				return false
			}
		}
		return len(all) > 0
	})
}

func echoes(ctx context.Context, c *sdk.Client, service string) bool {
	ctx, cancel := context.WithTimeout(ctx, networktest.Soon)
	defer cancel()
	conn, err := c.Dial(ctx, service, sdk.DialOptions{})
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(networktest.Soon))
	buf := make([]byte, 5)
	if _, err = io.WriteString(conn, "hello"); err == nil {
		_, err = io.ReadFull(conn, buf)
	}
	return err == nil && string(buf) == "hello"
}

// TestRotateRootClients puts another root CA in place of the present one while
// clients host and dial through a router. They are asked to follow and named
// until they have, keep whom to trust in their files, and start from those when
// the one before has retired.
func TestRotateRootClients(t *testing.T) {
	f := &followed{t: t, data: filepath.Join(t.TempDir(), "data")}
	s := servertest.Start(t, func(c *config.Config) { c.Data = f.data })
	f.Network = networktest.New(t, s)
	service := f.AddService("echo", true)
	p := enroll(t, s)
	f.Admin.Patch(management+"edge-routers/"+p.id, M{"roleAttributes": []string{f.Word}}).Want(200)
	p.start(t, time.Now)
	p.online(t, true)
	host, user := f.AddIdentity("host"), f.AddIdentity("user")
	hosting, dialling := f.Client(host, f.living), f.Client(user, f.living)
	f.Echo(hosting, service)
	works := func(what string) {
		t.Helper()
		f.Eventually(what, func() bool { return echoes(t.Context(), dialling, service) })
	}
	works("the service is there")
	f.asked(user, false)
	before, file := f.root(), string(read(t, user.File))

	f.keys(0, "new root CA", "rotate", "root")
	f.asked(user, true)
	f.status("0 of 2 identities")
	f.status("not yet: " + user.Name)
	f.status("A router of\nOpenZiti follows when it is started once with --extend")
	f.status("1 of 1 routers")
	f.keys(1, "0 routers and 2 identities", "rotate", "root", "--finish")
	works("both roots are trusted")
	if string(read(t, user.File)) != file {
		t.Fatal("the identity has followed before it has looked")
	}
	f.later()
	f.status("2 of 2 identities")
	f.asked(user, false)
	for _, i := range []networktest.Identity{host, user} {
		f.Eventually("its file has both", func() bool { return has(f.trusted(i), f.root()) && has(f.trusted(i), before) })
	}
	works("both have followed")
	f.keys(0, "has retired", "rotate", "root", "--finish")
	f.Eventually("the one before is not told any more", func() bool { return has(f.told(), f.root()) && !has(f.told(), before) })
	works("the one before has retired")
	f.later()
	for _, i := range []networktest.Identity{host, user} {
		f.Eventually("its file has the new one alone", func() bool { return has(f.trusted(i), f.root()) && !has(f.trusted(i), before) })
	}
	must(t, hosting.Close())
	must(t, dialling.Close())
	hosting, dialling = f.Client(host), f.Client(user)
	f.Echo(hosting, service)
	works("they have started from their files")

	// Who was away all the time is told that it is not let in.
	away := user
	away.File += ".before"
	must(t, os.WriteFile(away.File, []byte(file), 0o600))
	if _, err := sdk.Open(t.Context(), sdk.Options{Identity: away.File, Now: time.Now}); err == nil || !strings.Contains(err.Error(), "its certificate was replaced") {
		t.Errorf("with a certificate of the one before: %v", err)
	}
}

// TestRotateRootProfiles has the command line used while one root CA takes
// another's place, twice. Who uses it in between goes on; who does not is told.
func TestRotateRootProfiles(t *testing.T) {
	f := &followed{t: t, data: filepath.Join(t.TempDir(), "data")}
	s := servertest.Start(t, func(c *config.Config) { c.Data = f.data })
	f.Network = networktest.New(t, s)
	home := t.TempDir()
	run := func(code int, words string, args ...string) {
		t.Helper()
		out := new(output)
		got := cli.Main(t.Context(), cli.Env{
			Program: "netkeep", Args: args, Environ: []string{"HOME=" + home, "NETKEEP_PASSWORD=" + servertest.Password},
			Stdin: strings.NewReader(""), Stdout: out, Stderr: out, Now: f.now,
		})
		if got != code || !strings.Contains(out.String(), words) {
			t.Errorf("netkeep %q ended with %d and said %q; want %d and %q", args, got, out, code, words)
		}
	}
	book := filepath.Join(home, ".config", "netkeep", "profiles.json")
	known := func() []*x509.Certificate {
		t.Helper()
		var b struct {
			Profiles map[string]struct {
				CA string `json:"ca"`
			} `json:"profiles"`
		}
		must(t, json.Unmarshal(read(t, book), &b))
		return certificates(t, b.Profiles["it"].CA)
	}
	run(0, "Logged in", "login", "--profile", "it", "--data", f.data)
	run(0, "an admin", "whoami")
	left := read(t, book)
	first := f.root()
	for range 2 {
		before := f.root()
		f.keys(0, "new root CA", "rotate", "root")
		f.Eventually("the new root vouches for the controller", func() bool { return has(f.told(), f.root()) })
		run(0, "an admin", "whoami")
		if has(known(), f.root()) {
			t.Fatal("each command asks whom to trust")
		}
		f.later()
		run(0, "an admin", "whoami")
		if !has(known(), f.root()) || !has(known(), before) {
			t.Fatal("the profile does not follow")
		}
		f.keys(0, "has retired", "rotate", "root", "--finish")
		f.Eventually("the one before is not told any more", func() bool { return has(f.told(), f.root()) && !has(f.told(), before) })
		f.later()
		run(0, "an admin", "whoami")
		if got := known(); len(got) != 1 || !got[0].Equal(f.root()) {
			t.Fatalf("the profile trusts %d", len(got))
		}
	}
	run(0, "an admin", "whoami")
	must(t, os.WriteFile(book, left, 0o600))
	if !has(known(), first) {
		t.Fatal("the profile of before is none")
	}
	run(6, "run: netkeep login "+s.URL, "whoami")
	run(7, "was vouched for by another CA", "login", "--profile", "it")
	run(7, "--fingerprint "+fingerprint(f.root()), "login", "--profile", "it")
	run(0, "Logged in", "login", "--profile", "it", "--fingerprint", fingerprint(f.root()))
	run(0, "an admin", "whoami")
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// told is whom the controller says to trust, to who knows the present root alone;
// nobody before that vouches for the controller.
func (f *followed) told() []*x509.Certificate {
	f.t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(f.root())
	c := &http.Client{Timeout: networktest.Soon, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer c.CloseIdleConnections()
	res, err := c.Get(f.Server.URL + "/edge/client/v1/.well-known/est/cacerts")
	if err != nil {
		return nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	must(f.t, err)
	certs, err := pki.ParsePKCS7Text(text, 100)
	must(f.t, err)
	return certs
}
