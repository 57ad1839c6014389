package tunneler

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/client/sdk"
)

// told is what a listener would tell the network.
type told []string

func (l *told) Update(cost uint16, p sdk.Precedence) {
	*l = append(*l, fmt.Sprintf("cost %d, precedence %d", cost, p))
}

func (l *told) Health(well bool) { *l = append(*l, fmt.Sprintf("event %v", well)) }

var quiet = slog.New(slog.DiscardHandler)

// TestActions gives checks results, one a second, and looks at what the network
// is told.
func TestActions(t *testing.T) {
	for _, test := range []struct {
		name    string
		actions []*actionRule
		results string // + passes, - fails
		want    []string
	}{
		{"at once", []*actionRule{{Trigger: "fail", Action: "mark unhealthy"}, {Trigger: "pass", Action: "mark healthy"}}, "+--++",
			[]string{"cost 10, precedence 2", "cost 10, precedence 1"}},
		{"after three", []*actionRule{{Trigger: "fail", ConsecutiveEvents: 3, Action: "mark unhealthy"}}, "--+---", []string{"cost 10, precedence 2"}},
		{"after three seconds", []*actionRule{{Trigger: "fail", Duration: duration(3 * time.Second), Action: "mark unhealthy"}}, "---+----", []string{"cost 10, precedence 2"}},
		{"dearer each time, and no cheaper than well", []*actionRule{{Trigger: "fail", Action: "increase cost 100"}, {Trigger: "pass", Action: "decrease cost 150"}}, "--+++",
			[]string{"cost 110, precedence 1", "cost 210, precedence 1", "cost 60, precedence 1", "cost 10, precedence 1"}},
		{"as dear as can be", []*actionRule{{Trigger: "fail", Action: "increase cost 65530"}}, "--", []string{"cost 65535, precedence 1"}},
		{"not dearer when it is out", []*actionRule{{Trigger: "fail", Action: "mark unhealthy"}, {Trigger: "fail", Action: "increase cost 5"}}, "--",
			[]string{"cost 10, precedence 2"}},
		{"a change", []*actionRule{{Trigger: "change", Action: "send event"}}, "++--+", []string{"event true", "event false", "event true"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := &told{}
			state := &condition{base: sdk.ListenOptions{Cost: 10, Precedence: sdk.Required}, cost: 10, precedence: sdk.Required, listen: got, log: quiet}
			c := newCheck(&checkRule{Address: "x", Actions: test.actions}, nil, net.Dialer{}, time.Now)
			for _, r := range test.results {
				var err error
				if r == '-' {
					err = errors.New("no")
				}
				c.result(err, state)
				time.Sleep(time.Second)
			}
			if !slices.Equal(*got, test.want) {
				t.Errorf("%s: the network is told %q, want %q", test.name, *got, test.want)
			}
		})
	}
	for _, bad := range []string{"", "mark", "increase cost", "increase cost x", "increase cost 65536", "decrease cost -1", "double cost 2"} {
		if _, err := (&actionRule{Action: bad}).change(); err == nil {
			t.Errorf("%q is an action", bad)
		}
	}
}

