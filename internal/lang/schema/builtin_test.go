package schema

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// builtin compiles the built-in type of a name.
func builtin(t testing.TB, name string) *Schema {
	t.Helper()
	for _, typ := range BuiltIn() {
		if typ.Name == name {
			s, err := Compile("schema", typ.Schema)
			if err != nil {
				t.Fatalf("Compile(%s): %v", name, err)
			}
			return s
		}
	}
	t.Fatalf("no built-in type %s", name)
	return nil
}

func TestBuiltInNames(t *testing.T) {
	got := make(map[string]string)
	for _, typ := range BuiltIn() {
		got[typ.Name] = typ.ID
	}
	want := map[string]string{
		"ziti-tunneler-client.v1": "f2dd2df0-9c04-4b84-a91e-71437ac229f1",
		"ziti-tunneler-server.v1": "cea49285-6c07-42cf-9f52-09a9b115c783",
		"intercept.v1":            "g7cIWbcGg",
		"host.v1":                 "NH5p4FpGR",
		"host.v2":                 "host.v2",
		"proxy.v1":                "proxy.v1",
		"interfaces.v1":           "interfaces.v1",
		"host-interfaces.v1":      "host-interfaces.v1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("built-in types (-want +got):\n%s", diff)
	}
	files, err := fs.Glob(documents, "builtin/*.json")
	if err != nil || len(files) != len(want)+1 {
		t.Errorf("embedded documents = %v, %v", files, err)
	}
}

func TestBuiltInDocuments(t *testing.T) {
	for _, typ := range BuiltIn() {
		builtin(t, typ.Name)
		text, err := json.Marshal(typ.Schema)
		if err != nil {
			t.Fatal(err)
		}
		// Each definition is in use, and each reference has its definition.
		definitions, _ := typ.Schema["definitions"].(map[string]any)
		for name, definition := range definitions {
			if definition == nil || !strings.Contains(string(text), `"#/definitions/`+name+`"`) {
				t.Errorf("%s: definition %s is empty or unused", typ.Name, name)
			}
		}
		// The caller owns the document.
		clear(definitions)
		clear(typ.Schema)
	}
	for _, typ := range BuiltIn() {
		builtin(t, typ.Name)
	}
}

// edit is a change to an acceptable document and what becomes of it.
type edit struct {
	set   string // a JSON object whose members replace those of the document
	unset string // a member to take away
	field string // of the violation; empty when the document stays acceptable
}

// try applies edits one at a time. at leads from the data to the document
// that they change.
func try(t *testing.T, s *Schema, base string, at []string, wrap func(doc map[string]any) map[string]any, edits []edit) {
	t.Helper()
	for _, e := range edits {
		doc := object(t, base)
		if e.set != "" {
			maps.Copy(doc, object(t, e.set))
		}
		delete(doc, e.unset)
		data := doc
		if wrap != nil {
			data = wrap(doc)
		}
		err := s.Accepts("data", data)
		name := fmt.Sprintf("set %s unset %q", e.set, e.unset)
		if e.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		want := strings.Join(append(slices.Clone(at), e.field), ".")
		if e.field == "(root)" && len(at) > 0 {
			want = strings.Join(at, ".")
		}
		if err == nil {
			t.Errorf("%s: accepted, want a violation at %s", name, want)
		} else if f := invalid(t, err); f.Field != want {
			t.Errorf("%s: %v, want a violation at %s", name, f, want)
		}
	}
}

// ports are edits of a member that is a port.
func ports(member string) []edit {
	set := func(v string) string { return fmt.Sprintf(`{%q: %s}`, member, v) }
	return []edit{
		{set: set("0")}, {set: set("65535")}, {set: set("80.0")},
		{set: set("-1"), field: member}, {set: set("65536"), field: member}, {set: set("80.5"), field: member},
		{set: set(`"80"`), field: member}, {set: set("null"), field: member}, {set: set("[80]"), field: member},
	}
}

