package transit

import (
	"os"
	"strings"
	"testing"

	"netkeep/test/networktest"
	"netkeep/test/servertest"
)

// TestControllerChanges says what is wrong with a controller whenever that is
// something else, once each, and what to do about it.
func TestControllerChanges(t *testing.T) {
	own, err := servertest.OpenFabric(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n, other := networktest.New(t, own), servertest.StartFabric(t)
	i := n.AddIdentity("somebody")
	if err := os.Chmod(i.File, 0o644); err != nil {
		t.Fatal(err)
	}
	moved := i.File + ".moved"
	put(t, moved, strings.ReplaceAll(contents(t, i.File), n.Server.URL, other.URL))
	var said diary
	n.Client(i, living(new(clock), &said))
	tunnel := tunnels(t, "host", "--identity", moved)
	n.Eventually("another controller is told", func() bool {
		return strings.Contains(tunnel.String(), "a CA that the identity's file does not name: it is another controller, or was set up anew; enroll the identity again")
	})
	n.Admin.Delete(networktest.Management + "identities/" + i.ID).Want(200)
	n.Eventually("a refusal is told", func() bool { return said.count("the controller refuses the identity") == 1 })
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	n.Eventually("silence is told", func() bool { return said.count("nothing listens at") == 1 })
	if got := said.count("the controller refuses the identity"); got != 1 {
		t.Errorf("a refusal is told %d times", got)
	}
	if said.count("run chmod 600 on it") != 1 {
		t.Error("it is not told that others may read the key")
	}
}
