package intercept

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestReadAddress(t *testing.T) {
	for text, want := range map[string]string{
		"Payroll.Corp":          "payroll.corp",
		"payroll.corp.":         "payroll.corp",
		"*.Corp.Example.":       "*.corp.example",
		"_sip._tcp.example":     "_sip._tcp.example",
		"bücher.example":        "xn--bcher-kva.example",
		"*.BÜCHER.example":      "*.xn--bcher-kva.example",
		"xn--bcher-kva.example": "xn--bcher-kva.example",
		"10.0.0.1":              "10.0.0.1",
		"10.0.0.1/8":            "10.0.0.0/8",
		"10.0.0.1/32":           "10.0.0.1",
		"::ffff:10.0.0.1":       "10.0.0.1",
		"::ffff:10.0.0.0/104":   "10.0.0.0/8",
		"FD00::1":               "fd00::1",
		"[fd00::1]":             "fd00::1",
		"fd00::/8":              "fd00::/8",
		"localhost":             "localhost",
		"1.example":             "1.example",
	} {
		if a, err := ReadAddress(text); err != nil || a.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, a, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "*", "*.", "*x.example", "a.*.example", "**.example", "a..b", ".a", "-a.b", "a-.b", "a b", "a/b", "1.2.3", "1.2.3.400", "10.0.0.0/33",
		"fe80::1%eth0", "$src_ip", "a\x00b", "a\nb", strings.Repeat("a", 64) + ".b", strings.Repeat("a.", 130) + "b", "a:80", "http://a", "a.5",
	} {
		a, err := ReadAddress(text)
		if err == nil {
			t.Errorf("%q is %q", text, a)
		} else if strings.ContainsAny(err.Error(), "\x00\n") || len(err.Error()) > 300 {
			t.Errorf("%q: the error is %q", text, err)
		}
	}
}

func TestRead(t *testing.T) {
	read := func(configs map[string]string) (*Rule, []error) {
		raw := map[string]jsontext.Value{}
		for typ, data := range configs {
			raw[typ] = jsontext.Value(data)
		}
		return Read("payroll", raw)
	}
	full := `{"addresses": ["payroll.corp", "10.0.0.0/8"], "portRanges": [{"low": 80, "high": 90}], "protocols": ["tcp", "udp"],
		"allowedSourceAddresses": ["192.168.0.0/16"], "dialOptions": {"identity": "$dst_hostname", "connectTimeoutSeconds": 7}, "sourceIp": "$src_ip"}`
	want := &Rule{
		Service:   "payroll",
		Addresses: []Address{{name: "payroll.corp"}, {prefix: netip.MustParsePrefix("10.0.0.0/8")}},
		Ports:     []Ports{{80, 90}}, Protocols: []string{TCP, UDP},
		Sources:  []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")},
		Identity: "$dst_hostname", SourceIP: "$src_ip", ConnectTimeout: 7 * time.Second,
	}
	compare := cmp.AllowUnexported(Address{}, netip.Prefix{}, netip.Addr{})
	got, problems := read(map[string]string{Type: full, OldType: `{}`})
	if diff := cmp.Diff(want, got, compare, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" || len(problems) > 0 {
		t.Errorf("%v\n%s", problems, diff)
	}
	if !got.Admits(netip.MustParseAddr("::ffff:192.168.1.1")) || got.Admits(netip.MustParseAddr("10.0.0.1")) {
		t.Error("it admits others than it should")
	}
	got, problems = read(map[string]string{OldType: `{"hostname": "payroll.corp", "port": 80}`})
	if len(problems) > 0 || got.Addresses[0].String() != "payroll.corp" || got.Ports[0] != (Ports{80, 80}) || len(got.Protocols) != 2 {
		t.Errorf("it is %v, %v", got, problems)
	}
	if got, problems = read(nil); got != nil || problems != nil {
		t.Errorf("it is %v, %v", got, problems)
	}
	for data, want := range map[string]string{
		`{"addresses": ["*", "a.b"], "portRanges": [{"low": 1, "high": 2}], "protocols": ["tcp"]}`:                                     "every name there is",
		`{"addresses": ["a.b"], "portRanges": [{"low": 9, "high": 2}, {"low": 1, "high": 2}], "protocols": ["tcp"]}`:                   "no port between",
		`{"addresses": ["a.b"], "portRanges": [{"low": 1, "high": 2}], "protocols": ["tcp", "sctp"]}`:                                  "neither tcp nor udp",
		`{"addresses": ["a.b"], "portRanges": [{"low": 1, "high": 2}], "protocols": ["tcp"], "allowedSourceAddresses": ["somewhere"]}`: "neither an IP address nor",
		`{"addresses": ["a.b", "1.2.3"], "portRanges": [{"low": 1, "high": 2}], "protocols": ["tcp"]}`:                                 "its last part is a number",
	} {
		got, problems = read(map[string]string{Type: data})
		if got == nil || len(problems) != 1 || !strings.Contains(errors.Join(problems...).Error(), want) {
			t.Errorf("%s\nis %v, %v; want %q", data, got, problems, want)
		}
		if got.Sources != nil && got.Admits(netip.MustParseAddr("10.0.0.1")) {
			t.Errorf("%s\nadmits anybody", data)
		}
	}
	for _, data := range []string{`[]`, `{`, `{"addresses": 1}`, `{}`, `{"addresses": ["*"], "portRanges": [{"low": 1, "high": 2}], "protocols": ["tcp"]}`,
		`{"addresses": ["a.b"], "portRanges": [{"low": 1, "high": 70000}], "protocols": ["tcp"]}`} {
		if got, problems = read(map[string]string{Type: data}); got != nil || len(problems) == 0 {
			t.Errorf("%s is %v", data, got)
		}
	}
}

