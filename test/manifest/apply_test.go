package manifest_test

import (
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/tool/manifest"
	"netkeep.internal/test/servertest"
)

const office = `
services:
  - name: wiki
    roleAttributes: [office]
    configs: [wiki host, wiki intercept]
configs:
  - name: wiki host
    configTypeId: host.v1
    data: {protocol: tcp, address: 127.0.0.1, port: 8080}
  - name: wiki intercept
    configTypeId: intercept.v1
    data: {protocols: [tcp], addresses: [wiki.example], portRanges: [{low: 80, high: 80}]}
identities:
  - name: alice
    type: User
    roleAttributes: [staff]
    serviceHostingCosts: {wiki: 7}
service-policies:
  - name: staff dials office
    type: Dial
    identityRoles: ["#staff", "@alice"]
    serviceRoles: ["@wiki"]
`

func TestApply(t *testing.T) {
	c := newController(t, servertest.Start(t))
	p := c.apply(t, office, manifest.Options{})
	if len(p.Changes) != 5 {
		t.Fatalf("%d changes: %v", len(p.Changes), p.Changes)
	}
	if p := c.apply(t, office, manifest.Options{Prune: true}); len(p.Changes) != 0 {
		t.Errorf("the same files change %v", p.Changes)
	}
	if p := c.apply(t, c.text(t), manifest.Options{Prune: true}); len(p.Changes) != 0 {
		t.Errorf("the export changes %v", p.Changes)
	}
}

// TestExport writes a directory that is the same again when nothing changed,
// and that follows what did.
func TestExport(t *testing.T) {
	c := newController(t, servertest.Start(t))
	c.apply(t, office, manifest.Options{})
	dir := filepath.Join(t.TempDir(), "net")
	export := func() map[string]string {
		t.Helper()
		paths, err := manifest.Export(t.Context(), c, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(path)] = string(text)
		}
		return all
	}
	first := export()
	want := "services:\n  - name: wiki\n    roleAttributes: [office]\n    configs: [wiki host, wiki intercept]\n"
	if len(first) != 4 || first["services.yaml"] != want {
		t.Errorf("exported %v", first)
	}
	if diff := cmp.Diff(first, export()); diff != "" {
		t.Errorf("the second export differs:\n%s", diff)
	}
	files, err := manifest.Read([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := manifest.Compare(files, c.load(t), manifest.Options{Prune: true}); err != nil || len(p.Changes) != 0 {
		t.Errorf("what was exported changes %v, %v", p, err)
	}
	c.apply(t, "", manifest.Options{Prune: true})
	if got := export()["services.yaml"]; got != "services: []\n" {
		t.Errorf("without services there is %q", got)
	}
}

// ops are the changes of a plan, each in short.
func ops(p *manifest.Plan) string {
	var all []string
	for _, c := range p.Changes {
		fields := slices.Sorted(maps.Keys(c.Body))
		if c.Op == manifest.Create || c.Op == manifest.Update {
			fields = []string{string(c.Body["name"])}
		}
		all = append(all, strings.TrimSpace(c.Op+" "+c.Kind+" "+strings.Join(fields, ",")))
	}
	return strings.Join(all, "; ")
}

// TestDifferences looks at what is sent: exactly what differs.
func TestDifferences(t *testing.T) {
	c := newController(t, servertest.Start(t))
	c.apply(t, office, manifest.Options{})
	edit := func(from, to string) string {
		t.Helper()
		if !strings.Contains(office, from) {
			t.Fatalf("there is no %q", from)
		}
		return strings.Replace(office, from, to, 1)
	}
	for name, test := range map[string]struct{ text, want string }{
		"one field":         {edit("[staff]", "[staff, boss]"), "patch identity roleAttributes"},
		"two fields":        {edit("[staff]", "[]\n    defaultHostingCost: 3"), "patch identity defaultHostingCost,roleAttributes"},
		"an emptied object": {edit("serviceHostingCosts: {wiki: 7}", "tags: {}"), `update identity "alice"`},
		"by id":             {edit("configs: [wiki host", "configs: ["+idOf(c, "configs", "wiki host")), ""},
		"by both":           {edit("configs: [wiki host", "configs: ['"+idOf(c, "configs", "wiki host")+"', wiki host, wiki host"), ""},
		"a role by both":    {edit(`["#staff", "@alice"]`, `["#staff", "@alice", "@`+idOf(c, "identities", "alice")+`", "@alice"]`), ""},
		"another order":     {edit(`["#staff", "@alice"]`, `["@alice", "#staff"]`), ""},
		"what goes without": {edit("type: Dial", "type: Dial\n    semantic: AnyOf\n    postureCheckRoles: []"), ""},
		"its own default":   {edit("type: User", "type: User\n    authPolicyId: Default"), ""},
		"a synonym":         {edit("type: User", "type: Default"), "patch identity type"},
		"a new one":         {office + "  - {name: second, type: Bind}\n", `create service-policy "second"`},
		"not there":         {strings.Split(office, "service-policies")[0], ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := c.plan(t, test.text, manifest.Options{})
			if err != nil || ops(p) != test.want {
				t.Errorf("the changes are %q, %v; want %q", ops(p), err, test.want)
			}
		})
	}
	if p, err := c.plan(t, strings.Split(office, "service-policies")[0], manifest.Options{Prune: true}); err != nil || ops(p) != "delete service-policy" {
		t.Errorf("the changes are %q, %v", ops(p), err)
	}
}