// portRanges are edits of a member that lists ranges of ports.
func portRanges(member string) []edit {
	set := func(v string) string { return fmt.Sprintf(`{%q: %s}`, member, v) }
	in := func(path string) string { return member + "." + path }
	return []edit{
		{set: set(`[{"low": 0, "high": 65535}, {"low": 80, "high": 80}]`)},
		{set: set(`[]`), field: member},
		{set: set(`{"low": 1, "high": 2}`), field: member},
		{set: set(`[{"low": 1, "high": 2}, {"high": 2, "low": 1.0}]`), field: member},
		{set: set(`[80]`), field: in("0")},
		{set: set(`[{"low": 1}]`), field: in("0")},
		{set: set(`[{"high": 1}]`), field: in("0")},
		{set: set(`[{"low": 1, "high": 2, "mid": 1}]`), field: in("0")},
		{set: set(`[{"low": 1, "high": 2}, {"low": -1, "high": 2}]`), field: in("1.low")},
		{set: set(`[{"low": 1, "high": 65536}]`), field: in("0.high")},
		{set: set(`[{"low": "1", "high": 2}]`), field: in("0.low")},
	}
}

// protocols are edits of a member that lists protocols.
func protocols(member string) []edit {
	set := func(v string) string { return fmt.Sprintf(`{%q: %s}`, member, v) }
	return []edit{
		{set: set(`["tcp"]`)}, {set: set(`["udp"]`)}, {set: set(`["udp", "tcp"]`)},
		{set: set(`[]`), field: member},
		{set: set(`"tcp"`), field: member},
		{set: set(`["tcp", "tcp"]`), field: member},
		{set: set(`["tcp", "sctp"]`), field: member + ".1"},
		{set: set(`["TCP"]`), field: member + ".0"},
		{set: set(`[null]`), field: member + ".0"},
	}
}

var (
	goodHosts = []string{
		"10.0.0.1", "255.255.255.255", "::", "2001:db8::1", "localhost", "example.com", "example.com.", "a.b-c.d1",
		"my_service.internal", "3com.com", "münchen.example", "例え.テスト", strings.Repeat("a", 63) + ".example",
	}
	badHosts = []string{
		"", " ", "a b", "a..b", ".", ".a", "-a.example", "a-.example", "a.-b", "a.b-", "http://a", "a/b", "a:80", "a,b", "a@b",
		"1.2.3", "1.2.3.256", "10.0.0.1.5", "12", "1.2.3.4.", ":::", "fe80::1%eth0", "[::1]",
		strings.Repeat("a", 64) + ".example", strings.Repeat("abcdefg.", 32) + "example", "a\n",
	}
	goodBlocks = []string{
		"*", "$src", "$src_ip", "*.example.com", "*.com", "*.my_domain.internal", "*.bücher.example", "0.0.0.0/0", "10.0.0.0/8", "10.0.0.1/16", "192.168.1.1/32",
		"::/0", "2001:db8::/32", "fe80::1/128",
	}
	badBlocks = []string{
		"*.", "**.example.com", "a.*.example.com", "*example.com", "example.*", "*.*.com", "*.-a", "*.10", "10.0.0.0/33", "10.0.0.0/-1",
		"10.0.0/8", "10.0.0.0/", "/8", "::/129", "example.com/8", "10.0.0.0/255.0.0.0",
	}
)

// addresses are edits of a member that lists addresses.
func addresses(member string) []edit {
	set := func(v any) string { return compact(map[string]any{member: v}) }
	edits := []edit{
		{set: set([]string{}), field: member},
		{set: set("10.0.0.1"), field: member},
		{set: set([]string{"a.example", "a.example"}), field: member},
		{set: set([]int{1}), field: member + ".0"},
		{set: set([]string{"a.example", ""}), field: member + ".1"},
		{set: set(goodHosts)},
		{set: set(goodBlocks)},
	}
	for _, bad := range slices.Concat(badHosts, badBlocks) {
		edits = append(edits, edit{set: set([]string{bad}), field: member + ".0"})
	}
	return edits
}

// whole are edits of the members of a document of any type.
func whole(required ...string) []edit {
	edits := []edit{{}, {set: `{"other": 1}`, field: "(root)"}}
	for _, member := range required {
		edits = append(edits, edit{unset: member, field: "(root)"})
	}
	return edits
}

func TestTunnelerClient(t *testing.T) {
	try(t, builtin(t, "ziti-tunneler-client.v1"), `{"hostname": "a.example", "port": 80}`, nil, nil, slices.Concat(
		whole("hostname", "port"),
		ports("port"),
		[]edit{
			{set: `{"hostname": 5}`, field: "hostname"},
			{set: `{"hostname": null}`, field: "hostname"},
			{set: `{"protocol": "tcp"}`, field: "(root)"},
		},
	))
}

