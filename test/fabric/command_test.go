package fabric

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/run/cli"
	"netkeep.internal/test/servertest"
)

// terminal is somebody who looks at the network from a command line.
type terminal struct {
	t       *testing.T
	environ []string
	replace []string // names that differ from run to run, and what to call them
}

// newTerminal logs in.
func newTerminal(t *testing.T, s *servertest.Server) *terminal {
	t.Helper()
	dir := t.TempDir()
	term := &terminal{t: t, environ: []string{"HOME=" + dir, "XDG_CONFIG_HOME=" + dir, "NETKEEP_PASSWORD=" + servertest.Password}}
	term.run(0, "login", "--data", s.Config.Data, "--username", servertest.Username)
	return term
}

// run runs a command and returns what it says.
func (term *terminal) run(code int, args ...string) string {
	term.t.Helper()
	ctx, cancel := context.WithTimeout(term.t.Context(), soon)
	defer cancel()
	var out, problems bytes.Buffer
	got := cli.Main(ctx, cli.Env{Program: "netkeep", Args: args, Environ: term.environ, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &problems, Now: time.Now})
	if got != code {
		term.t.Fatalf("netkeep %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &out, &problems)
	}
	return strings.NewReplacer(term.replace...).Replace(out.String() + problems.String())
}

// says compares what a command says with a text. Blanks do not count, as they
// depend on how long names are.
func (term *terminal) says(want string, args ...string) {
	term.t.Helper()
	words := func(text string) string {
		var lines []string
		for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return strings.Join(lines, "\n")
	}
	if got := words(term.run(0, args...)); got != words(want) {
		term.t.Errorf("netkeep %s says\n%s\nwant\n%s", strings.Join(args, " "), got, words(want))
	}
}

// TestCommands looks at a network from the command line.
func TestCommands(t *testing.T) {
	s := servertest.Start(t)
	term := newTerminal(t, s)
	term.says("There are no routers.", "topology")
	term.says("There are no links.", "links")
	m := addMesh(t, s, "ab", "bc")
	m.measure("a", "ab", 3)
	for _, name := range []string{"a", "b", "c"} {
		term.replace = append(term.replace, m.records[name].Name, name)
	}
	who := m.dialer.Get(client + "current-identity").Want(200).Data()
	host := m.host.Get(client + "current-identity").Want(200).Data()
	service := s.Admin(t).Get(management + "services/" + m.service).Want(200).Data()["name"].(string)
	dialer := who["name"].(string)
	term.replace = append(term.replace, dialer, "dialer", host["name"].(string), "host", service, "echo", "-"+m.service, "")
	out := term.run(0, "trace-path", dialer, service)
	for _, want := range []string{"dialer cannot use echo.", "From a: no host can be reached from the router", "netkeep explain dialer echo"} {
		if !strings.Contains(out, want) {
			t.Errorf("the trace of a path that is none does not say %q:\n%s", want, out)
		}
	}
	m.hostOn(t, m.routers["c"], "terminator1")
	id, _, err := m.dialOn(t, m.routers["a"])
	must(t, err)
	made := s.Admin(t).Get(fabricAPI + "circuits/" + id).Want(200).Data()["createdAt"].(string)
	at, err := time.Parse(time.RFC3339, made)
	must(t, err)
	term.replace = append(term.replace, id, "circuit1", at.UTC().Format("2006-01-02T15:04:05Z"), "then")

	term.says(`
		FROM TO LATENCY OTHER END COST DOWN ID
		a    b  3.0 ms  1.0 ms    5    no   ab
		b    c  1.0 ms  1.0 ms    3    no   bc`, "links")
	term.says("bc", "links", "--router", m.records["c"].Name, "-o", "name")
	term.says("There are no links.", "links", "--filter", "down = true")
	term.says(`
		SERVICE IDENTITY HOST PATH      SINCE ID
		echo    dialer   host a > b > c then  circuit1`, "circuits")
	term.says("circuit1", "circuits", "--service", service, "--identity", dialer, "--router", m.records["b"].Name, "-o", "name")
	term.says("ROUTER STATE LINKED TO LATENCY OTHER END COST HOSTS\n"+sorted(m,
		"a online v1.6.20 -> b 3.0 ms 1.0 ms 5",
		"b online v1.6.20 <- a 1.0 ms 3.0 ms 5\n-> c 1.0 ms 1.0 ms 3",
		"c online v1.6.20 <- b 1.0 ms 1.0 ms 3 echo"), "topology")
	if out := term.run(0, "trace-path", dialer, service); !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(`
		From a to terminator1, at a cost of 28; it is the only host.
		ROUTER LATENCY OTHER END COST OVER LINK
		a
		b      3.0 ms  1.0 ms    5    ab
		c      1.0 ms  1.0 ms    3    bc`), " ")) {
		t.Errorf("the trace of a path says\n%s", out)
	}
	if out := term.run(0, "status"); !strings.Contains(out, "3 of 3 online, 2 links, 1 circuits") {
		t.Errorf("the status says\n%s", out)
	}
	ask := filepath.Join(t.TempDir(), "ask.json")
	must(t, os.WriteFile(ask, []byte(`{"appRegex": ".*", "requestedValues": ["links"]}`), 0o600))
	if out := term.run(0, "api", "POST", "/fabric/v1/inspections", "-f", ask); strings.Count(out, `"appId"`) != 4 {
		t.Errorf("the routers and the controller say of their links\n%s", out)
	}
	term.says("circuit circuit1 ended", "circuits", "end", id)
	term.run(3, "circuits", "end", id)
	term.says("There are no circuits.", "circuits")
	term.run(3, "links", "--router", "nobody")
	if out := term.run(0, "topology", "-o", "json"); strings.Count(out, `"sourceLatency"`) != 2 {
		t.Errorf("the topology as JSON: %s", out)
	}
}

// sorted joins what is said of routers, by their names.
func sorted(m *mesh, a, b, c string) string {
	byName := map[string]string{m.records["a"].Name: a, m.records["b"].Name: b, m.records["c"].Name: c}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		lines = append(lines, byName[name])
	}
	return strings.Join(lines, "\n")
}
