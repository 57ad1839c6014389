package fabric_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// TestForeignCircuits has routers carry what another controller has made, whose network was
// taken over.
func TestForeignCircuits(t *testing.T) {
	var c *credentials
	synctest.Test(t, func(t *testing.T) { c = newCredentials(t, 2) })
	for name, test := range map[string]func(*rapid.T, *world){
		"goes on":                      goesOn,
		"ends with its session":        func(rt *rapid.T, w *world) { goesOn(rt, w); endsWithSession(rt, w) },
		"ends with the host's session": func(rt *rapid.T, w *world) { goesOn(rt, w); endsWithHost(rt, w) },
		"nobody says whose it is":      unnamed,
		"it is of no session":          ofNoSession,
		"somebody's rights change":     changed,
		"nobody's session came along":  nothingBrought,
		"long after the start":         late,
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				bubble(t, func() {
					w := newWorld(rt, c)
					defer w.close()
					synctest.Wait()
					test(rt, w)
				})
			})
		})
	}
}

const foreignID = "c-Xb3.wWk9"

// bring adds what came along: sessions to dial and to host the first service.
func (w *world) bring() {
	w.write(func(tx *state.Tx) error {
		for _, typ := range []string{model.Dial, model.Bind} {
			token := "a token of before to " + typ
			err := model.Sessions.Create(tx, &model.Session{
				Meta: kind.Meta{ID: "brought" + typ}, APISessionID: "api", IdentityID: "ann", ServiceID: "s0", Type: typ, Key: "brought" + typ,
				Plain: true, Brought: token, BroughtHash: model.TokenHash(token),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// carry has both routers come back with a circuit of before.
func (w *world) carry() {
	for i, n := range w.routers {
		w.leave(n)
		ends := [2]string{"Ab1", "Cd2"}
		route := &message.Route{CircuitID: foreignID, Forwards: []message.Forward{{From: ends[i], To: "old link"}, {From: "old link", To: ends[i]}}}
		n.circuits = map[string]*message.Route{foreignID: route}
		w.connect(n)
	}
	synctest.Wait()
}

// carried is at how many routers the circuit goes on.
func (w *world) carried() (n int) {
	synctest.Wait()
	for _, r := range w.routers {
		if has, _ := r.conn.Has(); has[foreignID] != nil {
			n++
		}
	}
	return n
}

// count has a router say what it has counted.
func (w *world) count(router int, end string, tags map[string]string) {
	must(w.t, w.routers[router].conn.Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&message.Metrics{Usage: []message.Usage{{
		Buckets: map[string]message.CircuitUsage{foreignID: {Bytes: map[string]uint64{end + ".tx": 10}, Tags: tags}},
	}}})}))
	synctest.Wait()
}

var annsTags = map[string]string{"clientId": "ann", "serviceId": "s0", "hostId": "ann"}

func (w *world) want(t *rapid.T, routers int, when string) {
	t.Helper()
	if got := w.carried(); got != routers {
		t.Fatalf("%s, %d routers carry what was made before, and not %d", when, got, routers)
	}
}

func goesOn(t *rapid.T, w *world) {
	w.bring()
	w.carry()
	w.want(t, 2, "at first")
	time.Sleep(3 * time.Minute)
	w.want(t, 2, "after minutes")
	w.count(1, "egress", annsTags) // where it ends nobody is believed about who has begun it
	w.count(0, "ingress", annsTags)
	time.Sleep(time.Hour)
	w.want(t, 2, "after an hour")
	circuit, _ := w.fabric.Circuits.Get(foreignID)
	if circuit == nil || circuit.IdentityID != "ann" || circuit.ServiceID != "s0" || circuit.HostID != "ann" || !slices.Equal(slices.Sorted(slices.Values(circuit.Path)), []string{"r0", "r1"}) {
		t.Fatalf("it is known as %+v", circuit)
	}
}

func endsWithSession(t *rapid.T, w *world) {
	w.write(func(tx *state.Tx) error { return model.Sessions.Delete(tx, "brought"+model.Dial) })
	time.Sleep(2 * time.Second)
	w.want(t, 0, "without the session that it was dialled with")
}

func endsWithHost(t *rapid.T, w *world) {
	w.write(func(tx *state.Tx) error { return model.Sessions.Delete(tx, "brought"+model.Bind) })
	time.Sleep(2 * time.Second)
	w.want(t, 0, "without the session that it is hosted with")
}

func unnamed(t *rapid.T, w *world) {
	w.bring()
	w.carry()
	w.count(1, "egress", annsTags)
	time.Sleep(5 * time.Minute)
	w.want(t, 0, "when no router has said whose it is")
}

func ofNoSession(t *rapid.T, w *world) {
	tags := maps.Clone(annsTags)
	tags[rapid.SampledFrom([]string{"clientId", "serviceId"}).Draw(t, "tag")] = rapid.SampledFrom([]string{"", "s1", "bob"}).Draw(t, "whose")
	w.bring()
	w.carry()
	w.want(t, 2, "at first")
	w.count(0, "ingress", tags)
	w.want(t, 0, "when it is of nobody whose session came along")
}

func changed(t *rapid.T, w *world) {
	w.bring()
	w.carry()
	w.want(t, 2, "at first")
	w.write(func(tx *state.Tx) error {
		return model.Identities.Edit(tx, "ann", func(who *model.Identity) error { who.RoleAttributes = []string{"other"}; return nil })
	})
	w.want(t, 0, "when it is not known whether it may go on")
}

func nothingBrought(t *rapid.T, w *world) {
	w.carry()
	time.Sleep(time.Second)
	w.want(t, 0, "in a network that was not taken over")
}

func late(t *rapid.T, w *world) {
	w.bring()
	time.Sleep(time.Hour)
	w.carry()
	time.Sleep(time.Second)
	w.want(t, 0, "long after the start")
}
