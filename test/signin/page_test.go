package signin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parts are the blocks to paste of a page, by the headings that they are below.
func parts(t *testing.T, page string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, part := range strings.Split(string(text), "\n## ") {
		heading, _, _ := strings.Cut(part, "\n")
		for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(part, -1) {
			all[heading] = append(all[heading], block[1])
		}
	}
	return all
}

// tools puts what pages use where shells find it: whoever tests needs no sudo.
func (w *world) tools() {
	w.t.Helper()
	bin := filepath.Join(w.dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(bin, "netkeep")); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// paste has a shell of somebody do what a page says, with our addresses in the place of
// those of the page, and returns what it says. What it leaves running ends with the test.
func (w *world) paste(who, block string) string {
	w.t.Helper()
	script := strings.NewReplacer("https://login.example.com", w.p.URL, "https://net.example.com:1280", w.address).Replace(block)
	browser, _ := w.chromium()
	var env []string
	if browser == "" {
		self, err := os.Executable()
		if err != nil {
			w.t.Fatal(err)
		}
		browser = self
		env = append(env, actsAsBrowser+"="+filepath.Join(w.dir, "browser"))
	}
	r := &running{w, exec.Command("bash", "-eu", "-c", script), &safe{}, make(chan struct{})}
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = w.dir, r.said, r.said
	r.cmd.Env = append(append(w.env(who), env...), "BROWSER="+browser, "FINGERPRINT="+w.fingerprint, "PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"))
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	group := r.cmd.Process.Pid
	w.t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGKILL); <-r.done })
	go func() {
		_ = r.cmd.Wait()
		close(r.done)
	}()
	text, code := r.end()
	if code != 0 {
		logs, _ := filepath.Glob(filepath.Join(w.dir, "*.log"))
		for _, name := range logs {
			log, _ := os.ReadFile(name)
			w.t.Logf("%s:\n%s", filepath.Base(name), log)
		}
		w.t.Fatalf("the page does not work:\n%s\nsays, and ends with %d:\n%s", script, code, text)
	}
	return text
}

// token is what the provider gives somebody who signs in on another device.
func (p *provider) token(t *testing.T) string {
	t.Helper()
	ask := func(path string, form url.Values, into any) {
		t.Helper()
		resp, err := p.Client().PostForm(p.URL+path, form)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, resp.Status, err)
		}
	}
	var begun struct {
		Device string `json:"device_code"`
		User   string `json:"user_code"`
	}
	ask("/device_authorization", url.Values{"client_id": {application}, "scope": {"openid"}}, &begun)
	if err := p.store.CompleteDeviceAuthorization(t.Context(), begun.User, person); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Access string `json:"access_token"`
	}
	ask("/oauth/token", url.Values{"client_id": {application}, "device_code": {begun.Device}, "grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}}, &got)
	return got.Access
}

// TestPeoplePage pastes the page about people who appear by themselves, each part where the
// page says, and takes a group away from somebody afterwards.
func TestPeoplePage(t *testing.T) {
	w := startAlone(t, time.Hour)
	w.tools()
	if err := os.WriteFile(filepath.Join(w.dir, "token.jwt"), []byte(w.p.token(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	page := parts(t, "people.md")
	steps := []struct {
		heading, who string
		says         []string
	}{
		{"# People who appear by themselves", "admin", []string{"company", "wiki"}},
		{"Before somebody tries", "admin", []string{"would make the identity ann", "corp:eng-web, corp:ops", "lunch"}},
		{"On a laptop", "ann", []string{"Enrolled as ann", "as ann", "wiki"}},
		{"What came of it", "admin", []string{"corp:eng-web", "by #corp:ops, which the signer company says", "nobody hosts wiki yet"}},
	}
	for _, step := range steps {
		blocks := page[step.heading]
		delete(page, step.heading)
		if len(blocks) != 1 {
			t.Fatalf("%q has %d blocks to paste", step.heading, len(blocks))
		}
		said := w.paste(step.who, blocks[0])
		for _, want := range step.says {
			if !strings.Contains(said, want) {
				t.Errorf("%q: nothing says %s:\n%s", step.heading, want, said)
			}
		}
	}
	if len(page) != 0 {
		t.Errorf("nobody pastes %v", page)
	}
	w.p.store.groups.Store(&[]string{"eng-web"})
	w.good("ann", "logout")
	w.paste("ann", "netkeep login https://net.example.com:1280 --sso")
	if left := w.good("ann", "services"); strings.Contains(left, "wiki") {
		t.Errorf("who has left a group may use what the group may: %s", left)
	}
}

// apart says that this process has namespaces of its own.
const apart = "NETKEEP_TEST_APART"

// TestDevicesPage pastes what the page about devices says of an account of the company, until
// curl finds a service under its name. The network, and where names are asked for, are the
// test's own.
func TestDevicesPage(t *testing.T) {
	if os.Getenv(apart) == "" {
		inside(t)
		return
	}
	w := startAlone(t, time.Hour)
	w.tools()
	serve8080(t)
	page := parts(t, "devices.md")
	said := ""
	for _, step := range []struct {
		heading string
		at      int
		who     string
	}{
		{"A service with a name", 0, "admin"}, {"On the server", 0, "server"},
		{"With the account of the company", 0, "admin"}, {"With the account of the company", 1, "ann"},
	} {
		if len(page[step.heading]) <= step.at {
			t.Fatalf("%q has %d blocks to paste", step.heading, len(page[step.heading]))
		}
		said += w.paste(step.who, page[step.heading][step.at])
	}
	for _, want := range []string{"as ann", "page of payroll.corp"} {
		if !strings.Contains(said, want) {
			t.Errorf("following the page nothing says %s:\n%s", want, said)
		}
	}
}

// inside runs the test that calls it once more, in namespaces of its own.
func inside(t *testing.T) {
	t.Helper()
	notRun := func(why error) {
		fmt.Printf("*** make signin: %s NOT RUN. Network namespaces cannot be made here: %v.\n", t.Name(), why)
		fmt.Println("*** Nothing was shown about names on devices of people who sign in.")
	}
	for _, tool := range []string{"ip", "unshare", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			notRun(err)
			return
		}
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		notRun(err)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	alone := []string{"--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--map-root-user"}
	if out, err := exec.Command("unshare", append(alone, "ip", "link", "set", "lo", "up")...).CombinedOutput(); err != nil {
		notRun(fmt.Errorf("%w: %s", err, out))
		return
	}
	// What is written to /etc is the test's own: a tunneler that is killed cleans nothing up.
	const setUp = `ip link set lo up
mount -t tmpfs -o mode=755 tmpfs /run
cp -a /etc /run/etc || true
mount --bind /run/etc /etc
rm -f /etc/resolv.conf
echo "nameserver 127.0.0.1" > /etc/resolv.conf
exec "$@"`
	again := exec.Command("unshare", append(alone, "sh", "-e", "-c", setUp, "sh", self, "-test.run", "^"+t.Name()+"$", "-test.v")...)
	again.Env = append(os.Environ(), apart+"=1")
	out, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// serve8080 is the server that the page is about.
func serve8080(t *testing.T) {
	t.Helper()
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "page of %s\n", r.Host)
	})}
	t.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.ListenAndServe() }()
}
