package cluster_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// alerted is a receiver of alerts that knows which controller sent each, since each signs
// with a secret of its own.
type alerted struct {
	t   *testing.T
	dir string
	url string

	mu   sync.Mutex
	came []came
	hold func(came) bool // whether to keep somebody waiting for an answer, until it is gone
}

// came is an alert with the number of who sent it.
type came struct {
	by                  int
	ID, Event, TargetID string
}

func newAlerted(t *testing.T) *alerted {
	in := &alerted{t: t, dir: t.TempDir()}
	srv := httptest.NewServer(http.HandlerFunc(in.serve))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	in.url = srv.URL
	return in
}

// flags are those of a controller that sends alerts.
func (in *alerted) flags(n int) []string {
	file := filepath.Join(in.dir, fmt.Sprint("secret", n))
	if err := os.WriteFile(file, []byte(in.secret(n)), 0o600); err != nil {
		in.t.Fatal(err)
	}
	return []string{"--alerts", fmt.Sprintf("[{name: ops, url: %s, secretFile: %s}]", in.url, file), "--alert-after", "2s"}
}

func (*alerted) secret(n int) string { return fmt.Sprint("correct-horse-battery-", n) }

func (in *alerted) serve(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // who sent it is gone
	}
	a := came{by: -1}
	for n := range 3 {
		mac := hmac.New(sha256.New, []byte(in.secret(n)))
		mac.Write(append([]byte(r.Header.Get("Netkeep-Timestamp")+"."), body...))
		if r.Header.Get("Netkeep-Signature") == "v1="+hex.EncodeToString(mac.Sum(nil)) {
			a.by = n
		}
	}
	if json.Unmarshal(body, &a) != nil || a.by < 0 || a.ID != r.Header.Get("Netkeep-Id") {
		in.t.Errorf("nobody signed %s", body)
		return
	}
	in.mu.Lock()
	in.came = append(in.came, a)
	wait := in.hold != nil && in.hold(a)
	in.mu.Unlock()
	if wait {
		<-r.Context().Done()
	}
}

// find returns the first alert that is so.
func (in *alerted) find(is func(came) bool) (came, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if i := slices.IndexFunc(in.came, is); i >= 0 {
		return in.came[i], true
	}
	return came{}, false
}

// await waits for one that is so.
func (in *alerted) await(c *team, what string, is func(came) bool) (a came) {
	in.t.Helper()
	c.eventually(in.t, what, func() (ok bool) { a, ok = in.find(is); return ok })
	return a
}

// TestAlertsOfThree kills the one of three controllers that sends alerts, in the moment
// after one was taken and before it heard so: another sends it again under the same id,
// tells that the one is gone, and that it is back.
func TestAlertsOfThree(t *testing.T) {
	beside(t)
	in := newAlerted(t)
	c := newTeam(t, in.flags)
	in.mu.Lock()
	held := false
	in.hold = func(a came) bool {
		wait := !held && a.Event == "assertion-refused"
		held = held || wait
		return wait
	}
	in.mu.Unlock()
	var found struct{ Data []M }
	for path, body := range map[string]M{
		"identities": {"name": "eve", "type": "User", "isAdmin": false},
		"services":   {"name": "payroll", "encryptionRequired": true},
		"assertions": {"name": "nobody", "expect": "never", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}},
	} {
		// One whose answer was not waited for may have been stored, and is refused from then on.
		c.eventually(t, path, func() bool {
			return c.nodes[0].ask(http.MethodPost, path, body, nil) == http.StatusCreated ||
				c.nodes[0].ask(http.MethodGet, path+"?filter="+url.QueryEscape(fmt.Sprintf("name = %q", body["name"])), nil, &found) == http.StatusOK && len(found.Data) == 1
		})
	}
	wide := M{"name": "wide", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}}
	c.eventually(t, "a refusal", func() bool {
		return c.nodes[0].ask(http.MethodPost, "service-policies", wide, nil) == http.StatusConflict
	})
	first := in.await(c, "an alert of it", func(a came) bool { return a.Event == "assertion-refused" })
	sender := c.nodes[first.by]
	sender.kill()
	in.await(c, "the same of another", func(a came) bool { return a.ID == first.ID && a.by != first.by })
	gone := in.await(c, "that one is gone", func(a came) bool { return a.Event == "controller-gone" && a.by != first.by })
	sender.start(t)
	in.await(c, "that it is back", func(a came) bool { return a.Event == "controller-back" && a.TargetID == gone.TargetID })

	in.mu.Lock()
	defer in.mu.Unlock()
	if i, j := slices.IndexFunc(in.came, func(a came) bool { return a.ID == gone.ID }), slices.IndexFunc(in.came, func(a came) bool { return a.Event == "controller-back" && a.TargetID == gone.TargetID }); i > j {
		t.Errorf("that it is back came before that it is gone: %v", in.came)
	}
}
