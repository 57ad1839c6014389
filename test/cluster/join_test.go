package cluster_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/client/join"
	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
)

// TestJoinForms asks to join as other versions might, and as nobody should: each is
// told what to do, nothing is changed, and the token is good afterwards.
func TestJoinForms(t *testing.T) {
	beside(t)
	s := servertest.Start(t, func(c *config.Config) { c.Cluster.Listen = "127.0.0.1:" + machine.Port(t) })
	token, err := join.Parse(s.Admin(t).Post("cluster/invitations", nil).Want(http.StatusOK).Data()["token"].(string))
	if err != nil {
		t.Fatal(err)
	}
	to, err := pki.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	right := join.Request{
		Protocol: join.Protocol, ID: token.ID, Secret: token.Secret, Seal: to.Public(), Version: "v9",
		Format: format.Current, Oldest: format.Current, Time: time.Now(), Peer: "127.0.0.1:" + machine.Port(t),
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: s.TLS()}}
	ask := func(method, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+join.Path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	request := func(change func(*join.Request)) string {
		r := right
		change(&r)
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, test := range map[string]struct {
		method, body string
		status       int
		says         string
	}{
		"another form of joining": {"POST", request(func(r *join.Request) { r.Protocol++ }), http.StatusConflict, "use the same version of netkeep"},
		"a format of before":      {"POST", request(func(r *join.Request) { r.Format, r.Oldest = format.Current-1, 1 }), http.StatusConflict, "use the same version"},
		"a format to come":        {"POST", request(func(r *join.Request) { r.Format, r.Oldest = format.Current+2, format.Current+1 }), http.StatusConflict, "use the same version"},
		"a clock ahead":           {"POST", request(func(r *join.Request) { r.Time = r.Time.Add(time.Hour) }), http.StatusConflict, "the clocks of the two controllers are"},
		"a clock behind":          {"POST", request(func(r *join.Request) { r.Time = r.Time.Add(-time.Hour) }), http.StatusConflict, "the clocks of the two controllers are"},
		"its own address":         {"POST", request(func(r *join.Request) { r.Peer = s.Config.Cluster.Listen }), http.StatusConflict, "another controller"},
		"nothing to read":         {"POST", "hello", http.StatusBadRequest, "cannot be read"},
		"too much":                {"POST", request(func(r *join.Request) { r.Version = strings.Repeat("x", join.MaxRequest) }), http.StatusBadRequest, "cannot be read"},
		"no question":             {"GET", "", http.StatusMethodNotAllowed, "POST"},
	} {
		if status, text := ask(test.method, test.body); status != test.status || !strings.Contains(text, test.says) {
			t.Errorf("%s is answered %d, %s", name, status, text)
		}
	}
	if list := s.Admin(t).Get("cluster/members").Want(http.StatusOK).List(); len(list) != 1 {
		t.Errorf("the members are %v", list)
	}
	if status, text := ask("POST", request(func(*join.Request) {})); status != http.StatusOK {
		t.Errorf("what is right is answered %d, %s", status, text)
	}
	if status, text := ask("POST", request(func(*join.Request) {})); status != http.StatusConflict || !strings.Contains(text, "was used already") {
		t.Errorf("the second time it is answered %d, %s", status, text)
	}
}
