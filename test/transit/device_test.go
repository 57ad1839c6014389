package transit

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// addChecks makes a service that everybody may host, and dial who passes checks.
func addChecks(n *networktest.Network, checks ...M) (id, name string) {
	n.T.Helper()
	name = servertest.Unique("checked")
	word := servertest.Unique("check")
	create := func(kind string, body M) string {
		n.T.Helper()
		return n.Admin.Post(networktest.Management+kind, body).Want(201).ID()
	}
	id = create("services", M{"name": name, "encryptionRequired": true, "roleAttributes": []string{n.Word}})
	for _, check := range checks {
		check["name"], check["roleAttributes"] = servertest.Unique("check"), []string{word}
		create("posture-checks", check)
	}
	create("service-policies", M{
		"name": name + "Bind", "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{"#" + n.Word}, "serviceRoles": []string{"@" + id},
	})
	create("service-policies", M{
		"name": name + "Dial", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#" + n.Word},
		"serviceRoles": []string{"@" + id}, "postureCheckRoles": []string{"#" + word},
	})
	return id, name
}

// agent is a program that runs until it is ended.
func agent(t *testing.T, path string) (end func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	_, err = io.WriteString(in, ".")
	must(t, err)
	_, err = io.ReadFull(out, make([]byte, 1)) // it runs
	must(t, err)
	return func() {
		must(t, in.Close())
		must(t, cmd.Wait())
	}
}

// TestDevice has a client tell of its own what checks ask for: it passes while a
// program runs, also after its API session has ended, and is cut off when the
// program ends.
func TestDevice(t *testing.T) {
	cat, err := exec.LookPath("cat")
	must(t, err)
	path := filepath.Join(t.TempDir(), "cat")
	put(t, path, contents(t, cat))
	must(t, os.Chmod(path, 0o700))

	n := networktest.New(t, shared)
	n.AddRouter("one")
	_, service := addChecks(n,
		M{"typeId": "OS", "operatingSystems": []M{{"type": "Linux", "versions": []string{">=2.0.0"}}}},
		M{"typeId": "PROCESS_MULTI", "semantic": "AllOf", "processes": []M{{"osType": "Linux", "path": path}}},
		M{"typeId": "PROCESS", "process": M{"osType": "Linux", "path": path}},
	)
	n.Echo(n.Client(n.AddIdentity("host")), service)
	id := n.AddIdentity("me")
	me := n.Client(id)
	_, err = me.Dial(t.Context(), service, sdk.DialOptions{})
	if !errors.Is(err, sdk.ErrDenied) || !strings.Contains(err.Error(), "netkeep posture "+id.Name+" --failed") {
		t.Errorf("it dials without the program: %v", err)
	}
	dials := func() bool {
		conn, err := me.Dial(t.Context(), service, sdk.DialOptions{})
		if err == nil {
			_ = conn.Close()
		} else if !errors.Is(err, sdk.ErrDenied) {
			t.Log(err)
		}
		return err == nil
	}
	end := agent(t, path)
	n.Eventually("it passes while the program runs", dials)

	for _, s := range n.Admin.Get(networktest.Management + `api-sessions?filter=identity="` + id.ID + `"`).Want(200).List() {
		n.Admin.Delete(networktest.Management + "api-sessions/" + s["id"].(string)).Want(200)
	}
	n.Eventually("it passes with a new API session", dials)

	conn, err := me.Dial(t.Context(), service, sdk.DialOptions{})
	must(t, err)
	end()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("it goes on without the program")
	}
	n.Eventually("it passes no more", func() bool { return !dials() })
}
