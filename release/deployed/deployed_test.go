// Package deployed checks what deploy/ gives away by the programs and schemas that it
// is for: Helm, Kubernetes, Compose and Prometheus. It has tests alone.
package deployed

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

var deploy = filepath.Join("..", "..", "deploy")

// TestRules reads the rules as promtool does.
func TestRules(t *testing.T) {
	groups, errs := rulefmt.ParseFile(filepath.Join(deploy, "prometheus", "netkeep.rules.yml"), false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil)
	for _, err := range errs {
		t.Error(err)
	}
	rules := 0
	for _, group := range groups.Groups {
		rules += len(group.Rules)
	}
	if rules < 15 {
		t.Errorf("there are %d rules", rules)
	}
	bad, errs := rulefmt.Parse([]byte("groups: [{name: a, rules: [{alert: A, expr: 'rate(x[5m'}]}]"), false, model.UTF8Validation, parser.NewParser(parser.Options{}), nil)
	if len(errs) == 0 {
		t.Errorf("a rule that is none passes: %v", bad)
	}
}

// TestDashboard reads every expression of the dashboard.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploy, "grafana", "netkeep.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, panel := range board.Panels {
		if seen[panel.ID] {
			t.Errorf("two panels have the number %d", panel.ID)
		}
		seen[panel.ID] = true
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(target.Expr, "$job", ".+")); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("there are %d panels", len(seen))
	}
}

// TestCompose reads the file as Compose does, by its schema and its rules.
func TestCompose(t *testing.T) {
	env := []string{"NETKEEP_ADMIN_PASSWORD=secret", "JOIN_2=two", "JOIN_3=three", "ROUTER_1=one", "ROUTER_2=two"}
	load := func(env []string) (*types.Project, error) {
		opt, err := cli.NewProjectOptions([]string{filepath.Join(deploy, "compose", "compose.yaml")}, cli.WithEnv(env), cli.WithProfiles([]string{"*"}))
		if err != nil {
			return nil, err
		}
		return opt.LoadProject(t.Context())
	}
	project, err := load(env)
	if err != nil {
		t.Fatal(err)
	}
	controllers, routers := 0, 0
	for name, s := range project.Services {
		if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || s.Privileged {
			t.Errorf("%s may more than it needs", name)
		}
		if strings.Contains(strings.Split(s.Image, ":")[0], ".") {
			t.Errorf("%s names a registry: %s", name, s.Image)
		}
		switch {
		case strings.HasPrefix(name, "controller-"):
			controllers++
		case strings.HasPrefix(name, "router-"):
			routers++
		}
	}
	if controllers != 3 || routers != 2 {
		t.Errorf("there are %d controllers and %d routers", controllers, routers)
	}
	if _, err := load(nil); err == nil || !strings.Contains(err.Error(), "password of the first admin") {
		t.Errorf("it starts without a password: %v", err)
	}
}

// TestChart renders the chart for what people ask of it, and has Kubernetes read the
// outcome: by its types, in which no name may be unknown, and by its schema.
func TestChart(t *testing.T) {
	for name, c := range map[string]struct {
		values string
		want   int
	}{
		"as it is": {"{}", 3 + 2},
		"one":      {"{controllers: {count: 1}, routers: {count: 0}}", 1},
		"large": {`{controllers: {count: 5, names: [net.example.com, 10.0.0.1], storageClass: fast, env: {NETKEEP_SNAPSHOTS_EVERY: 24h}, service: {type: LoadBalancer}},
			routers: {count: 3, advertise: [a.example.com, b.example.com]}, image: {name: our/netkeep, tag: "1.2.3"}, metrics: {annotations: false}}`, 5 + 3},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(c.values)
			if err != nil {
				t.Fatal(err)
			}
			sets, names := 0, map[string]bool{}
			for path, text := range rendered {
				if !strings.HasSuffix(path, ".yaml") {
					continue
				}
				for document := range strings.SplitSeq(text, "\n---\n") {
					if strings.TrimSpace(document) == "" {
						continue
					}
					object := check(t, path, document)
					key := fmt.Sprintf("%T %s", object, object.GetName())
					if names[key] {
						t.Errorf("there are two of %s", key)
					}
					names[key] = true
					if set, is := object.(*appsv1.StatefulSet); is {
						sets++
						pod(t, set)
					}
				}
			}
			if sets != c.want {
				t.Errorf("there are %d sets, want %d", sets, c.want)
			}
		})
	}
	for _, values := range []string{"{controllers: {count: 2}}", "{contollers: {count: 3}}", "{routers: {env: {HOME: /}}}", "{image: {name: ''}}"} {
		if _, err := render(values); err == nil {
			t.Errorf("%s is taken", values)
		}
	}
}

func render(values string) (map[string]string, error) {
	loaded, err := loader.Load(filepath.Join(deploy, "helm", "netkeep"))
	if err != nil {
		return nil, err
	}
	if err := loaded.Validate(); err != nil {
		return nil, err
	}
	given, err := chartutil.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(loaded, given, chartutil.ReleaseOptions{Name: "net", Namespace: "overlay", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return strictly(loaded, all)
}

// strictly fails on a value that there is not, where a template would say nothing.
func strictly(c *chart.Chart, values chartutil.Values) (map[string]string, error) {
	return engine.Engine{Strict: true}.Render(c, values)
}

type object interface {
	runtime.Object
	metav1.Object
}

func check(t *testing.T, path, document string) object {
	t.Helper()
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &head); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, document)
	}
	into, known := map[string]object{"StatefulSet": &appsv1.StatefulSet{}, "Service": &corev1.Service{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudget{}}[head.Kind]
	if !known {
		t.Fatalf("%s: there is a %s\n%s", path, head.Kind, document)
	}
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, document)
	}
	typed, err := applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(into)
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, document)
	}
	if _, err := typed.ToFieldSet(); err != nil {
		t.Errorf("%s: %v\n%s", path, err, document)
	}
	return into
}

// pod looks at what the pods of a set may do.
func pod(t *testing.T, set *appsv1.StatefulSet) {
	t.Helper()
	spec := set.Spec.Template.Spec
	if s := spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Errorf("%s may be root, or has an account", set.Name)
	}
	for key, value := range set.Spec.Selector.MatchLabels {
		if set.Spec.Template.Labels[key] != value {
			t.Errorf("%s does not find its own pods", set.Name)
		}
	}
	for _, c := range append(spec.InitContainers, spec.Containers...) {
		if s := c.SecurityContext; s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || s.Capabilities == nil || len(s.Capabilities.Drop) != 1 {
			t.Errorf("%s of %s may more than it needs", c.Name, set.Name)
		}
		ports := map[string]bool{}
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			if probe != nil && probe.HTTPGet != nil && !ports[probe.HTTPGet.Port.StrVal] {
				t.Errorf("%s of %s is asked at a port that it does not have", c.Name, set.Name)
			}
		}
	}
}
