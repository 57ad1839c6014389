package program_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"netkeep.internal/internal/data/store"
)

// TestAdminReset shuts the default admin out in every way there is, and lets it
// in again.
func TestAdminReset(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := controller(t, data)
	c := p.client(data)
	me := c.must(t, 200, http.MethodGet, "current-identity", nil).id()

	// What a request cannot do.
	for _, minutes := range []int{0, 5} {
		a := c.must(t, 400, http.MethodPost, "identities/"+me+"/disable", M{"durationMinutes": minutes})
		if code := a.body["error"].(M)["code"]; code != "ENTITY_CAN_NOT_BE_UPDATED" {
			t.Errorf("the default admin is not disabled with %v", code)
		}
	}
	c.must(t, 400, http.MethodDelete, "identities/"+me, nil)
	c.must(t, 200, http.MethodGet, "identities", nil)

	// What it can: ask for a second factor that is lost, and forbid passwords.
	c.must(t, 201, http.MethodPost, "current-identity/mfa", M{})
	u, err := url.Parse(c.must(t, 200, http.MethodGet, "current-identity/mfa", nil).body["data"].(M)["provisioningUrl"].(string))
	if err != nil {
		t.Fatal(err)
	}
	code, err := totp.GenerateCode(u.Query().Get("secret"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.must(t, 200, http.MethodPost, "current-identity/mfa/verify", M{"code": code})
	c.must(t, 200, http.MethodPatch, "auth-policies/default", M{"primary": M{"updb": M{"allowed": false}}})
	reset := []string{"admin", "reset", "--data", data}
	launch(t, settings{args: reset}).fails(data, "in use by another netkeep", "stop that one")
	p.stop()

	// With a password of one's own; the factor stays.
	const fresh = "another password"
	r := launch(t, settings{args: append(reset, "--password-file", write(t, "fresh", fresh+"\n"))})
	told(t, r, "The default admin is admin, with the password that was given.", `it has the policy "Admin reset" now`, "--remove-mfa", "Its sessions were ended.")
	if strings.Contains(r.stdout.String()+r.stderr.String(), fresh) || !strings.Contains(r.stderr.String(), "the default admin was reset") {
		t.Errorf("it says\n%s\nand logs\n%s", r.stdout.String(), r.stderr.String())
	}
	p = controller(t, data)
	again := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	if err := again.login("admin", password); err == nil {
		t.Error("the old password is still good")
	}
	if err := again.login("admin", fresh); err != nil {
		t.Fatal(err)
	}
	again.must(t, 401, http.MethodGet, "identities", nil) // for want of a code
	again.token = c.token
	again.must(t, 401, http.MethodGet, "current-identity", nil)
	p.stop()

	// With one that is made, and without the factor.
	r = launch(t, settings{args: append(reset, "--remove-mfa")})
	told(t, r, "Its second factor was removed.")
	made := regexp.MustCompile(`is admin with the password (\S+)\n`).FindStringSubmatch(r.stdout.String())
	if made == nil || strings.Contains(r.stderr.String(), made[1]) {
		t.Fatalf("it says\n%s\nand logs\n%s", r.stdout.String(), r.stderr.String())
	}
	p = controller(t, data)
	last := connect(t, p.ready(), filepath.Join(data, "pki", "root.crt"))
	if err := last.login("admin", made[1]); err != nil {
		t.Fatal(err)
	}
	last.must(t, 200, http.MethodGet, "identities", nil)
	if n := last.happened(t, "admin-reset"); n != 2 {
		t.Errorf("the audit log tells of %d resets", n)
	}
	p.stop()
	if n := writesBy(t, data, "admin reset"); n < 2 {
		t.Errorf("the store knows of %d resets", n)
	}
}

// happened is how many audit entries there are of an event.
func (c *client) happened(t *testing.T, event string) (n int) {
	t.Helper()
	for _, e := range c.list(t, "audit-entries") {
		if e["event"] == event {
			n++
		}
	}
	return n
}

// told waits for a command that must succeed and say these things.
func told(t *testing.T, p *process, texts ...string) {
	t.Helper()
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d: %s", code, p.stderr.String())
	}
	for _, text := range texts {
		if !strings.Contains(p.stdout.String(), text) {
			t.Errorf("it does not say %q:\n%s", text, p.stdout.String())
		}
	}
}

var errEnd = errors.New("that is all")

// writesBy counts the writes in a store that a part of the program made.
func writesBy(t *testing.T, data, part string) (n int) {
	t.Helper()
	st := openStore(t, data)
	defer st.Close()
	end, err := st.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = st.Follow(t.Context(), 0, func(b store.Batch) error {
		for _, w := range b.Head.Writes {
			if w.Author.Kind == store.Program && w.Author.Name == part {
				n++
			}
		}
		if b.Rev >= end {
			return errEnd
		}
		return nil
	})
	if err != errEnd {
		t.Fatal(err)
	}
	return n
}

// TestAdminResetNowhere finds no network, and makes none.
func TestAdminResetNowhere(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	launch(t, settings{args: []string{"admin", "reset", "--data", data}}).fails("there is no network in " + data)
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("it made something: %v", err)
	}
	launch(t, settings{args: []string{"admin", "reset", "--data", data, "--password-file", write(t, "empty", "\n")}}).fails("the new password", "is empty")
	launch(t, settings{args: []string{"admin", "reset", "--data", data, "--password", "x"}}).misused("there is no flag --password", "--password-file")
	launch(t, settings{args: []string{"admin", "reset", "--data", data, "--admin-password-file", write(t, "new", "x\n")}}).misused("--password-file")
}

// TestFirstLogin logs in as soon as anything answers: whoever knows the password
// beforehand need not wait for more.
func TestFirstLogin(t *testing.T) {
	at := freeAddress(t)
	p := launch(t, settings{
		args: []string{"run", "--data", filepath.Join(t.TempDir(), "data"), "--listen", at},
		env:  []string{"NETKEEP_ADMIN_PASSWORD=" + password},
	})
	// It is made before anything can be known of its CA.
	hasty := &client{base: "https://" + at + "/edge/management/v1/", http: &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: waitTime,
	}}
	deadline := time.Now().Add(waitTime)
	err := hasty.login("admin", password)
	for ; errors.Is(err, syscall.ECONNREFUSED) && time.Now().Before(deadline); err = hasty.login("admin", password) {
	}
	if err != nil {
		t.Error(err)
	}
	p.stop()
}
