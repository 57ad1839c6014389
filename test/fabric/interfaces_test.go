package fabric

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/servertest"
)

// TestInterfaces has a router say which network interfaces its machine has: those who look
// after routers see them, clients do not, and it can neither say without end nor fill memory.
func TestInterfaces(t *testing.T) {
	s := servertest.Start(t)
	r := addRouter(t, s)
	c := r.Connect(t)
	admin := s.Admin(t)
	admin.Patch(management+"edge-routers/"+r.ID, M{"isTunnelerEnabled": true}).Want(200) // so that it is an identity too
	tell := func(list ...message.Interface) (success bool) {
		t.Helper()
		answer, err := c.Request(t.Context(), &wire.Frame{Type: message.TypeInterfaces, Body: message.Marshal(&message.Interfaces{Interfaces: list})})
		must(t, err)
		return answer.Headers.Bool(message.HeaderSuccess)
	}
	at := func(path string) []any { return admin.Get(path).Want(200).Data()["interfaces"].([]any) }
	if !tell(message.Interface{Name: "eth0", HardwareAddress: "02:00:00:00:00:01", MTU: 1500, Index: 2, Flags: uint64(net.FlagUp | net.FlagMulticast), Addresses: []string{"192.0.2.7/24"}}) {
		t.Fatal("it is refused")
	}
	want := fmt.Sprint(M{
		"name": "eth0", "hardwareAddress": "02:00:00:00:00:01", "mtu": 1500.0, "index": 2.0, "addresses": []any{"192.0.2.7/24"},
		"isUp": true, "isMulticast": true, "isBroadcast": false, "isLoopback": false, "isRunning": false,
	})
	for _, path := range []string{management + "edge-routers/" + r.ID, management + "identities/" + r.ID, management + "transit-routers/" + r.ID, "/fabric/v1/routers/" + r.ID} {
		if got := at(path); len(got) != 1 || fmt.Sprint(got[0]) != want {
			t.Errorf("%s has %v, want %s", path, got, want)
		}
	}
	if clients := admin.Get(client + "current-identity/edge-routers").Want(200); strings.Contains(string(clients.Raw), "192.0.2.7") {
		t.Errorf("clients are told of it: %s", clients.Raw)
	}
	many := make([]message.Interface, 100)
	for i := range many {
		many[i] = message.Interface{Name: strings.Repeat("\xffx", 100), Addresses: slices.Repeat([]string{"a"}, 20)}
	}
	tell(many...)
	got := at(management + "edge-routers/" + r.ID)
	if first := got[0].(M); len(got) != 64 || len(first["addresses"].([]any)) != 8 || first["name"] != strings.Repeat("x", 32) {
		t.Errorf("%d of 100 are kept, the first as %v", len(got), got[0])
	}
	refused := false
	for i := range 200 {
		refused = refused || !tell(message.Interface{Name: fmt.Sprint(i)})
	}
	if !refused {
		t.Error("it could say 200 times at once that all is new")
	}
}
