package transit

import (
	"fmt"
	"strings"
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// TestInspect looks into a router and the controller while a circuit is there, by the
// names that tools ask for.
func TestInspect(t *testing.T) {
	n := networktest.New(t, shared)
	r := n.AddRouter("one")
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	service := n.AddService("inspected", true)
	l, err := n.Client(host).Listen(within(t, networktest.Soon), service, sdk.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	near, _ := pairOf(t, n.Client(user), l, service)
	circuit := near.Info().Circuit
	names := []string{"router-circuits", "links", "router-controllers", "sdk-terminators", "identity-connection-statuses", "config", "metrics", "stackdump", "circuit:" + circuit}
	said := n.Admin.Post("/fabric/v1/inspections", M{"appRegex": "^" + r.ID + "$", "requestedValues": names}).Want(200).JSON.(M)
	got := map[string]any{}
	for _, v := range said["values"].([]any) {
		got[v.(M)["name"].(string)] = v.(M)["value"]
	}
	if len(got) != len(names) || said["success"] != true {
		t.Fatalf("the router says %v", said)
	}
	if entries := got["sdk-terminators"].(M)["entries"].([]any); len(entries) != 1 || entries[0].(M)["state"] != "established" || entries[0].(M)["identityId"] != host.ID {
		t.Errorf("its hosts: %v", entries)
	}
	for _, id := range []string{user.ID, host.ID} {
		if got["identity-connection-statuses"].(M)["identity_connections"].(M)[id] == nil {
			t.Errorf("%s is not among those who are connected: %v", id, got["identity-connection-statuses"])
		}
	}
	if fmt.Sprint(figuresOf(got["metrics"], r.ID)["circuits"]) != "map[value:1]" || got["config"].(M)["id"] != r.ID || !strings.Contains(fmt.Sprint(got["stackdump"]), "goroutine") {
		t.Errorf("it says %v", got)
	}
	if routes := got["circuit:"+circuit].(M)["routes"].(M); len(routes) != 2 {
		t.Errorf("the circuit there: %v", got["circuit:"+circuit])
	}
	names = []string{"config", "connected-routers", "links", "metrics", "router-data-model", "stackdump", "terminator-costs", "data-model-index", "router-data-model-index", "identity-connection-statuses", "circuit:" + circuit}
	said = n.Admin.Post("/fabric/v1/inspections", M{"appRegex": "netkeep", "requestedValues": names}).Want(200).JSON.(M)
	clear(got)
	for _, v := range said["values"].([]any) {
		got[v.(M)["name"].(string)] = v.(M)["value"]
	}
	for _, name := range names {
		if got[name] == nil {
			t.Errorf("the controller does not say %s: %v", name, said["errors"])
		}
	}
	if online := got["connected-routers"].([]any); len(online) == 0 || online[0].(M)["Id"] == nil || online[0].(M)["ConnectTime"] == nil {
		t.Errorf("the routers that are connected: %v", online)
	}
	for _, name := range []string{"data-model-index", "router-data-model-index"} {
		if at := got[name].(M); at["index"].(float64) < 1 || at["timeline"] == "" {
			t.Errorf("%s: %v", name, at)
		}
	}
	// A router says with its next report who has come.
	servertest.Eventually(t, networktest.Soon, "the controller says who is at the router", func() bool {
		said := n.Admin.Post("/fabric/v1/inspections", M{"appRegex": "netkeep", "requestedValues": []string{"identity-connection-statuses"}}).Want(200).JSON.(M)
		at := said["values"].([]any)[0].(M)["value"].(M)["connections"].(M)
		there := func(id string) bool {
			return strings.Contains(fmt.Sprint(at[id]), "router_id:"+r.ID) && strings.Contains(fmt.Sprint(at[id]), "last_reported_state:online")
		}
		return there(user.ID) && there(host.ID)
	})
	// Others have circuits at this controller too.
	own := got["metrics"].([]any)[0].(M)["event_src_id"].(string)
	if circuits, ok := figuresOf(got["metrics"], own)["netkeep_circuits"].(M); !ok || circuits["value"].(float64) < 1 {
		t.Errorf("what was measured: %v", got["metrics"])
	}
	if got["circuit:"+circuit].(M)["id"] != circuit || strings.Contains(fmt.Sprint(got["config"]), "password: a") {
		t.Errorf("the controller says %v", got)
	}
}

// figuresOf is what somebody has measured, by the name of each figure.
func figuresOf(events any, source string) map[any]any {
	figures := map[any]any{}
	for _, f := range events.([]any) {
		if f.(M)["namespace"] == "metrics" && f.(M)["source_id"] == source {
			figures[f.(M)["metric"]] = f.(M)["metrics"]
		}
	}
	return figures
}
