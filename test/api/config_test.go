package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

func TestConfigTypeSchemas(t *testing.T) {
	c := shared.Admin(t)
	for _, bad := range []M{
		{"type": "string"},
		{"type": "nonsense"},
		{"type": "object", "properties": M{"a": M{"type": 7}}},
		{"type": "object", "properties": []any{}},
		{"type": "object", "properties": M{"a": M{"pattern": "("}}},
		{"type": "object", "properties": M{"a": M{"$ref": "#/definitions/none"}}},
		{"type": "object", "properties": M{"a": M{"$ref": "https://example.org/schema.json"}}},
		{"type": "object", "properties": M{"a": M{"$ref": "file:///etc/passwd"}}},
	} {
		c.Post("config-types", M{"name": servertest.Unique("type"), "schema": bad}).Fails(400, "COULD_NOT_VALIDATE", "schema")
	}
	c.Post("config-types", M{"name": "all"}).Fails(400, "COULD_NOT_VALIDATE", "name")
}

// TestConfigTypeKeepsItsConfigs refuses a schema that existing configs break.
func TestConfigTypeKeepsItsConfigs(t *testing.T) {
	c := shared.Admin(t)
	typ := create(t, c, "config-types", nil)
	create(t, c, "configs", M{"configTypeId": typ, "data": M{"port": 80}})
	c.Patch("config-types/"+typ, M{"schema": M{"type": "object", "required": []any{"host"}}}).
		Fails(400, "COULD_NOT_VALIDATE", "schema")
	c.Patch("config-types/"+typ, M{"schema": M{"type": "object", "required": []any{"port"}}}).Want(200)
	c.Put("config-types/"+typ, M{"name": servertest.Unique("type")}).Want(200)
	if diff := cmp.Diff(M{}, c.Get("config-types/"+typ).At("data.schema")); diff != "" {
		t.Errorf("a replace without schema left one (-want +got):\n%s", diff)
	}
}

func TestConfigTypeInUse(t *testing.T) {
	c := shared.Admin(t)
	typ := create(t, c, "config-types", nil)
	config := create(t, c, "configs", M{"configTypeId": typ})
	a := c.Delete("config-types/"+typ).Fails(409, "CAN_NOT_DELETE_REFERENCED_ENTITY", "configTypeId")
	if value, _ := a.At("error.cause.value").(string); !strings.Contains(value, config) {
		t.Errorf("the error does not name the config %s: %s", config, a.Raw)
	}
	c.Delete("configs/" + config).Want(200)
	c.Delete("config-types/" + typ).Want(200)
}

func TestConfigData(t *testing.T) {
	c := shared.Admin(t)
	typ := create(t, c, "config-types", M{"schema": M{
		"type": "object", "required": []any{"host"}, "additionalProperties": false,
		"properties": M{
			"host":  M{"type": "string", "minLength": 1},
			"ports": M{"type": "array", "items": M{"type": "integer", "maximum": 65535}},
		},
	}})
	id := create(t, c, "configs", M{"configTypeId": typ, "data": M{"host": "a"}})
	for _, test := range []struct {
		data  M
		field string
	}{
		{M{}, "(root)"},
		{M{"host": 7}, "host"},
		{M{"host": ""}, "host"},
		{M{"host": "a", "other": 1}, "(root)"},
		{M{"host": "a", "ports": M{}}, "ports"},
		{M{"host": "a", "ports": []any{1, "x"}}, "ports.1"},
		{M{"host": "a", "ports": []any{65536}}, "ports.0"},
	} {
		t.Run(fmt.Sprint(test.data), func(t *testing.T) {
			c := c.For(t)
			a := c.Post("configs", M{"name": servertest.Unique("config"), "configTypeId": typ, "data": test.data}).Want(400)
			field, _ := a.At("error.cause.field").(string)
			if a.At("error.code") != "COULD_NOT_VALIDATE" || !strings.HasSuffix(field, test.field) {
				t.Errorf("field %q, want %q: %s", field, test.field, a.Raw)
			}
			c.Put("configs/"+id, M{"name": servertest.Unique("config"), "data": test.data}).Fails(400, "COULD_NOT_VALIDATE", field)
		})
	}
	c.Patch("configs/"+id, M{"data": M{"host": "b", "ports": []any{1}}}).Want(200)
	c.Patch("configs/"+id, M{"data": M{"ports": []any{1}}}).Want(400) // replaced as a whole
	if diff := cmp.Diff(M{"host": "b", "ports": []any{1.0}}, c.Get("configs/"+id).At("data.data")); diff != "" {
		t.Errorf("data differs (-want +got):\n%s", diff)
	}
}

