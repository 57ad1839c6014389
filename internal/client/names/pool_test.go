package names

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clock is a time that a test sets.
type clock struct{ time time.Time }

func (c *clock) now() time.Time { return c.time }

func pool(t testing.TB, prefix string, avoid func(netip.Addr) bool) (*Pool, *clock) {
	t.Helper()
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p, err := NewPool(PoolOptions{Prefix: netip.MustParsePrefix(prefix), Now: c.now, Avoid: avoid})
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

func get(t testing.TB, p *Pool, name string) netip.Addr {
	t.Helper()
	ip, err := p.Addr(name)
	if err != nil {
		t.Fatal(err)
	}
	return ip
}

func TestSameAddressAgain(t *testing.T) {
	one, _ := pool(t, "100.64.0.0/10", nil)
	other, _ := pool(t, "100.64.0.0/10", nil)
	get(t, other, "something.else")
	ip := get(t, one, "payroll.corp")
	if again := get(t, one, "payroll.corp"); again != ip {
		t.Errorf("it was %s and is %s", ip, again)
	}
	if after := get(t, other, "payroll.corp"); after != ip {
		t.Errorf("it was %s and is %s in another process", ip, after)
	}
	if name, ok := one.Name(ip); !ok || name != "payroll.corp" {
		t.Errorf("%s is %q", ip, name)
	}
	if name, ok := one.Name(netip.MustParseAddr("100.64.0.2")); ok {
		t.Errorf("the server is %q", name)
	}
	if name, ok := one.Name(netip.MustParseAddr("fd00::1")); ok {
		t.Errorf("fd00::1 is %q", name)
	}
}

func TestReusedLate(t *testing.T) {
	p, clock := pool(t, "10.9.8.0/28", nil) // 11 addresses
	for i := range 11 {
		clock.time = clock.time.Add(time.Second)
		get(t, p, fmt.Sprint("name-", i))
	}
	var full *FullError
	if _, err := p.Addr("one-more"); !errors.As(err, &full) || full.Names != 11 {
		t.Fatalf("the error is %v", err)
	}
	oldest, second := get(t, p, "name-0"), get(t, p, "name-1")
	_, release, ok := p.Hold(oldest)
	if !ok {
		t.Fatal("it cannot be held")
	}
	clock.time = clock.time.Add(idle)
	get(t, p, "name-1") // which is used again
	third, err := p.Addr("name-2")
	if err != nil {
		t.Fatal(err)
	}
	if ip := get(t, p, "one-more"); ip == oldest || ip == second || ip == third {
		t.Errorf("%s was reused, which is in use", ip)
	}
	if _, ok := p.byName["name-3"]; ok {
		t.Error("the one that was not used the longest still has its address")
	}
	release()
	release()
	clock.time = clock.time.Add(idle - time.Second)
	if name, ok := p.Name(oldest); !ok || name != "name-0" {
		t.Errorf("%s is %q, and was held a moment ago", oldest, name)
	}
}

func TestAvoided(t *testing.T) {
	taken := netip.MustParsePrefix("100.64.0.0/11")
	p, _ := pool(t, "100.64.0.0/10", func(ip netip.Addr) bool { return taken.Contains(ip) })
	for i := range 100 {
		if ip := get(t, p, fmt.Sprint("name-", i)); taken.Contains(ip) {
			t.Fatalf("a name has %s, which is another's", ip)
		}
	}
	taken = netip.MustParsePrefix("100.64.0.0/10")
	if ip, err := p.Addr("name-0"); err == nil {
		t.Errorf("a name has %s", ip)
	}
}

func TestRanges(t *testing.T) {
	for _, text := range []string{"fd00::/64", "10.0.0.0/30", "10.0.0.1/32", "0.0.0.0/0", "100.0.0.0/7"} {
		if _, err := NewPool(PoolOptions{Prefix: netip.MustParsePrefix(text), Now: (&clock{}).now}); err == nil {
			t.Errorf("%s is taken", text)
		} else {
			t.Log(err)
		}
	}
	p, err := NewPool(PoolOptions{Now: (&clock{}).now})
	if err != nil || p.Prefix() != Range {
		t.Errorf("%v: %v", err, p.Prefix())
	}
}

// TestPoolModel holds that no two names ever have one address, that what is in
// use stays, and that nothing outside of the range is given out.
func TestPoolModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		prefix := netip.MustParsePrefix(rapid.SampledFrom([]string{"10.0.0.0/29", "10.0.0.16/28", "10.0.0.0/24"}).Draw(rt, "prefix"))
		p, clock := pool(t, prefix.String(), nil)
		type use struct {
			addr    netip.Addr
			used    time.Time
			release []func()
		}
		uses := map[string]*use{}
		rt.Repeat(map[string]func(*rapid.T){
			"ask": func(rt *rapid.T) {
				name := fmt.Sprint("name-", rapid.IntRange(0, 30).Draw(rt, "name"))
				ip, err := p.Addr(name)
				if err != nil {
					return
				}
				if !prefix.Contains(ip) || number(ip)-number(prefix.Addr()) < reserved || !prefix.Contains(ip.Next()) {
					rt.Fatalf("%s is given out", ip)
				}
				before := uses[name]
				for other, u := range uses {
					if other != name && u.addr == ip {
						if len(u.release) > 0 || clock.time.Sub(u.used) < idle {
							rt.Fatalf("%s is %s's, which uses it", ip, other)
						}
						delete(uses, other)
					}
				}
				if before == nil {
					before = &use{}
					uses[name] = before
				} else if before.addr != ip && (len(before.release) > 0 || clock.time.Sub(before.used) < idle) {
					rt.Fatalf("%s had %s and has %s", name, before.addr, ip)
				}
				before.addr, before.used = ip, clock.time
			},
			"hold": func(rt *rapid.T) {
				for name, u := range uses {
					if got, release, ok := p.Hold(u.addr); ok && got == name {
						u.release = append(u.release, release)
						return
					}
				}
			},
			"release": func(rt *rapid.T) {
				for _, u := range uses {
					if n := len(u.release); n > 0 {
						u.release[n-1]()
						u.release, u.used = u.release[:n-1], clock.time
						return
					}
				}
			},
			"wait": func(rt *rapid.T) {
				clock.time = clock.time.Add(time.Duration(rapid.IntRange(1, 900).Draw(rt, "seconds")) * time.Second)
			},
			"": func(rt *rapid.T) {
				if len(p.byName) != len(p.byAddr) || len(p.byName) > p.max {
					rt.Fatalf("%d names have %d addresses", len(p.byName), len(p.byAddr))
				}
			},
		})
	})
}

func BenchmarkAddr(b *testing.B) {
	p, _ := pool(b, "100.64.0.0/10", nil)
	for i := range 10_000 {
		get(b, p, fmt.Sprint("name-", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		get(b, p, "name-77")
	}
}
