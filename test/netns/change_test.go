//go:build linux

package netns

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// changes is how often a service comes.
const changes = 20

// thousand is a thousand services with ten addresses each, which laptops may dial, and
// some more that they may not yet.
func thousand() string {
	var configs, services strings.Builder
	add := func(name, role string, addresses []string, port int) {
		fmt.Fprintf(&configs, "  - {name: %s, configTypeId: intercept.v1, data: {protocols: [tcp], addresses: [%s], portRanges: [{low: %d, high: %[3]d}]}}\n", name, strings.Join(addresses, ", "), port)
		fmt.Fprintf(&services, "  - {name: %s, roleAttributes: [%s], configs: [%[1]s]}\n", name, role)
	}
	for s := range 1000 {
		var addresses []string
		for a := range 10 {
			addresses = append(addresses, fmt.Sprintf("10.%d.%d.%d", 100+s/250, s%250, a))
		}
		add(fmt.Sprint("one-", s), "many", addresses, 8000+s%100)
	}
	for s := range changes {
		add(fmt.Sprint("more-", s), fmt.Sprint("more-", s), []string{fmt.Sprint("10.97.0.", s)}, 8000)
	}
	return "configs:\n" + configs.String() + "services:\n" + services.String() +
		"service-policies:\n  - {name: laptops dial, type: Dial, semantic: AnyOf, identityRoles: [\"#laptop\"], serviceRoles: [\"#many\"]}\n"
}

// BenchmarkChange gives a laptop one service more among a thousand: from the policy's
// own time until the machine leads its address to the device.
func BenchmarkChange(b *testing.B) {
	w := newWorld(b)
	file := filepath.Join(w.dir, "thousand.yaml")
	if err := os.WriteFile(file, []byte(thousand()), 0o600); err != nil {
		b.Fatal(err)
	}
	w.netkeep("apply", file, "--yes")
	w.start(w.laptop, "an identity is in use", w.binary, "tunnel", "run", "--intercept", "--identity", w.enrolled("laptop"))
	w.eventually("all addresses lead to the device", func() bool {
		return strings.Count(w.laptop.must("ip", "-4", "route", "show", "table", "all"), " dev nk0 ") > 10_000
	})
	watch := w.launch(nil, nil, "nsenter", w.laptop.enter("ip", []string{"-tshort", "-4", "monitor", "route"})...)
	var took []time.Duration
	for n := range changes {
		name, at := fmt.Sprint("more-", n), fmt.Sprintf("10.97.0.%d ", n)
		w.netkeep("create", "service-policy", name, "--type", "Dial", "--semantic", "AnyOf", "--identity-roles", "#laptop", "--service-roles", "#"+name)
		w.eventually(name+" is there", func() bool { return strings.Contains(watch.text(), at) })
		took = append(took, w.said(watch, at).Sub(w.made(name)))
	}
	slices.Sort(took)
	fmt.Printf("one service more among 1,000: p50 %s, at most %s\n", took[len(took)/2], took[len(took)-1])
}

// said is when a program that tells the time of everything has told something.
func (w *world) said(p *process, what string) time.Time {
	w.t.Helper()
	for line := range strings.Lines(p.text()) {
		if strings.Contains(line, what) {
			stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "["), "]")
			at, err := time.Parse("2006-01-02T15:04:05.999999", stamp)
			if err != nil {
				w.t.Fatalf("%q: %v", line, err)
			}
			return at
		}
	}
	w.t.Fatalf("%v does not say %q:\n%s", p.cmd, what, p.text())
	return time.Time{}
}

// made is when a policy was made, in the controller's words.
func (w *world) made(policy string) time.Time {
	w.t.Helper()
	var all []struct {
		Name      string
		CreatedAt time.Time
	}
	text := w.netkeep("list", "service-policies", "-o", "json")
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		w.t.Fatalf("%v:\n%s", err, text)
	}
	for _, p := range all {
		if p.Name == policy {
			return p.CreatedAt
		}
	}
	w.t.Fatalf("there is no policy %s:\n%s", policy, text)
	return time.Time{}
}
