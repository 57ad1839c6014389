package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep.internal/test/servertest"
)

// arguments are those that lead to a controller.
func arguments(t *testing.T, s *servertest.Server, command string, more ...string) []string {
	t.Helper()
	return append([]string{
		command, "--url", s.URL, "--ca", filepath.Join(s.Config.Data, "pki", "root.crt"),
		"--username", servertest.Username, "--password-file", secret(t, servertest.Password),
	}, more...)
}

// secret is a file with a text.
func secret(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFillAndRun(t *testing.T) {
	s := servertest.Start(t)
	for args, want := range map[string]string{
		"--scenario get-identity --rounds 1":                         "fill the controller first",
		"--scenario version --password-file " + secret(t, "mistake"): "log in as admin",
	} {
		err := dispatch(t.Context(), arguments(t, s, "run", strings.Fields(args)...), t.Output(), t.Output())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %s", args, err, want)
		}
	}
	size := []string{
		"--identities", "100", "--services", "30", "--edge-routers", "5", "--policies", "20", "--configs", "4", "--clients", "4",
	}
	fill := func() string {
		var out bytes.Buffer
		if err := dispatch(t.Context(), arguments(t, s, "fill", size...), &out, t.Output()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if out := fill(); !strings.Contains(out, "created   100  already there     0") {
		t.Errorf("the identities were not created:\n%s", out)
	}
	before := summary(t, s)
	if out := fill(); !strings.Contains(out, "created     0  already there   100") {
		t.Errorf("the identities were not found again:\n%s", out)
	}
	for _, more := range [][]string{nil, {"--http2"}} {
		t.Run(fmt.Sprint(more), func(t *testing.T) { runAll(t, s, more) })
	}
	if after := summary(t, s); after != before {
		t.Errorf("something was left behind:\n%s\nbefore:\n%s", after, before)
	}
}

// summary is what the controller holds, without sessions.
func summary(t *testing.T, s *servertest.Server) string {
	data := s.Admin(t).Get("summary").Want(200).Data()
	delete(data, "apiSessions")
	text, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// runAll runs every scenario for some rounds and expects no errors.
func runAll(t *testing.T, s *servertest.Server, more []string) {
	more = append(more, "--scenario", "all", "--rounds", "5", "--clients", "2", "--json")
	if runtime.GOOS == "linux" {
		more = append(more, "--server-pid", strconv.Itoa(os.Getpid()))
	}
	var out bytes.Buffer
	if err := dispatch(t.Context(), arguments(t, s, "run", more...), &out, t.Output()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(scenarios) {
		t.Fatalf("%d scenarios give %d lines:\n%s", len(scenarios), len(lines), &out)
	}
	for i, line := range lines {
		var res result
		if err := json.Unmarshal([]byte(line), &res); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		want := 5 * max(len(res.Steps), 1)
		if res.Scenario != scenarios[i].name || res.Requests != want || len(res.Errors) > 0 || res.Max <= 0 || res.Max < res.P50 {
			t.Errorf("scenario %s: want %d requests and no errors: %s", scenarios[i].name, want, line)
		}
		if runtime.GOOS == "linux" && (res.Server == nil || res.Server.RSSMegabytes <= 0) {
			t.Errorf("scenario %s does not say what the server used: %s", scenarios[i].name, line)
		}
	}
}

func TestBaseline(t *testing.T) {
	for _, args := range [][]string{nil, {"--http2"}} {
		var out bytes.Buffer
		args = append([]string{"baseline", "--json", "--rounds", "20", "--clients", "2"}, args...)
		if err := dispatch(t.Context(), args, &out, t.Output()); err != nil {
			t.Fatal(err)
		}
		var res result
		if err := json.Unmarshal(out.Bytes(), &res); err != nil {
			t.Fatal(err)
		}
		if res.Requests != 20 || len(res.Errors) > 0 || res.P50 <= 0 {
			t.Errorf("%v: want 20 requests without errors: %s", args, &out)
		}
	}
}

// TestRouters measures a small fleet and leaves nothing behind.
func TestRouters(t *testing.T) {
	s := servertest.Start(t)
	before := summary(t, s)
	var out, progress bytes.Buffer
	args := arguments(t, s, "routers", "--routers", "3", "--sessions", "20", "--circuits", "30", "--duration", "100ms", "--clients", "2", "--server-pid", fmt.Sprint(os.Getpid()))
	if err := dispatch(t.Context(), args, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	for _, want := range []string{`connect +3 routers`, `spread .* 3 routers`, `return +3 routers at once in .* p99`, `sync +20 and more`, `circuits +[1-9]\d* made and ended`, `open +30 circuits`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("nothing says %s:\n%s", want, &out)
		}
	}
	if after := summary(t, s); after != before {
		t.Errorf("it left behind:\n%s\nwas\n%s", after, before)
	}
}

// TestStreams has a few clients told of changes and leaves nothing behind.
func TestStreams(t *testing.T) {
	s := servertest.Start(t)
	before := summary(t, s)
	var out, progress bytes.Buffer
	args := arguments(t, s, "streams", "--streams", "6", "--identities", "2", "--changes", "2", "--clients", "2", "--server-pid", fmt.Sprint(os.Getpid()))
	if err := dispatch(t.Context(), args, &out, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	for _, want := range []string{`open +6 streams in .* each`, `(?s)tell +6 streams .* cpu .*\ntell +6 streams`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("nothing says %s:\n%s", want, &out)
		}
	}
	if after := summary(t, s); after != before {
		t.Errorf("it left behind:\n%s\nwas\n%s", after, before)
	}
}
