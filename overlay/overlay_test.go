package overlay_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/overlay"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// shared is the controller of all tests here.
var shared *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, &shared) }

// M is a JSON object.
type M = servertest.M

// invite makes an identity that has not enrolled yet, and returns its id and its
// token.
func invite(n *networktest.Network, name string) (id, token string) {
	n.T.Helper()
	id = n.Admin.Post(networktest.Management+"identities", M{
		"name": name, "type": "Device", "isAdmin": false, "roleAttributes": []string{n.Word}, "enrollment": M{"ott": true},
	}).Want(201).ID()
	return id, n.Admin.Get(networktest.Management + "identities/" + id).Want(200).At("data.enrollment.ott.jwt").(string)
}

// open is overlay.Open until the test ends.
func open(t *testing.T, file string, options ...overlay.Option) *overlay.Network {
	t.Helper()
	network, err := overlay.Open(t.Context(), file, options...)
	must(t, err)
	t.Cleanup(func() { must(t, network.Close()) })
	return network
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestOverlay goes through what a program does with the package, examples
// included, in a network of ours.
func TestOverlay(t *testing.T) {
	n := networktest.New(t, servertest.Start(t))
	n.AddRouter("router")
	name := n.Word + "-me"
	_, token := invite(n, name)
	post := func(kind string, body M) { n.Admin.Post(networktest.Management+kind, body).Want(201) }
	everybody, all := []string{"#" + n.Word}, []string{n.Word}
	for _, name := range []string{"greeting", "echo", "empty"} {
		post("services", M{"name": name, "encryptionRequired": name != "echo", "roleAttributes": all})
	}
	for _, typ := range []string{"Dial", "Bind"} {
		post("service-policies", M{"name": typ, "type": typ, "semantic": "AnyOf", "identityRoles": everybody, "serviceRoles": everybody})
	}
	post("services", M{"name": "ours", "encryptionRequired": true, "roleAttributes": []string{"ours"}})
	post("service-policies", M{"name": "ours", "type": "Bind", "semantic": "AnyOf", "identityRoles": everybody, "serviceRoles": []string{"#ours"}})
	post("service-edge-router-policies", M{"name": "ours", "semantic": "AnyOf", "serviceRoles": []string{"#ours"}, "edgeRouterRoles": everybody})
	post("services", M{"name": "lost", "encryptionRequired": true, "roleAttributes": []string{"lost"}})
	post("service-policies", M{"name": "lost", "type": "Bind", "semantic": "AnyOf", "identityRoles": everybody, "serviceRoles": []string{"#lost"}})
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("my-program.jwt", []byte(token), 0o600))

	for _, example := range []struct {
		run  func()
		says string
	}{
		{ExampleEnrollFile, "I am " + name + "\n"},
		{ExampleEnrollFile, "I am " + name + "\n"}, // it has
		{Example, "hello, " + name + "\n"},
		{ExampleNetwork_Dial, "echo said: is anybody there?\n"},
		{ExampleNetwork_Listen, "right heard a word\n"},
		{ExampleDialerOf, "you are " + name + "\n"},
		{ExampleWithPosture, "logged in as " + name + "\n"},
		{ExampleNetwork_Events, "the controller is connected\n"},
	} {
		if got := said(t, example.run); got != example.says {
			t.Errorf("an example says %q, want %q", got, example.says)
		}
	}

	var log strings.Builder
	network, err := overlay.Open(t.Context(), "my-program.json", overlay.WithLog(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, s := range network.Services() {
		list = append(list, s.String())
	}
	if want := []string{"echo (dial, host)", "empty (dial, host)", "greeting (dial, host)", "lost (host)", "ours (host)"}; !slices.Equal(list, want) {
		t.Errorf("the services are %q, want %q", list, want)
	}
	for _, test := range []struct {
		service string
		kind    error
		says    string
	}{
		{"emtpy", overlay.ErrNoService, "is it empty?"},
		{"ours", overlay.ErrDenied, "a service policy of type Dial is missing"},
		{"empty", overlay.ErrNoHost, "nobody hosts the service empty at present"},
	} {
		conn, err := network.Dial(t.Context(), test.service)
		if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.says) || conn != nil {
			t.Errorf("a dial of %s: %v", test.service, err)
		}
	}
	if _, err := network.DialContext(t.Context(), "udp", "echo:1"); err == nil {
		t.Error("there are datagrams")
	}
	if _, err := network.Listen(t.Context(), "lost"); !errors.Is(err, overlay.ErrNoRouter) || !strings.Contains(err.Error(), "netkeep list service-edge-router-policies") {
		t.Errorf("a service without routers: %v", err)
	}
	l, err := network.Listen(t.Context(), "ours")
	if err != nil {
		t.Fatal(err)
	}
	if err := network.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a listener of a network that was closed: %v", err)
	}
	if !strings.Contains(log.String(), "connected to a router") {
		t.Errorf("the log says %q", log.String())
	}
	if _, err := network.Dial(t.Context(), "echo"); err == nil {
		t.Error("a network that was closed can be dialled")
	}
	if _, err := overlay.Open(t.Context(), "nothing.json"); err == nil {
		t.Error("there is a network without an identity")
	}
}

// said is what a function prints.
func said(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = w
	f()
	os.Stdout = out
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