func idOf(c controller, path, name string) string {
	return c.Get(path + "?filter=" + url.QueryEscape(`name="`+name+`"`)).List()[0]["id"].(string)
}

// TestReplaced changes what cannot be changed: the record is made anew, that is
// said, and what referred to it refers to the new one.
func TestReplaced(t *testing.T) {
	c := newController(t, servertest.Start(t))
	more := office + `
service-configs:
  - {identityId: alice, serviceId: wiki, configId: wiki host}
posture-checks:
  - {name: code, typeId: MFA}
`
	c.apply(t, more, manifest.Options{})
	want := strings.Replace(c.text(t), "  - name: wiki\n", "  - name: wiki\n    encryptionRequired: false\n", 1)
	p := c.apply(t, want, manifest.Options{Prune: true})
	if len(p.Replaced) != 1 || p.Replaced[0] != `service "wiki" is deleted and made again, since its encryptionRequired cannot be changed` {
		t.Errorf("said %q", p.Replaced)
	}
	if diff := cmp.Diff(want, c.text(t)); diff != "" {
		t.Errorf("the network differs (-want +got):\n%s", diff)
	}
	// Files that speak of nothing else leave nothing else undone.
	want = strings.Replace(want, "    encryptionRequired: false\n", "", 1)
	c.apply(t, "services:\n  - name: wiki\n    roleAttributes: [office]\n    configs: [wiki host, wiki intercept]\n", manifest.Options{})
	if diff := cmp.Diff(want, c.text(t)); diff != "" {
		t.Errorf("the network differs (-want +got):\n%s", diff)
	}
	want = strings.Replace(want, "typeId: MFA\n    timeoutSeconds: -1\n", "typeId: DOMAIN\n    domains: [corp]\n", 1)
	if p := c.apply(t, want, manifest.Options{}); len(p.Replaced) != 1 || !strings.Contains(p.Replaced[0], "typeId") {
		t.Errorf("said %q", p.Replaced)
	}
	if p, err := c.plan(t, want, manifest.Options{Prune: true}); err != nil || len(p.Changes) != 0 {
		t.Errorf("still %q, %v", ops(p), err)
	}
}

// TestLabels lets two teams look after parts of one network.
func TestLabels(t *testing.T) {
	c := newController(t, servertest.Start(t))
	web := manifest.Options{Prune: true, Label: &manifest.Label{Name: "team", Value: "web"}}
	ops := manifest.Options{Prune: true, Label: &manifest.Label{Name: "team", Value: "ops"}}
	c.apply(t, "services: [{name: loose}]", manifest.Options{})
	c.apply(t, "services: [{name: a}, {name: b}]\nidentities: [{name: w}]\nconfig-types: [{name: t}]\nconfigs: [{name: c, configTypeId: t, data: {}}]\n"+
		"service-configs: [{identityId: w, serviceId: a, configId: c}]", web)
	c.apply(t, "services: [{name: x}]\nservice-policies: [{name: p, type: Dial, serviceRoles: ['@x', '@a', '@loose']}]", ops)
	if n := c.Get("services").Total(); n != 4 {
		t.Fatalf("%d services", n)
	}
	export, err := c.load(t).Encode(ops.Label)
	if want := "services:\n  - name: x\nservice-policies:\n  - name: p\n    type: Dial\n    serviceRoles: [\"@a\", \"@loose\", \"@x\"]\n"; err != nil || string(export) != want {
		t.Errorf("the export of ops is %v\n%s", err, export)
	}
	// Each prunes its own.
	c.apply(t, "services: [{name: a}]", web)
	if n := c.Get("services").Total(); n != 3 {
		t.Errorf("%d services", n)
	}
	if left := c.Get("identities").Total(); left != 1 {
		t.Errorf("%d identities", left)
	}
	_, err = c.plan(t, "services:\n- name: a\n- name: loose", web)
	wantMistake(t, err, `standard input:3:9: there is a service "loose" that does not have the label team=web: choose another name, or give --adopt to take it over`)
	_, err = c.plan(t, "services: [{name: x}]", web)
	wantMistake(t, err, "--adopt")
	_, err = c.plan(t, "services: [{name: a, tags: {team: ops}}]", web)
	wantMistake(t, err, "the tag team is the label of these files")
	adopt := web
	adopt.Adopt = true
	c.apply(t, "services: [{name: a}, {name: loose}]", adopt)
	if got := c.Get("services/" + idOf(c, "services", "loose")).At("data.tags.team"); got != "web" {
		t.Errorf("the label is %v", got)
	}
	c.apply(t, "", web)
	c.apply(t, "", ops)
	if got := c.text(t); got != "{}\n" {
		t.Errorf("left is\n%s", got)
	}
}