// FuzzReadAddress holds that whatever is understood is understood again as it
// is written, and is found in a table.
func FuzzReadAddress(f *testing.F) {
	for _, text := range []string{"payroll.corp", "*.corp.example", "10.0.0.0/8", "fd00::/8", "bücher.example", "::ffff:1.2.3.4/100", "[::1]", "İ.example", "a\u3002b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ReadAddress(text)
		if err != nil {
			return
		}
		if again, err := ReadAddress(a.String()); err != nil || again != a {
			t.Fatalf("%q is %q, which is %q, %v", text, a, again, err)
		}
		r := &Rule{Service: "it", Addresses: []Address{a}, Ports: []Ports{{1, 1}}, Protocols: []string{TCP}}
		table := New([]*Rule{r})
		if block, ok := a.Prefix(); ok {
			if table.ByAddr(TCP, netip.AddrPortFrom(block.Addr(), 1)) != r {
				t.Fatalf("%q is not found", a)
			}
			return
		}
		name := a.String()
		if domain, wild := strings.CutPrefix(name, "*"); wild {
			name = "x" + domain
		}
		if len(name) <= maxName && (table.ByName(TCP, name, 1) != r || !table.Covers(strings.ToUpper(name)+".")) {
			t.Fatalf("%q is not found", a)
		}
	})
}

// FuzzRead reads configurations of anybody.
func FuzzRead(f *testing.F) {
	f.Add(`{"addresses": ["a.b", "10.0.0.0/8"], "portRanges": [{"low": 80, "high": 90}], "protocols": ["tcp"]}`, `{"hostname": "a", "port": 1}`)
	f.Fuzz(func(t *testing.T, newer, older string) {
		for _, configs := range []map[string]jsontext.Value{{Type: jsontext.Value(newer)}, {OldType: jsontext.Value(older)}} {
			r, problems := Read("it", configs)
			if r == nil && len(problems) == 0 {
				t.Fatal("neither a rule nor a problem")
			}
			if r != nil {
				New([]*Rule{r, r})
			}
		}
	})
}
