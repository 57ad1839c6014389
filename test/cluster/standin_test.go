package cluster_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// service is one that a user hosts and another dials, both through one router.
type service struct {
	router           *servertest.Router
	hosting, dialing string // tokens of sessions
	token            string // of who dials
}

func addService(t *testing.T, s *servertest.Server) *service {
	t.Helper()
	admin, all := s.Admin(t), []string{"#all"}
	id := admin.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": false}).Want(201).ID()
	admin.Post("edge-router-policies", M{"name": servertest.Unique("a"), "semantic": "AnyOf", "edgeRouterRoles": all, "identityRoles": all}).Want(201)
	admin.Post("service-edge-router-policies", M{"name": servertest.Unique("b"), "semantic": "AnyOf", "edgeRouterRoles": all, "serviceRoles": all}).Want(201)
	session := func(typ string) (*servertest.Client, string) {
		user := s.AddUser(t, false)
		admin.Post("service-policies", M{"name": servertest.Unique(typ), "type": typ, "semantic": "AnyOf", "identityRoles": []string{"@" + user.ID}, "serviceRoles": []string{"@" + id}}).Want(201)
		who := s.Login(t, user.Username, user.Password)
		return who, who.Post(client+"sessions", M{"serviceId": id, "type": typ}).Want(201).Data()["token"].(string)
	}
	out := &service{router: s.AddRouter(t)}
	_, out.hosting = session(model.Bind)
	var dialer *servertest.Client
	dialer, out.dialing = session(model.Dial)
	out.token = dialer.Token
	return out
}