func TestTunnelerServer(t *testing.T) {
	s := builtin(t, "ziti-tunneler-server.v1")
	base := `{"hostname": "a.example", "port": 80}`
	try(t, s, base, nil, nil, slices.Concat(
		whole("hostname", "port"),
		ports("port"),
		[]edit{
			{set: `{"hostname": 5}`, field: "hostname"},
			{set: `{"protocol": "tcp"}`},
			{set: `{"protocol": "udp"}`},
			{set: `{"protocol": null}`},
			{set: `{"protocol": "sctp"}`, field: "protocol"},
			{set: `{"protocol": 6}`, field: "protocol"},
		},
	))
	checks(t, s, base, nil, nil)
}

func TestIntercept(t *testing.T) {
	base := `{"protocols": ["tcp"], "addresses": ["a.example"], "portRanges": [{"low": 80, "high": 90}]}`
	try(t, builtin(t, "intercept.v1"), base, nil, nil, slices.Concat(
		whole("protocols", "addresses", "portRanges"),
		protocols("protocols"),
		addresses("addresses"),
		portRanges("portRanges"),
		addresses("allowedSourceAddresses"),
		[]edit{
			{set: `{"dialOptions": {}}`},
			{set: `{"dialOptions": {"identity": "$dst_hostname", "connectTimeoutSeconds": 10}}`},
			{set: `{"dialOptions": null}`, field: "dialOptions"},
			{set: `{"dialOptions": {"other": 1}}`, field: "dialOptions"},
			{set: `{"dialOptions": {"identity": 1}}`, field: "dialOptions.identity"},
			{set: `{"dialOptions": {"connectTimeoutSeconds": -1}}`, field: "dialOptions.connectTimeoutSeconds"},
			{set: `{"dialOptions": {"connectTimeoutSeconds": "10s"}}`, field: "dialOptions.connectTimeoutSeconds"},
			{set: `{"dialOptions": {"connectTimeoutSeconds": 1.5}}`, field: "dialOptions.connectTimeoutSeconds"},
			{set: `{"dialOptions": {"connectTimeoutSeconds": 2147483648}}`, field: "dialOptions.connectTimeoutSeconds"},
			{set: `{"sourceIp": "$src_ip:$src_port"}`},
			{set: `{"sourceIp": 5}`, field: "sourceIp"},
		},
	))
}

