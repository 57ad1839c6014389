package unit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// passwd writes the list of users of an image.
func (u *Unit) passwd(t *testing.T, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(u.Root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(u.Root, "etc", "passwd"), text)
}

// TestAccount has a user be made for a service that intercepts and for no other: D-Bus,
// over which it tells of names, does not know one that there is only while it runs.
func TestAccount(t *testing.T) {
	u := newUnit(t)
	u.passwd(t, "root:x:0:0::/root:/bin/sh\nmy-netkeep-tunnel:x:900:900::/:/bin/sh\nnetkeep-tunnel2:x:901:901::/:/bin/sh\n")
	if strings.Contains(u.Text(), "DynamicUser") {
		t.Errorf("the user is there only while it runs:\n%s", u.Text())
	}
	if _, err := u.Install(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(u.account())
	if want := "\nu netkeep-tunnel - \"netkeep tunneler\"\n"; err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("%q, %v", text, err)
	}
	if name, err := u.Made(); name != "" || err != nil {
		t.Errorf("a user is there whom nobody made: %s, %v", name, err)
	}
	u.passwd(t, "root:x:0:0::/root:/bin/sh\nnetkeep-tunnel:x:995:995::/:/bin/sh\n")
	if name, err := u.Made(); name != "netkeep-tunnel" || err != nil {
		t.Errorf("the user who was made is %q, %v", name, err)
	}
	for range 2 { // again, and as a service that has no need of one
		if _, err := u.Install(); err != nil {
			t.Fatal(err)
		}
		u.Intercepts = false
	}
	if !strings.Contains(u.Text(), "\nUser=netkeep-tunnel\nDynamicUser=yes\n") {
		t.Errorf("a user is made for one that does not intercept:\n%s", u.Text())
	}
	if _, err := u.Uninstall(); err != nil {
		t.Fatal(err)
	}
	if name, err := u.Made(); name != "" || err != nil {
		t.Errorf("%s would be removed again: %v", name, err)
	}
}

// TestStranger takes no user for its own whom somebody else made: they would go with
// the service.
func TestStranger(t *testing.T) {
	u := newUnit(t)
	u.passwd(t, "netkeep-tunnel:x:1000:1000:Ann:/home/ann:/bin/sh\n")
	before := files(t, u.Root)
	if _, err := u.Install(); err == nil || !strings.Contains(err.Error(), "with --user netkeep-tunnel") {
		t.Errorf("somebody else's user is taken: %v", err)
	}
	if got := files(t, u.Root); got != before {
		t.Errorf("there are\n%s", got)
	}
	u.User = "root"
	if _, err := u.Install(); err != nil {
		t.Error(err)
	}
	if name, err := u.Made(); name != "" || err != nil {
		t.Errorf("%s would be removed: %v", name, err)
	}
}

// TestAnotherIdentity brings one to a service that has run: systemd looks at the
// directory alone, which belongs to the service already.
func TestAnotherIdentity(t *testing.T) {
	u := newUnit(t)
	if _, err := u.Install(); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(u.State(), 995, 996); err != nil {
			t.Fatal(err)
		}
	}
	other := filepath.Join(filepath.Dir(u.Identities[0]), "other.json")
	put(t, other, "another key")
	u.Identities = append(u.Identities, other)
	if _, err := u.Install(); err != nil {
		t.Fatal(err)
	}
	if got, want := holder(filepath.Join(u.State(), "other.json")), holder(u.State()); *got != *want {
		t.Errorf("the identity belongs to %v, and the service's directory to %v", *got, *want)
	}
	if os.Geteuid() != 0 {
		return // nobody else can give things away
	}
	if err := u.Reclaim(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{u.State(), filepath.Join(u.State(), "other.json")} {
		if got := holder(path); *got != (owner{}) {
			t.Errorf("%s belongs to %v still", path, *got)
		}
	}
}
