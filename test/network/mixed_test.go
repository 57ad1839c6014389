package network

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// mixed is a mesh of routers of ours, whose names begin with an o, and public
// ones, whose names begin with a p. They link as their words say.
func mixed(t *testing.T, routers map[string][]string, linked int) *mesh {
	t.Helper()
	m := &mesh{network: newNetwork(t), routers: map[string]*router{}}
	m.ziti("edge", "login", "--yes", "https://"+m.address, "-u", "admin", "-p", password)
	m.create("service-edge-router-policies", M{"name": "all", "semantic": "AnyOf", "serviceRoles": []string{"#all"}, "edgeRouterRoles": []string{"#all"}})
	for name, words := range routers {
		add := m.addRouter
		if strings.HasPrefix(name, "o") {
			add = m.addOwnRouter
		}
		m.routers[name] = add(name, words...)
	}
	m.eventually("all pairs are linked", func() bool { return m.linked() == linked })
	return m
}

// linked is how many pairs of routers are linked, and measured.
func (m *mesh) linked() int {
	m.t.Helper()
	pairs := map[string]bool{}
	for _, l := range m.fabric("links?limit=500") {
		from, to := l["sourceRouter"].(M)["name"].(string), l["destRouter"].(M)["name"].(string)
		if l["cost"].(float64) < 10_000 {
			pairs[min(from, to)+" "+max(from, to)] = true
		}
	}
	return len(pairs)
}

// at adds an identity that uses one router.
func (m *mesh) at(identity, router string) string {
	m.t.Helper()
	m.create("edge-router-policies", M{
		"name": identity, "semantic": "AnyOf", "identityRoles": []string{"#" + identity}, "edgeRouterRoles": []string{"@" + m.routers[router].id},
	})
	return m.addIdentity(identity)
}

// TestMixed has routers of ours and public ones link with each other: from every
// one of them whatever is hosted at any is reached.
func TestMixed(t *testing.T) {
	m := mixed(t, map[string][]string{"o1": nil, "o2": nil, "o3": nil, "p1": nil, "p2": nil}, 10)
	dialers := map[string]string{}
	for name := range m.routers {
		m.create("services", M{"name": "at-" + name, "encryptionRequired": true})
		host := m.at("host-"+name, name)
		m.allow("Bind", "host-"+name)
		start(t, m.dir, nil, programs.peer, "host", host, "at-"+name).says(t, "hosting", 0)
		dialers[name] = m.at("dialer-"+name, name)
		m.allow("Dial", "dialer-"+name)
	}
	for from := range m.routers {
		for to := range m.routers {
			t.Run(fmt.Sprintf("from %s to %s", from, to), func(t *testing.T) {
				for _, size := range []int{1, 3_000_000} {
					if line, err := m.dial(dialers[from], "at-"+to, size, 3); err != nil {
						t.Errorf("%d bytes: %s, %v", size, line, err)
					}
				}
			})
		}
	}
	m.eventually("no circuit is left", func() bool { return len(m.fabric("circuits")) == 0 })
}

// TestMixedLoss sends much between two routers over others, which are killed and
// come back, one after the other: ours between public ones, and public ones
// between ours.
func TestMixedLoss(t *testing.T) {
	t.Parallel()
	for _, kinds := range []string{"op", "po"} {
		t.Run(kinds, func(t *testing.T) {
			end, between := kinds[:1], kinds[1:]
			first, last := end+"1", end+"4"
			m := mixed(t, map[string][]string{
				first: {"l12", "l13"}, between + "2": {"l12", "l24"}, between + "3": {"l13", "l34"}, last: {"l24", "l34"},
			}, 4)
			host, dialer := m.at("host", last), m.at("dialer", first)
			m.create("services", M{"name": "echo", "encryptionRequired": true})
			m.allow("Bind", "host")
			m.allow("Dial", "dialer")
			start(t, m.dir, nil, programs.peer, "host", host, "echo").says(t, "hosting", 0)
			hold := start(t, m.dir, nil, programs.peer, "hold", dialer, "echo")
			_, word := hold.says(t, "word", 0)
			transfer := start(t, m.dir, nil, programs.peer, "dial", dialer, "echo", "268435456")
			for eighths := 1; eighths < 7; eighths += 2 {
				transfer.says(t, fmt.Sprintf("%d/8 is back", eighths), 0)
				way := strings.Fields(m.paths()[0])
				if len(way) != 3 {
					t.Fatalf("the way is %q", way)
				}
				killed := m.routers[way[1]]
				killed.kill(syscall.SIGKILL)
				_, word = hold.says(t, "word", word)
				killed.start()
				m.eventually("all pairs are linked again", func() bool { return m.linked() == 4 })
				t.Logf("%s was killed after %d/8", killed.name, eighths)
			}
			line, _ := transfer.says(t, "ok ", 0)
			t.Logf("256 MiB: %s", line)
			hold.says(t, "word", word)
		})
	}
}
