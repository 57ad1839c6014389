// Package composed starts what the compose file describes without Docker: every service
// from the image, with its arguments, variables and volumes, in a network namespace of its
// own beside a bridge. It pastes what docs/install.md says, and has tests alone.
package composed

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var image = flag.String("image", "../../dist/*_oci.tar", "the image that services are started from")

// inside tells a process of this test that the namespaces are its own.
const inside = "NETKEEP_COMPOSED"

// TestComposed has three controllers and two routers come up, one after the other as the
// page says, carry traffic, and come up again without the tokens that they joined with.
func TestComposed(t *testing.T) {
	found, err := filepath.Glob(*image)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case os.Geteuid() != 0:
		t.Log("*** NOT RUN: only root may make namespaces. That the compose file makes a network was not shown.")
		return
	case len(found) != 1:
		t.Logf("*** NOT RUN: there are %d images at %s (make release makes one). That the compose file makes a network was not shown.", len(found), *image)
		return
	case os.Getenv(inside) == "":
		again(t, found[0])
		return
	}
	h := setUp(t, found[0])
	h.start(nil, "controller-1")
	h.exec("controller-1", "secret\n", "login", "--data", "/data/controller", "--username", "admin", "--password-file", "-")
	h.start(map[string]string{"JOIN_2": h.exec("controller-1", "", "cluster", "invite")}, "controller-2")
	h.start(map[string]string{"JOIN_3": h.exec("controller-1", "", "cluster", "invite")}, "controller-3")
	for _, r := range []string{"1", "2"} {
		h.exec("controller-1", "", "create", "edge-router", "router-"+r)
		token := map[string]string{"ROUTER_" + r: h.exec("controller-1", "", "token", "edge-router", "router-"+r)}
		h.run("enroll-"+r, token)
		h.start(token, "router-"+r)
	}
	h.records()
	h.traffic("from the beginning")
	for _, name := range []string{"router-1", "router-2", "controller-3", "controller-2", "controller-1"} {
		h.stop(name)
	}
	// As after docker compose up by somebody who has no tokens any more.
	h.start(nil, "controller-1", "controller-2", "controller-3")
	for _, r := range []string{"1", "2"} {
		h.run("enroll-"+r, nil)
	}
	h.start(nil, "router-1", "router-2")
	h.traffic("after everything was stopped")
	h.stop("controller-1")
	h.stop("router-1")
	h.traffic("without the first of each")
}

// again runs this test once more, where its namespaces are.
func again(t *testing.T, image string) {
	t.Helper()
	path, err := filepath.Abs(image)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", os.Args[0],
		"-test.run", "^TestComposed$", "-test.v", "-image", path)
	cmd.Env = append(os.Environ(), inside+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// records let a laptop reach what every controller tells monitoring.
func (h *house) records() {
	h.t.Helper()
	for _, line := range []string{
		"create edge-router-policy|everybody|--identity-roles|#all|--edge-router-roles|#all",
		"create service-edge-router-policy|everything|--service-roles|#all|--edge-router-roles|#all",
		"create config|health is here|--config-type|host.v1|--data|{protocol: tcp, address: controller-2, port: 1281}",
		"create service|health|--configs|health is here",
		"create service-policy|servers host|--type|Bind|--identity-roles|#servers|--service-roles|#all",
		"create service-policy|staff dials|--type|Dial|--identity-roles|#staff|--service-roles|#all",
		"invite server|--roles|servers|--save|/data/server.jwt",
		"invite laptop|--roles|staff|--save|/data/laptop.jwt",
	} {
		words := strings.Split(line, "|")
		h.exec("controller-1", "", append(strings.Fields(words[0]), words[1:]...)...)
	}
	for _, who := range []string{"server", "laptop"} {
		text, err := os.ReadFile(filepath.Join(h.volume("controller-1"), who+".jwt"))
		if err != nil {
			h.t.Fatal(err)
		}
		h.exec("outside", "", "enroll", strings.TrimSpace(string(text)), "--all-controllers", "-o", "/data/"+who+".json")
	}
	h.spawn("outside", "server", nil, []string{"netkeep", "tunnel", "host", "--identity", "/data/server.json"})
	h.spawn("outside", "laptop", nil, []string{"netkeep", "tunnel", "proxy", "--identity", "/data/laptop.json", "health:8080"})
}

// traffic asks a controller over the network for its health.
func (h *house) traffic(when string) {
	h.t.Helper()
	h.until("traffic "+when, func() bool {
		out, err := exec.Command("ip", "netns", "exec", "outside", "curl", "-fsS", "--max-time", "10", "http://127.0.0.1:8080/health/live").CombinedOutput()
		return err == nil && strings.Contains(string(out), `"status":"ok"`)
	})
	h.t.Logf("there is traffic %s", when)
}

// until waits for something that takes as long as the machine takes.
func (h *house) until(what string, done func() bool) {
	h.t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < 3*time.Minute; <-tick.C {
		if done() {
			return
		}
	}
	h.t.Fatalf("waited in vain for %s", what)
}

// stop ends a service as docker stop does.
func (h *house) stop(name string) {
	h.t.Helper()
	cmd := h.running[name]
	delete(h.running, name)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		h.t.Errorf("%s ended with %v", name, err)
	}
}
