package api_test

import (
	"fmt"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// TestBatchBodies holds bodies that are lists to the rules for bodies.
func TestBatchBodies(t *testing.T) {
	c := shared.Admin(t)
	configs := "identities/" + create(t, c, "identities", nil) + "/service-configs"
	for path, item := range map[string]string{
		configs:                                 `"serviceId":"x","configId":"y"`,
		"/edge/client/v1/posture-response-bulk": `"id":"x","typeId":"DOMAIN","domain":"y"`,
	} {
		list := servertest.Raw("[{" + item + "}]")
		for _, bad := range []string{"text/plain", "application/xml", "json", ";;"} {
			c.With("Content-Type", bad).Post(path, list).Fails(400, "COULD_NOT_VALIDATE", "Content-Type")
		}
		c.With("Content-Type").Post(path, list).Fails(400, "COULD_NOT_VALIDATE", "Content-Type")
		deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
		c.Post(path, servertest.Raw(fmt.Sprintf(`[{%s,"unheardOf":%s}]`, item, deep))).Fails(400, "COULD_NOT_PARSE_BODY", "")
		for _, bad := range []string{"{}", "null", "[1]", "[null]", "[", `[{"a":1,"a":2}]`} {
			c.Post(path, servertest.Raw(bad)).Fails(400, "COULD_NOT_PARSE_BODY", "")
		}
		c.Post(path, nil).Fails(400, "COULD_NOT_VALIDATE", "body")
	}
	c.Do("DELETE", configs, nil).Want(200) // all of them, which are none
	c.With("Content-Type", "text/plain").Do("DELETE", configs, servertest.Raw("[]")).Fails(400, "COULD_NOT_VALIDATE", "Content-Type")
}

// TestSwagger asks for the documents where tools look for them.
func TestSwagger(t *testing.T) {
	c := shared.Nobody(t)
	for root, id := range map[string]string{"/edge/client/v1": "edge-client", "/edge/management/v1": "edge-management"} {
		a := c.Get(root + "/swagger.json").Want(200)
		if got := a.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: content type %s", root, got)
		}
		if string(a.Raw) != string(served(t, id, "application/json").Raw) {
			t.Errorf("%s: the document is not that of %s", root, id)
		}
	}
}