func TestHost(t *testing.T) {
	tests := []struct {
		typ  string
		at   []string
		wrap func(doc map[string]any) map[string]any
	}{
		{"host.v1", nil, nil},
		{"host.v2", []string{"terminators", "1"}, func(doc map[string]any) map[string]any {
			good := map[string]any{"protocol": "udp", "address": "::1", "port": 53}
			return map[string]any{"terminators": []any{good, doc, good}}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.typ, func(t *testing.T) {
			s := builtin(t, tt.typ)
			fixed := `{"protocol": "tcp", "address": "a.example", "port": 80}`
			forwarding := `{
				"forwardProtocol": true, "allowedProtocols": ["tcp"],
				"forwardAddress": true, "allowedAddresses": ["10.0.0.0/8"],
				"forwardPort": true, "allowedPortRanges": [{"low": 80, "high": 90}]
			}`
			try(t, s, fixed, tt.at, tt.wrap, slices.Concat(whole("protocol", "address", "port"), ports("port"), fixedEdits()))
			try(t, s, forwarding, tt.at, tt.wrap, slices.Concat(
				whole(
					"forwardProtocol", "allowedProtocols",
					"forwardAddress", "allowedAddresses",
					"forwardPort", "allowedPortRanges",
				),
				protocols("allowedProtocols"),
				addresses("allowedAddresses"),
				portRanges("allowedPortRanges"),
				addresses("allowedSourceAddresses"),
			))
			try(t, s, fixed, tt.at, tt.wrap, eitherOr())
			try(t, s, fixed, tt.at, tt.wrap, listenOptions())
			checks(t, s, fixed, tt.at, tt.wrap)
		})
	}
}

// fixedEdits are edits of the protocol and address of a fixed endpoint.
func fixedEdits() []edit {
	edits := []edit{
		{set: `{"protocol": "udp"}`},
		{set: `{"protocol": "sctp"}`, field: "protocol"},
		{set: `{"protocol": null}`, field: "protocol"},
		{set: `{"protocol": ["tcp"]}`, field: "protocol"},
		{set: `{"address": 5}`, field: "address"},
	}
	for _, good := range goodHosts {
		edits = append(edits, edit{set: compact(map[string]any{"address": good})})
	}
	for _, bad := range slices.Concat(badHosts, goodBlocks, badBlocks) {
		edits = append(edits, edit{set: compact(map[string]any{"address": bad}), field: "address"})
	}
	return edits
}

// eitherOr are edits of a fixed endpoint towards forwarding. Each aspect is
// free to differ from the others.
func eitherOr() []edit {
	var edits []edit
	for _, aspect := range []struct{ fixed, forward, allowed, some string }{
		{"protocol", "forwardProtocol", "allowedProtocols", `["tcp"]`},
		{"address", "forwardAddress", "allowedAddresses", `["*.example.com"]`},
		{"port", "forwardPort", "allowedPortRanges", `[{"low": 1, "high": 2}]`},
	} {
		forward := fmt.Sprintf(`{%q: true}`, aspect.forward)
		allowed := fmt.Sprintf(`{%q: %s}`, aspect.allowed, aspect.some)
		both := fmt.Sprintf(`{%q: true, %q: %s}`, aspect.forward, aspect.allowed, aspect.some)
		edits = append(edits,
			edit{set: both, unset: aspect.fixed},
			edit{set: both}, // forwarding wins over what is fixed
			edit{set: allowed},
			edit{set: forward, field: "(root)"},
			edit{set: forward, unset: aspect.fixed, field: "(root)"},
			edit{set: allowed, unset: aspect.fixed, field: "(root)"},
			edit{set: fmt.Sprintf(`{%q: false}`, aspect.forward), field: aspect.forward},
			edit{set: fmt.Sprintf(`{%q: "true"}`, aspect.forward), field: aspect.forward},
			edit{set: fmt.Sprintf(`{%q: false, %q: %s}`, aspect.forward, aspect.allowed, aspect.some), unset: aspect.fixed, field: "(root)"},
		)
	}
	return edits
}

func listenOptions() []edit {
	set := func(options string) string { return `{"listenOptions": ` + options + `}` }
	return []edit{
		{set: set(`{}`)},
		{set: set(`{"connectTimeoutSeconds": 5, "maxConnections": 1, "identity": "a", "bindUsingEdgeIdentity": true, "cost": 0, "precedence": "default"}`)},
		{set: set(`{"cost": 65535, "precedence": "required"}`)},
		{set: set(`{"connectTimeout": "5s", "connectTimeoutSeconds": 7}`)},
		{set: set(`{"connectTimeout": 5}`), field: "listenOptions.connectTimeout"},
		{set: set(`{"connectTimeout": "soon"}`), field: "listenOptions.connectTimeout"},
		{set: set(`{"precedence": "failed"}`)},
		{set: set(`[]`), field: "listenOptions"},
		{set: set(`{"other": 1}`), field: "listenOptions"},
		{set: set(`{"connectTimeoutSeconds": -1}`), field: "listenOptions.connectTimeoutSeconds"},
		{set: set(`{"maxConnections": 0}`), field: "listenOptions.maxConnections"},
		{set: set(`{"maxConnections": 1.5}`), field: "listenOptions.maxConnections"},
		{set: set(`{"identity": 1}`), field: "listenOptions.identity"},
		{set: set(`{"bindUsingEdgeIdentity": "yes"}`), field: "listenOptions.bindUsingEdgeIdentity"},
		{set: set(`{"cost": -1}`), field: "listenOptions.cost"},
		{set: set(`{"cost": 65536}`), field: "listenOptions.cost"},
		{set: set(`{"precedence": "high"}`), field: "listenOptions.precedence"},
		{set: set(`{"precedence": null}`), field: "listenOptions.precedence"},
	}
}

// TestHostWays is about ways to a server that are not direct.
func TestHostWays(t *testing.T) {
	base := `{"protocol": "tcp", "forwardAddress": true, "allowedAddresses": ["10.0.0.0/8"], "port": 80}`
	try(t, builtin(t, "host.v1"), base, nil, nil, []edit{
		{set: `{"proxy": {"type": "http", "address": "proxy.example:3128", "more": 1}}`},
		{set: `{"proxy": {"type": "socks", "address": "proxy.example:3128"}}`, field: "proxy.type"},
		{set: `{"proxy": {"type": "http"}}`, field: "proxy"},
		{set: `{"proxy": "proxy.example:3128"}`, field: "proxy"},
		{set: `{"forwardAddressTranslations": [{"from": "10.0.0.0", "to": "192.168.0.0", "prefixLength": 16}, {"from": "2001:db8::", "to": "fd00::", "prefixLength": 128}]}`},
		{set: `{"forwardAddressTranslations": []}`, field: "forwardAddressTranslations"},
		{set: `{"forwardAddressTranslations": [1]}`, field: "forwardAddressTranslations.0"},
	})
}

// TestSuperseded holds the present schemas of the built-in types. Where one
// changes, what it was goes to the list of those that a start replaces.
func TestSuperseded(t *testing.T) {
	present := map[string]string{
		"ziti-tunneler-client.v1": "ecf458a2d652687f9573e49776a89dee4e3ca390c8b98ca205ccf58299609c2d",
		"ziti-tunneler-server.v1": "419b10f03ccb69380d9dbec7847cf2bd8a9ea292039c95313fed4c9ab6c3048f",
		"intercept.v1":            "0dc322be0fbc4962a59e6523fcd935c4c8c57490beff90be9cce81f2b2aab1c9",
		"host.v1":                 "4c73af02f0e610f77ff54f8e61677c5dd2841220e24ee7a8eb78fef3b2726032",
		"host.v2":                 "03367e74fa3715339026d26ab4bec83f0ab22d5f43b574cf85b60f20c97686c4",
		"proxy.v1":                "e09f11204aa6311acf0c4907b00b1d57ec2ee264ce781e6cbd31a13030b2e5c5",
		"interfaces.v1":           "61d5588dd3e8496f47af7b48f46c98b95a7e2a12e90e691ce715795dadb6f140",
		"host-interfaces.v1":      "086bac6700b7a8354f75f6e1b75b30f3c2c9b55bc83e5e3b6cc515e7d222a84e",
	}
	for _, typ := range BuiltIn() {
		if got := digest(typ.Schema); got != present[typ.Name] {
			t.Errorf("%s has the digest %s, and had %s: note that as superseded", typ.Name, got, present[typ.Name])
		}
		if Superseded(typ.Schema) {
			t.Errorf("%s replaces itself", typ.Name)
		}
	}
}

func TestHostV2(t *testing.T) {
	try(t, builtin(t, "host.v2"), `{"terminators": [{"protocol": "tcp", "address": "a.example", "port": 80}]}`, nil, nil, slices.Concat(
		whole("terminators"),
		[]edit{
			{set: `{"terminators": []}`, field: "terminators"},
			{set: `{"terminators": {}}`, field: "terminators"},
			{set: `{"terminators": [{}]}`, field: "terminators.0"},
			{set: `{"terminators": [5]}`, field: "terminators.0"},
		},
	))
}

// TestBuiltInReasons holds a few answers as their readers see them.
func TestBuiltInReasons(t *testing.T) {
	tests := []struct{ typ, data, want string }{
		{"intercept.v1", `{"addresses": ["a"], "protocols": ["tcp"]}`, `(root) must have "portRanges"`},
		{"intercept.v1", `{"addresses": ["a/b"], "protocols": ["tcp"], "portRanges": [{"low": 1, "high": 2}]}`,
			"addresses.0 must be an IP address, a host name, a wildcard domain such as *.example.com, * alone, or a CIDR block such as 10.0.0.0/8"},
		{"intercept.v1", `{"addresses": ["a"], "protocols": ["tcp"], "portRanges": [{"low": 1, "high": 70000}]}`, "portRanges.0.high must be at most 65535"},
		{"host.v1", `{"protocol": "tls", "address": "a", "port": 1}`, `protocol must be one of "tcp", "udp"`},
		{"host.v1", `{"protocol": "tcp", "address": "a b", "port": 1}`, "address must be an IP address or a host name"},
		{"host.v1", `{"protocol": "tcp", "address": "a", "forwardPort": true}`, `(root) must have "allowedPortRanges"`},
		{"host.v1", `{"protocol": "tcp", "address": "a", "forwardPort": false, "port": 1}`, "forwardPort must be true"},
		{"host.v1", `{"protocol": "tcp", "address": "a", "port": 1, "portChecks": [{"address": "a:1", "interval": "5", "timeout": "1s"}]}`,
			"portChecks.0.interval must be a duration such as 500ms, 30s, 5m or 1h"},
	}
	for _, tt := range tests {
		if f := invalid(t, builtin(t, tt.typ).Accepts("data", object(t, tt.data))); f.Error() != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.data, f, tt.want)
		}
	}
}
