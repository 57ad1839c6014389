package transit

import (
	"os"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// TestControllerChanges says what is wrong with a controller whenever that is
// something else, once each, and what to do about it.
func TestControllerChanges(t *testing.T) {
	own, err := servertest.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n, other := networktest.New(t, own), servertest.Start(t)
	i := n.AddIdentity("somebody")
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
}

// TestExposedIdentity has a client that will not go on with a key that other
// users of the machine may have read.
func TestExposedIdentity(t *testing.T) {
	n := networktest.New(t, shared)
	i := n.AddIdentity("somebody")
	must(t, os.Chmod(i.File, 0o644))
	open := func() error {
		c, err := sdk.Open(t.Context(), sdk.Options{Identity: i.File, Now: time.Now})
		if err == nil {
			err = c.Close()
		}
		return err
	}
	if err := open(); err == nil || !strings.Contains(err.Error(), i.File+" holds the identity's key and is open to other users: run chmod 600 on it") {
		t.Errorf("a file that others may read: %v", err)
	}
	must(t, os.Chmod(i.File, 0o600))
	must(t, open())
}