// TestProbes asks real servers.
func TestProbes(t *testing.T) {
	var status atomic.Int32
	status.Store(200)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(int(status.Load()))
		fmt.Fprintf(w, "%s says %s: all is well", r.Method, body)
	}))
	address := strings.TrimPrefix(server.URL, "http://")
	for _, test := range []struct {
		name   string
		rule   checkRule
		status int32
		well   bool
	}{
		{"a port", checkRule{Address: address}, 200, true},
		{"a page", checkRule{URL: server.URL}, 200, true},
		{"a page that is broken", checkRule{URL: server.URL}, 500, false},
		{"a page that should be missing", checkRule{URL: server.URL, ExpectStatus: 404}, 404, true},
		{"words", checkRule{URL: server.URL, Method: "POST", Body: "hello", ExpectInBody: "POST says hello: all"}, 200, true},
		{"other words", checkRule{URL: server.URL, ExpectInBody: "trouble"}, 200, false},
		{"no address", checkRule{URL: "http://%zz"}, 200, false},
	} {
		status.Store(test.status)
		if err := newCheck(&test.rule, nil, net.Dialer{}, time.Now).probe(t.Context()); (err == nil) != test.well {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	server.Close()
	for _, rule := range []checkRule{{Address: address}, {URL: server.URL}} {
		if err := newCheck(&rule, nil, net.Dialer{}, time.Now).probe(t.Context()); err == nil {
			t.Errorf("%s is well although nobody listens", rule.name())
		}
	}
}

// TestConfigurations reads what services lead to.
func TestConfigurations(t *testing.T) {
	for _, test := range []struct {
		name, typ, data string
		want            int
		wrong           string
	}{
		{"nothing", "intercept.v1", `{}`, 0, ""},
		{"fixed", "host.v1", `{"protocol":"tcp","address":"a","port":1}`, 1, ""},
		{"several", "host.v2", `{"terminators":[{"protocol":"tcp","address":"a","port":1},{"protocol":"udp","address":"b","port":2}]}`, 2, ""},
		{"the oldest", "ziti-tunneler-server.v1", `{"hostname":"a","port":1}`, 1, ""},
		{"with checks", "host.v1", `{"protocol":"tcp","address":"a","port":1,"portChecks":[{"interval":"5s","timeout":"1s","address":"a:1","actions":[{"trigger":"fail","action":"mark unhealthy","duration":"10s"}]}]}`, 1, ""},
		{"no object", "host.v1", `[]`, 1, "cannot be understood"},
		{"no port", "host.v1", `{"protocol":"tcp","address":"a"}`, 1, "port 0 is none"},
		{"no address", "host.v1", `{"protocol":"tcp","port":1}`, 1, "address is missing"},
		{"everything is forwarded to nothing", "host.v1", `{"protocol":"tcp","forwardAddress":true,"port":1}`, 1, "allowedAddresses is empty"},
		{"an action that is none", "host.v1", `{"protocol":"tcp","address":"a","port":1,"portChecks":[{"interval":"5s","timeout":"1s","address":"a:1","actions":[{"trigger":"fail","action":"explode"}]}]}`, 1, "explode"},
		{"a check all the time", "host.v1", `{"protocol":"tcp","address":"a","port":1,"portChecks":[{"interval":"1ns","timeout":"1s","address":"a:1"}]}`, 1, "interval is 1ns, and must be at least 10ms"},
		{"a check at no time", "host.v1", `{"protocol":"tcp","address":"a","port":1,"portChecks":[{"address":"a:1"}]}`, 1, "needs an interval"},
	} {
		s := &sdk.Service{Config: map[string]jsontext.Value{test.typ: jsontext.Value(test.data)}}
		list, err := endpoints(s)
		for _, e := range list {
			if err == nil {
				err = e.check()
			}
		}
		if len(list) != test.want || test.wrong == "" && err != nil || test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong)) {
			t.Errorf("%s: %d endpoints, %v", test.name, len(list), err)
		}
	}
}

// TestListenOptions has several say what hosting costs.
func TestListenOptions(t *testing.T) {
	cost := uint16(7)
	e := &endpoint{ListenOptions: listenOptions{Identity: "of $tunneler_id.name"}}
	h := &sdk.Hosting{Cost: 3, Precedence: "required"}
	if o := e.listen("me", "s", h); o.Cost != 3 || o.Precedence != sdk.Required || o.Instance != "of me" || !o.Patient {
		t.Errorf("by the identity: %+v", o)
	}
	e.ListenOptions = listenOptions{Cost: &cost, Precedence: "failed", BindUsingEdgeIdentity: true}
	if o := e.listen("me", "s", h); o.Cost != 7 || o.Precedence != sdk.Failed || o.Instance != "me" {
		t.Errorf("by the configuration: %+v", o)
	}
	h.Costs, h.Precedences = map[string]uint16{"s": 9}, map[string]string{"s": "default"}
	if o := e.listen("me", "s", h); o.Cost != 9 || o.Precedence != sdk.Default {
		t.Errorf("by what is said of the identity and the service: %+v", o)
	}
}

// TestReadPort lists how ports are written.
func TestReadPort(t *testing.T) {
	for text, want := range map[string]Port{
		"wiki:8080":      {"wiki", "127.0.0.1", 8080, false},
		"wiki:8080/tcp":  {"wiki", "127.0.0.1", 8080, false},
		"dns:53/udp":     {"dns", "127.0.0.1", 53, true},
		"a:b c:9":        {"a:b c", "127.0.0.1", 9, false},
		"wiki":           {},
		":80":            {},
		"wiki:":          {},
		"wiki:0":         {},
		"wiki:65536":     {},
		"wiki:http":      {},
		"wiki:8080/sctp": {},
	} {
		got, err := ReadPort(text, "127.0.0.1")
		if got != want || (err == nil) != (want != Port{}) {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	if _, err := ReadPort("wiki:80", "localhost"); err == nil {
		t.Error("a name is an address to listen on")
	}
}

// TestComplaints says the same once a minute.
func TestComplaints(t *testing.T) {
	var c complaints
	now := time.Unix(0, 0)
	if !c.fresh("a", now) || c.fresh("a", now.Add(again/2)) || !c.fresh("b", now) || !c.fresh("a", now.Add(again)) {
		t.Error("it is said too often, or not often enough")
	}
	for i := range 2 * maxSaid {
		c.fresh(fmt.Sprint(i), now)
	}
	if len(c.last) > maxSaid {
		t.Errorf("%d things are remembered", len(c.last))
	}
}