func wantMistake(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the mistakes are %v; want %s", err, want)
	}
}

// TestReferences refuses to refer to what is not there, and names what is near.
func TestReferences(t *testing.T) {
	c := newController(t, servertest.Start(t))
	c.apply(t, office, manifest.Options{})
	for name, test := range map[string]struct {
		text, want string
		prune      bool
	}{
		"in a list":  {text: "services:\n  - name: s\n    configs: [wikki host]", want: `standard input:3:15: service "s": configs: no config is called "wikki host", in the files or on the controller; did you mean "wiki host"?`},
		"as a role":  {text: "service-policies:\n  - {name: p, type: Dial, identityRoles: ['@alcie']}", want: `no identity is called "alcie", in the files or on the controller; did you mean "alice"?`},
		"as a key":   {text: "identities:\n  - name: i\n    serviceHostingCosts:\n      viki: 3", want: `standard input:4:7: identity "i": serviceHostingCosts: no service is called "viki"`},
		"of several": {text: "identities: [{name: i, externalIdIssuers: [nobody]}]", want: `no ca or ext jwt signer is called "nobody"`},
		"inside":     {text: "auth-policies: [{name: p, primary: {extJwt: {allowedSigners: [key]}}}]", want: `primary.extJwt.allowedSigners: no ext jwt signer is called "key"`},
		"twice":      {text: "services: [{name: wiki}]\nidentities:\n  - name: a\n    serviceHostingCosts:\n      wiki: 1\n      '" + idOf(c, "services", "wiki") + "': 2", want: `:6:7: identity "a": serviceHostingCosts: "wiki" is there twice, by its name and by its id; say once what is meant of it`},
		"pruned":     {text: "service-policies:\n  - {name: p, type: Dial, serviceRoles: ['@wiki']}", prune: true, want: `the service "wiki" would be deleted, since the files do not have it; add it to them`},
		"a router's": {text: "edge-routers: [{name: r}]\nservice-policies: [{name: p, type: Dial, identityRoles: ['@r']}]", want: `no identity is called "r"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.plan(t, test.text, manifest.Options{Prune: test.prune})
			wantMistake(t, err, test.want)
		})
	}
	c.apply(t, "edge-routers: [{name: r, isTunnelerEnabled: true}]\nservice-policies: [{name: p, type: Dial, identityRoles: ['@r']}]", manifest.Options{})
	_, err := c.plan(t, "service-policies: [{name: p, type: Dial, identityRoles: ['@r']}]", manifest.Options{Prune: true})
	wantMistake(t, err, `the identity "r" would be deleted`)
}

// TestOpenZiti applies what the command line of OpenZiti exports.
func TestOpenZiti(t *testing.T) {
	var exports []string
	for _, name := range []string{"openziti.yaml", "openziti.json"} {
		c := newController(t, servertest.Start(t))
		files, err := manifest.Read([]string{filepath.Join("testdata", name)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := manifest.Compare(files, c.load(t), manifest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if status, answer := c.post(t, p.Changes); status != 200 {
			t.Fatalf("status %d: %s", status, answer)
		}
		if notes := strings.Join(files.Notes, "\n"); !strings.Contains(notes, "an export of OpenZiti's") || !strings.Contains(notes, `left out identity "Default Admin"`) {
			t.Errorf("the notes are\n%s", notes)
		}
		exports = append(exports, c.text(t))
	}
	if exports[0] != exports[1] {
		t.Errorf("YAML and JSON differ:\n%s", cmp.Diff(exports[0], exports[1]))
	}
	for _, want := range []string{
		"  - name: alice\n    type: Default\n    authPolicyId: strict\n    externalId: alice@example\n    roleAttributes: [staff]\n    tags:\n      team: web\n",
		"  - name: wiki\n    roleAttributes: [office]\n    configs: [host, inter]\n",
		"  - name: plain\n    encryptionRequired: false\n    terminatorStrategy: weighted\n",
		"  - name: dial\n    type: Dial\n    identityRoles: [\"#staff\", \"@bob\"]\n    serviceRoles: [\"@wiki\"]\n",
		"  - name: edge-1\n    isTunnelerEnabled: true\n    roleAttributes: [public]\n",
	} {
		if !strings.Contains(exports[0], want) {
			t.Errorf("there is no\n%sin\n%s", want, exports[0])
		}
	}
}

// TestPage applies the file that the page about files shows, which is how it
// would be exported too.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "files.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	c := newController(t, servertest.Start(t))
	c.apply(t, text, manifest.Options{})
	if diff := cmp.Diff(text, c.text(t)); diff != "" {
		t.Errorf("the page differs from an export (-page +export):\n%s", diff)
	}
}
