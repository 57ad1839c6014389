package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	t.Setenv("NETKEEP_ADMIN_PASSWORD", "p")
	const run = "run --scenario version "
	for _, tt := range []struct{ name, args, want string }{
		{"no command", "", "must be fill, run, routers, streams, cluster or baseline"},
		{"unknown command", "walk", "must be fill, run, routers, streams, cluster or baseline"},
		{"unknown flag", "run --speed 9", "not defined"},
		{"stray argument", run + "now", `unexpected argument "now"`},
		{"other machine", run + "--url https://192.0.2.1:1280", "--any-host"},
		{"other name", run + "--url https://controller.example.org:1280", "--any-host"},
		{"name that only begins like ours", run + "--url https://localhost.example.org:1280", "--any-host"},
		{"address before the host", run + "--url https://127.0.0.1@192.0.2.1:1280", "--any-host"},
		{"unspecified address", run + "--url https://0.0.0.0:1280", "--any-host"},
		{"fill on another machine", "fill --url https://192.0.2.1:1280", "--any-host"},
		{"no TLS", run + "--url http://127.0.0.1:1280", "must be https"},
		{"no host", run + "--url https://", "must be https"},
		{"no URL", run + "--url %", "--url"},
		{"password for all to see", run + "--password p", "not defined"},
		{"no file with a password", run + "--password-file no-such-file", "--password-file"},
		{"empty password", run + "--password-file " + os.DevNull, "not be empty"},
		{"no clients", run + "--clients 0", "--clients"},
		{"too many clients", run + "--clients 100000", "--clients"},
		{"no time", run + "--duration 0s", "--duration"},
		{"too long", run + "--duration 25h", "--duration"},
		{"no timeout", run + "--timeout 0s", "--timeout"},
		{"no rounds", run + "--rounds 0", "--rounds"},
		{"too many rounds", run + "--rounds 1000000000", "--rounds"},
		{"no scenario", "run", "--scenario"},
		{"unknown scenario", "run --scenario version,sleep", `"sleep"`},
		{"negative size", "fill --identities -1", "sizes"},
		{"missing CA", run + "--ca no-such-file", "--ca"},
		{"CA that is none", run + "--ca options_test.go", "no certificate"},
		{"no process", run + "--server-pid -1", "--server-pid"},
		{"cluster of nothing", "cluster --routers 0", "sizes"},
		{"unknown measure", "cluster --measure join,sleep", `"sleep"`},
		{"baseline without clients", "baseline --clients 0", "--clients"},
		{"baseline without time", "baseline --duration 0s", "--duration"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := dispatch(t.Context(), strings.Fields(tt.args), io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%q gives the error %v, want one with %s", tt.args, err, tt.want)
			}
		})
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.8.9.10": true, "::1": true, "localhost": true,
		"10.0.0.1": false, "128.0.0.1": false, "::": false, "": false, "localhost.": false, "127.0.0.1.example.org": false,
	} {
		if loopback(host) != want {
			t.Errorf("loopback(%q) is %v", host, !want)
		}
	}
}

func TestAnyHost(t *testing.T) {
	t.Setenv("NETKEEP_ADMIN_PASSWORD", "p")
	far := target{url: "https://controller.example.org", clients: 1, timeout: 1, anyHost: true}
	if err := far.check(); err != nil {
		t.Errorf("a host that was allowed is refused: %v", err)
	}
}