func TestConfigReferences(t *testing.T) {
	c := shared.Admin(t)
	c.Post("configs", M{"name": servertest.Unique("config"), "configTypeId": "nope", "data": M{}}).
		Fails(400, "COULD_NOT_VALIDATE", "type")
	typ := resourceAt("config-types").least(t, c)
	typID := c.Post("config-types", typ).Want(201).ID()
	id := create(t, c, "configs", M{"configTypeId": typID})
	got := c.Get("configs/" + id).Data()
	want := M{
		"_links": M{"self": M{"href": "./config-types/" + typID}}, "entity": "config-types", "id": typID, "name": typ["name"],
	}
	if diff := cmp.Diff(want, got["configType"]); diff != "" {
		t.Errorf("configType differs (-want +got):\n%s", diff)
	}
	c.Patch("configs/"+id, M{"configTypeId": create(t, c, "config-types", nil)}).Want(200)
	if got := c.Get("configs/" + id).At("data.configTypeId"); got != typID {
		t.Errorf("configTypeId changed to %v", got)
	}
	for _, field := range []string{"type", "configTypeId"} {
		if n := c.Get("configs?filter=" + query(`%s = "%s"`, field, typID)).Total(); n != 1 {
			t.Errorf("filter by %s finds %d, want 1", field, n)
		}
	}
}

// TestConfigDataIsKept sends what is easily lost on the way.
func TestConfigDataIsKept(t *testing.T) {
	c := shared.Admin(t)
	typ := create(t, c, "config-types", nil)
	for _, data := range []string{
		`{"big":12345678901234567890,"tiny":1e-9,"exact":0.1}`,
		`{"":"empty","dot.ted":{"a/b":"~"},"é":"☃\u0000\"\\"}`,
		`{"null":null,"list":[],"object":{},"false":false}`,
	} {
		body := fmt.Sprintf(`{"name":%q,"configTypeId":%q,"data":%s}`, servertest.Unique("config"), typ, data)
		id := c.Post("configs", servertest.Raw(body)).Want(201).ID()
		if a := c.Get("configs/" + id); !strings.Contains(string(a.Raw), `"data":`+data) {
			t.Errorf("sent %s, got %s", data, a.Raw)
		}
	}
}

// builtIn are the config types that every network has, with data that they
// accept and data that they do not.
var builtIn = []struct {
	name, id  string
	good, bad M
}{
	{
		"ziti-tunneler-client.v1", "f2dd2df0-9c04-4b84-a91e-71437ac229f1",
		M{"hostname": "example.org", "port": 80}, M{"hostname": "example.org"},
	},
	{
		"ziti-tunneler-server.v1", "cea49285-6c07-42cf-9f52-09a9b115c783",
		M{"hostname": "example.org", "port": 80, "protocol": "tcp"}, M{"hostname": "example.org", "port": 80, "protocol": "ip"},
	},
	{
		"intercept.v1", "g7cIWbcGg",
		M{"protocols": []any{"tcp"}, "addresses": []any{"*.example.org", "10.0.0.0/8"}, "portRanges": []any{M{"low": 1, "high": 2}}},
		M{"protocols": []any{"tcp"}, "addresses": []any{"example.org"}, "portRanges": []any{M{"low": 1, "high": 65536}}},
	},
	{
		"host.v1", "NH5p4FpGR",
		M{"protocol": "udp", "address": "127.0.0.1", "forwardPort": true, "allowedPortRanges": []any{M{"low": 1, "high": 2}}},
		M{"protocol": "udp", "address": "127.0.0.1"},
	},
	{
		"host.v2", "host.v2",
		M{"terminators": []any{M{"protocol": "tcp", "address": "127.0.0.1", "port": 1}}}, M{"terminators": []any{}},
	},
	{"proxy.v1", "proxy.v1", M{"port": 8080, "protocols": []any{"tcp"}, "binding": "0.0.0.0"}, M{"port": 0, "protocols": []any{"tcp"}}},
	{"interfaces.v1", "interfaces.v1", M{"interfaces": []any{"eth0"}}, M{"interfaces": "eth0"}},
	{"host-interfaces.v1", "host-interfaces.v1", M{"interfaces": []any{"eth0"}}, M{}},
}

func TestBuiltInConfigTypes(t *testing.T) {
	c := shared.Admin(t)
	for _, b := range builtIn {
		t.Run(b.name, func(t *testing.T) {
			c := c.For(t)
			got := c.Get("config-types/" + b.id).Want(200).Data()
			if got["name"] != b.name {
				t.Errorf("name is %v", got["name"])
			}
			create(t, c, "configs", M{"configTypeId": b.id, "data": b.good})
			a := c.Post("configs", M{"name": servertest.Unique("config"), "configTypeId": b.id, "data": b.bad}).Want(400)
			if a.At("error.code") != "COULD_NOT_VALIDATE" || a.At("error.cause.field") == nil {
				t.Errorf("the error names no field: %s", a.Raw)
			}
		})
	}
}
