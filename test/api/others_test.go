package api_test

import (
	"strings"
	"testing"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// TestListsOfOthers wants the lists that controllers of others always send.
// Their clients walk through each of them without a look whether it is there,
// and some crash on one that is not.
func TestListsOfOthers(t *testing.T) {
	admin := shared.Admin(t)
	identity := admin.Post("identities", M{"name": servertest.Unique("identity"), "type": "User", "isAdmin": false}).Want(201).ID()
	admin.Post("edge-routers", M{"name": servertest.Unique("router")}).Want(201)
	for path, lists := range map[string]string{
		api.ClientRoot + "/version":                    "capabilities",
		api.ManagementRoot + "/version":                "capabilities",
		api.ClientRoot + "/current-identity":           "interfaces permissions externalIdIssuers roleAttributes",
		api.ManagementRoot + "/identities/" + identity: "interfaces permissions externalIdIssuers roleAttributes",
		api.ManagementRoot + "/edge-routers":           "configs interfaces",
		api.ManagementRoot + "/routers":                "configs interfaces",
		api.ManagementRoot + "/transit-routers":        "configs interfaces",
		api.FabricRoot + "/routers":                    "configs interfaces listenerAddresses",
		api.ClientRoot + "/current-api-session":        "authQueries configTypes",
		api.ManagementRoot + "/api-sessions":           "authQueries configTypes",
		api.ManagementRoot + "/current-api-session":    "authQueries configTypes",
	} {
		data := admin.Get(path).Want(200).JSON.(M)["data"]
		entries, is := data.([]any)
		if !is {
			entries = []any{data}
		}
		if len(entries) == 0 {
			t.Errorf("%s has nothing to look at", path)
		}
		for _, entry := range entries {
			for list := range strings.FieldsSeq(lists) {
				if _, is := entry.(M)[list].([]any); !is {
					t.Errorf("%s: %s is %v", path, list, entry.(M)[list])
				}
			}
		}
	}
}
