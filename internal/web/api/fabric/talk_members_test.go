package fabric

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/wire"
)

// TestMembers tells in what the controllers of a network differ from those of a moment
// ago, and nothing if they do not.
func TestMembers(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	if err := st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		return model.Controllers.Create(tx, &model.Controller{Meta: kind.Meta{ID: "b"}, Name: "b", Client: "b.example:1280", Management: "b.example:1280"})
	}); err != nil {
		t.Fatal(err)
	}
	one := &talk{s: &api.Service{ControllerID: "a"}, state: st, wake: make(chan struct{}, 1)}
	a := api.Member{ID: "1", Name: "a", Address: "a:2380", Self: true, Online: true, Leader: true}
	b := api.Member{ID: "2", Name: "b", Address: "b:2380", Online: true, Version: "v1"}
	away, led := b, a
	away.Online, led.Leader = false, false
	leads := b
	leads.Leader = true
	for _, c := range []struct {
		before, after []api.Member
		want          string
	}{
		{[]api.Member{a, b}, []api.Member{a, b}, ""},
		{[]api.Member{a}, []api.Member{a, b}, "peer.connected[b] members.changed[a b]"},
		{[]api.Member{a, b}, []api.Member{a, away}, "peer.disconnected[b]"},
		{[]api.Member{a, away}, []api.Member{a, b}, "peer.connected[b]"},
		{[]api.Member{a, b}, []api.Member{a}, "peer.disconnected[b] members.changed[a]"},
		{[]api.Member{a, b}, []api.Member{led, leads}, "leadership.lost[] state.has_leader[]b"},
		{[]api.Member{led, leads}, []api.Member{a, b}, "leadership.gained[a b] state.has_leader[]a"},
		{[]api.Member{led, leads}, []api.Member{led, b}, "state.is_leaderless[]"},
	} {
		one.tellMembers(wanted{namespace: ofMembers}, time.Now(), c.before, c.after)
		var told []string
		for {
			text, err := one.take()
			if err != nil {
				t.Fatal(err)
			}
			if text == nil {
				break
			}
			told = append(told, readMembers(t, text))
		}
		if got := strings.Join(told, " "); got != c.want {
			t.Errorf("told %q, want %q", got, c.want)
		}
	}
}

// readMembers reads an event about controllers.
func readMembers(t *testing.T, text []byte) string {
	t.Helper()
	f, err := wire.Read(strings.NewReader(string(text)), wire.Bounds{Headers: 1 << 10, Body: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Namespace, EventType, LeaderID string
		Peers                          []struct {
			ID           string                            `json:"id"`
			Addr         string                            `json:"addr"`
			APIAddresses map[string][]struct{ URL string } `json:"apiAddresses"`
		}
	}
	if err := json.Unmarshal(f.Body, &e, json.MatchCaseInsensitiveNames(true)); err != nil || e.Namespace != "cluster" {
		t.Fatalf("told %s: %v", f.Body, err)
	}
	ids := []string{}
	for _, p := range e.Peers {
		ids = append(ids, p.ID)
		if p.ID == "b" && (len(p.APIAddresses["edge-client"]) != 1 || p.Addr != "b:2380") {
			t.Errorf("told %s", f.Body)
		}
	}
	return e.EventType + fmt.Sprint(ids) + e.LeaderID
}