// connect has the router connect somewhere.
func (s *service) connect(t *testing.T, address string, change ...func(*scripted.Options)) *scripted.Router {
	t.Helper()
	opt := s.router.Options()
	opt.Address = address
	for _, f := range change {
		f(&opt)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := scripted.Connect(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// dial dials until that works: who is asked may not have heard yet that it may.
func (s *service) dial(t *testing.T, r *scripted.Router) (circuit string) {
	t.Helper()
	return s.dialOver(t, func() *scripted.Router { return r })
}

// dialOver dials through the router that there is at the time.
func (s *service) dialOver(t *testing.T, router func() *scripted.Router) (circuit string) {
	t.Helper()
	var failed error
	defer func() {
		if failed != nil {
			t.Log(failed)
		}
	}()
	servertest.Eventually(t, patience, "a dial", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		circuit, _, failed = router().Dial(ctx, s.dialing, s.token, nil)
		return failed == nil
	})
	return circuit
}

// led waits for two lists: one without a controller and then one that has it at an
// address.
func (m members) led(t *testing.T, id, address string, above uint64) (index uint64) {
	t.Helper()
	late, missing := time.After(patience), false
	for {
		select {
		case list := <-m:
			if list.Index <= above {
				continue
			}
			at := ""
			for _, c := range list.Controllers {
				if c.ID == id {
					at = c.Endpoints[0].Address
				}
			}
			switch {
			case at == "" && list.Index > index:
				missing, index = true, list.Index
			case at == address && missing && list.Index > index:
				return list.Index
			}
		case <-late:
			t.Fatalf("nobody leads a router that looks for %s to %s", id, address)
		}
	}
}

// carried is how many bytes a controller says that services were sent.
func carried(t *testing.T, s *servertest.Server) (sum float64) {
	t.Helper()
	resp, err := http.Get("http://" + s.Metrics().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(name, `netkeep_carried_bytes_total{direction="sent"`) {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// TestStandIn stops a controller: another answers in its place, under its id and at
// another address, to which routers are led. What was made under the id is looked
// after, and more is made; when the first is back, it goes on there.
func TestStandIn(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use, func(c *config.Config) { c.Routers.Reserve = "127.0.0.1:0" })
	b := second(t, a, use)
	s := addService(t, a)
	told := make(members, 1000)
	here := s.connect(t, a.RouterAddress(), func(o *scripted.Options) { o.Grouped, o.Seen = true, told.take })
	there := s.connect(t, b.RouterAddress())
	owner := there.Welcome.Text(message.HeaderListenerID)
	before := told.want(t, 2, 0).Index
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if got, err := here.Host(ctx, message.CreateTerminator{Address: "terminator1", SessionToken: s.hosting}); err != nil || got.Result != message.TerminatorOK {
		t.Fatalf("hosting: %+v, %v", got, err)
	}
	circuit := s.dial(t, there)
	shown := func(at *servertest.Server, id string) bool {
		return at.Admin(t).Get(fabricRoot+"circuits/"+id).Status == http.StatusOK
	}
	if shown(a, circuit) || !shown(b, circuit) {
		t.Error("a circuit is not where it was made")
	}
	first := b.RouterAddress()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	before = told.led(t, owner, "tls:"+a.ReserveAddress(), before)
	again := func(o *scripted.Options) {
		o.Circuits, _ = there.Has()
		o.Owners = map[string]string{circuit: owner}
	}
	instead := s.connect(t, a.ReserveAddress(), again)
	if id := instead.Welcome.Text(message.HeaderListenerID); id != owner {
		t.Fatalf("%s answers in the place of %s", id, owner)
	}
	servertest.Eventually(t, patience, "the circuit is looked after", func() bool { return shown(a, circuit) })
	made := s.dial(t, instead)
	if !shown(a, made) {
		t.Error("what is made in the place of another is not shown")
	}

	// A router tells everybody what it has carried; it counts where the circuit is
	// looked after.
	for i, r := range []*scripted.Router{here, instead} {
		m := message.Metrics{Copy: i == 1, Usage: []message.Usage{{Buckets: map[string]message.CircuitUsage{circuit: {Bytes: map[string]uint64{"ingress.rx": 1000}}}}}}
		if err := r.Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&m)}); err != nil {
			t.Fatal(err)
		}
		s.dial(t, r) // by then that is heard
	}
	if sent := carried(t, a); sent != 1000 {
		t.Errorf("%v bytes are counted of 1000 that were carried", sent)
	}

	open := func() *servertest.Server {
		t.Helper()
		s, err := servertest.Open(filepath.Dir(b.Config.Data), use, func(c *config.Config) { c.Listen = b.Listening().String() })
		if err != nil {
			t.Fatal(err)
		}
		return closing(t, s)
	}
	back := open()
	if back.RouterAddress() != first {
		t.Fatalf("it is back at %s, and was at %s", back.RouterAddress(), first)
	}
	told.led(t, owner, "tls:"+first, before)
	select {
	case <-instead.Done(): // also of one that does not leave
	case <-time.After(patience):
		t.Error("somebody answers in the place of one that is back")
	}
	there = s.connect(t, first, again)
	servertest.Eventually(t, patience, "the circuit is looked after where it was made", func() bool { return shown(back, circuit) && !shown(a, circuit) })

	// Any controller ends it.
	a.Admin(t).Delete(fabricRoot + "circuits/" + circuit).Want(http.StatusOK)
	if err := there.Await(ctx, func(k scripted.Known) bool { return k.Circuits[circuit] == nil }); err != nil {
		t.Errorf("a circuit goes on that was ended at another controller: %v", err)
	}
	for _, at := range []*servertest.Server{a, back} {
		at.Admin(t).Delete(fabricRoot + "circuits/" + circuit).Want(http.StatusNotFound)
	}
}

// TestPresenceEverywhere connects routers to one controller or the other: both show
// the same of each.
func TestPresenceEverywhere(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	b := second(t, a, use)
	controllers := []*servertest.Server{a, b}
	s := addService(t, a)
	shown := func(at *servertest.Server) M { return at.Admin(t).Get("edge-routers/" + s.router.ID).Want(200).Data() }
	same := func(what string, online bool, id string) {
		t.Helper()
		servertest.Eventually(t, patience, what, func() bool {
			for _, at := range controllers {
				got := shown(at)
				if got["isOnline"] != online || online && (got["controllerId"] != id || got["syncStatus"] != model.SyncDone || got["versionInfo"].(M)["version"] != "v1.6.20") {
					return false
				}
			}
			return true
		})
	}
	eventually(t, b.Admin(t), "edge-routers/"+s.router.ID, http.StatusOK)
	same("it is nowhere", false, "")
	there := s.connect(t, b.RouterAddress())
	id := there.Welcome.Text(message.HeaderListenerID)
	same("it is at the second", true, id)
	// Who is not connected here has its hosts all the same, and no path.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if got, err := there.Host(ctx, message.CreateTerminator{Address: "terminator1", SessionToken: s.hosting}); err != nil || got.Result != message.TerminatorOK {
		t.Fatalf("hosting: %+v, %v", got, err)
	}
	here := s.connect(t, a.RouterAddress())
	same("it is at both", true, id)
	there.Close()
	same("it has left the second", true, here.Welcome.Text(message.HeaderListenerID))
	for _, at := range controllers {
		eventually(t, at.Admin(t), "terminators/terminator1", http.StatusOK)
	}
	s.dial(t, here)
	s.connect(t, b.RouterAddress())
	here.Close()
	same("it is at the second alone", true, id)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	controllers = controllers[:1]
	same("the second is gone", false, "")
}
