package unit

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newUnit is one that intercepts, for an image of a machine.
func newUnit(t *testing.T) *Unit {
	t.Helper()
	dir := t.TempDir()
	identity := filepath.Join(dir, "laptop.json")
	put(t, identity, "key")
	return &Unit{
		Name: Usual, Root: filepath.Join(dir, "root"), Program: "/usr/local/bin/netkeep",
		Identities: []string{identity}, Args: []string{"run", "--intercept"}, Intercepts: true,
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files are all below a directory, with their modes.
func files(t *testing.T, root string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		all = append(all, info.Mode().String()+" "+strings.TrimPrefix(path, root))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// TestInstall writes a unit, once and again, and removes it; the identity stays.
func TestInstall(t *testing.T) {
	u := newUnit(t)
	for range 2 {
		if _, err := u.Install(); err != nil {
			t.Fatal(err)
		}
	}
	state := "-rw------- /var/lib/netkeep-tunnel/laptop.json"
	want := "-rw-r--r-- /etc/polkit-1/rules.d/50-netkeep-tunnel.rules\n-rw-r--r-- /etc/systemd/system/netkeep-tunnel.service\n" +
		"-rw-r--r-- /etc/sysusers.d/netkeep-tunnel.conf\n" + state
	if got := files(t, u.Root); got != want {
		t.Errorf("there are\n%s", got)
	}
	// What the service has renewed is its own.
	put(t, filepath.Join(u.State(), "laptop.json"), "renewed key")
	if _, err := u.Install(); err == nil || !strings.Contains(err.Error(), "may have been renewed since") {
		t.Errorf("a newer identity is written over: %v", err)
	}
	if _, err := u.Uninstall(); err != nil {
		t.Fatal(err)
	}
	if got := files(t, u.Root); got != state {
		t.Errorf("there are left\n%s", got)
	}
	if _, err := u.Uninstall(); err == nil || !strings.Contains(err.Error(), "there is no") {
		t.Errorf("nothing is removed: %v", err)
	}
}

// TestForeign leaves alone what somebody else wrote, and what somebody changed
// unless that may go.
func TestForeign(t *testing.T) {
	u := newUnit(t)
	if _, err := u.Install(); err != nil {
		t.Fatal(err)
	}
	changed := u.Text() + "Nice=5\n"
	put(t, u.Path(), changed)
	for what, do := range map[string]func() error{
		"install":   func() error { _, err := u.Install(); return err },
		"uninstall": func() error { _, err := u.Uninstall(); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "was changed since") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if text, _ := os.ReadFile(u.Path()); string(text) != changed {
		t.Error("what was changed is written over")
	}
	u.Force = true
	if _, err := u.Uninstall(); err != nil {
		t.Error(err)
	}
	put(t, u.Path(), "[Service]\nExecStart=/bin/true\n")
	if _, err := u.Uninstall(); err == nil || !strings.Contains(err.Error(), "left alone") {
		t.Errorf("somebody else's is removed: %v", err)
	}
	if _, err := u.Install(); err == nil || !strings.Contains(err.Error(), "left alone") {
		t.Errorf("somebody else's is written over: %v", err)
	}
}

// TestRights looks at what services may: one that intercepts has one capability and
// the device, others have none, and none has more.
func TestRights(t *testing.T) {
	u := newUnit(t)
	for _, line := range []string{
		"User=netkeep-tunnel", "AmbientCapabilities=CAP_NET_ADMIN", "CapabilityBoundingSet=CAP_NET_ADMIN",
		"DeviceAllow=/dev/net/tun rw", "NoNewPrivileges=yes", "ProtectSystem=strict",
		"ExecStart=/usr/local/bin/netkeep tunnel run --intercept --identity /var/lib/netkeep-tunnel/laptop.json",
	} {
		if !strings.Contains(u.Text(), "\n"+line+"\n") {
			t.Errorf("%s is not in\n%s", line, u.Text())
		}
	}
	u.Intercepts, u.User = false, "root"
	u.Args = []string{"proxy", `a "b" $c 100%:80`, `back\slash:81`}
	text := u.Text()
	if !strings.Contains(text, "\nCapabilityBoundingSet=\n") || strings.Contains(text, "Ambient") || strings.Contains(text, "tun rw") || strings.Contains(text, "DynamicUser") {
		t.Errorf("without interception it is\n%s", text)
	}
	if want := `tunnel proxy "a \"b\" $$c 100%%:80" back\\slash:81 --identity`; !strings.Contains(text, want) {
		t.Errorf("words are not as they were in\n%s", text)
	}
}

// TestBadUnit has what a unit cannot be: each has a sentence, and nothing is written.
func TestBadUnit(t *testing.T) {
	for want, spoil := range map[string]func(*Unit){
		"no name for the service":      func(u *Unit) { u.Name = "../sshd" },
		"no name of a user":            func(u *Unit) { u.User = "me\nUser=root" },
		"no absolute path":             func(u *Unit) { u.Program = "netkeep" },
		"a file of one user":           func(u *Unit) { u.Program = "/home/ann/netkeep" },
		"characters that a unit":       func(u *Unit) { u.Args = append(u.Args, "x\nUser=root") },
		"would have one name":          func(u *Unit) { u.Identities = append(u.Identities, "/other/laptop.json") },
		"cannot be read":               func(u *Unit) { u.Identities = []string{"/nowhere/i.json"} },
		"too long for the name of a":   func(u *Unit) { u.Name += "-of-the-second-floor" },
		"there is no user nobody-here": func(u *Unit) { u.User = "nobody-here" },
	} {
		u := newUnit(t)
		spoil(u)
		if _, err := u.Install(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := os.Stat(filepath.Join(u.State(), "laptop.json")); err == nil {
			t.Errorf("%s: the identity is copied", want)
		}
	}
}

// TestRule shows that the service may say to systemd-resolved all that a tunneler says
// of its link, each of which is a right of its own: with one capability and no rule it
// may say nothing.
func TestRule(t *testing.T) {
	u := newUnit(t)
	for _, right := range []string{
		"set-default-route", "set-dnssec", "set-dns-over-tls", "set-llmnr", "set-mdns", "set-domains", "set-dns-servers", "revert",
	} {
		if !strings.Contains(u.Rule(), `"org.freedesktop.resolve1.`+right+`"`) {
			t.Errorf("%s is not in\n%s", right, u.Rule())
		}
	}
	if want := `subject.user == "netkeep-tunnel"`; !strings.Contains(u.Rule(), want) {
		t.Errorf("%s is not in\n%s", want, u.Rule())
	}
}
