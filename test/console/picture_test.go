package console

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// soon is how long anything may take that happens at once.
const soon = time.Minute

// stage is three routers in a row, a service that is hosted at the last of them, and
// somebody who dials it at the first.
type stage struct {
	t          *testing.T
	service    string // its name
	serviceID  string
	user       servertest.User
	records    [3]*servertest.Router
	routers    [3]*scripted.Router
	circuit    string
	links      [2]string
	dial, apis string
}

// setStage has it all on a controller.
func setStage(t *testing.T, s *servertest.Server) *stage {
	t.Helper()
	c, st := s.Admin(t), &stage{t: t, service: servertest.Unique("payroll")}
	for i := range st.records {
		st.records[i] = s.AddRouter(t)
		st.routers[i] = st.records[i].Connect(t, func(o *scripted.Options) { o.Listener = "tls:127.0.0.1:6262" })
	}
	st.serviceID = c.Post("services", M{"name": st.service, "encryptionRequired": false}).Want(http.StatusCreated).ID()
	everyone := func(path, roles string) {
		c.Post(path, M{"name": servertest.Unique("all"), "semantic": "AnyOf", "edgeRouterRoles": []string{"#all"}, roles: []string{"#all"}}).Want(http.StatusCreated)
	}
	everyone("edge-router-policies", "identityRoles")
	everyone("service-edge-router-policies", "serviceRoles")
	token := func(u servertest.User, typ string) (session, api string) {
		c.Post("service-policies", M{
			"name": servertest.Unique(typ), "type": typ, "semantic": "AnyOf", "identityRoles": []string{"@" + u.ID}, "serviceRoles": []string{"@" + st.serviceID},
		}).Want(http.StatusCreated)
		who := s.Login(t, u.Username, u.Password)
		who.Post("/edge/client/v1/current-api-session/certificates", M{"csr": request(t)}).Want(http.StatusCreated)
		return who.Post("/edge/client/v1/sessions", M{"serviceId": st.serviceID, "type": typ}).Want(http.StatusCreated).Data()["token"].(string), who.Token
	}
	hosting, _ := token(s.AddUser(t, false), "Bind")
	st.user = s.AddUser(t, false)
	st.dial, st.apis = token(st.user, "Dial")
	st.link(0, 3)
	st.link(1, 300)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	got, err := st.routers[2].Host(ctx, message.CreateTerminator{Address: servertest.Unique("host"), SessionToken: hosting, PeerData: map[uint32][]byte{message.PeerPublicKey: []byte("key")}})
	if err != nil || got.Result != message.TerminatorOK {
		t.Fatalf("hosting: %+v, %v", got, err)
	}
	if st.circuit, _, err = st.routers[0].Dial(ctx, st.dial, st.apis, map[uint32][]byte{message.PeerPublicKey: []byte("key")}); err != nil {
		t.Fatal(err)
	}
	return st
}

// link has a router tell of a link to the next, and both of how long it takes.
func (st *stage) link(from, milliseconds int) {
	st.t.Helper()
	id := servertest.Unique("link")
	st.links[from] = id
	if err := st.routers[from].Link(message.Link{ID: id, Destination: st.records[from+1].ID, Protocol: "tls", DialAddress: "tls:127.0.0.1:6262", Iteration: 1}); err != nil {
		st.t.Fatal(err)
	}
	st.settled(from)
	for _, i := range []int{from, from + 1} {
		st.tell(i, message.Metrics{Histograms: map[string]message.Histogram{"link." + id + ".latency": {Count: 1, Mean: float64(milliseconds) * 1e6}}})
	}
}

// tell has a router say what it has measured.
func (st *stage) tell(router int, m message.Metrics) {
	st.t.Helper()
	if err := st.routers[router].Send(&wire.Frame{Type: message.TypeMetrics, Body: message.Marshal(&m)}); err != nil {
		st.t.Fatal(err)
	}
	st.settled(router)
}

// settled returns when the controller has heard what a router has said.
func (st *stage) settled(router int) {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(st.t.Context(), soon)
	defer cancel()
	if _, err := st.routers[router].Request(ctx, &wire.Frame{Type: message.TypePing}); err != nil {
		st.t.Fatal(err)
	}
}

// request asks for a certificate of a new key.
func request(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, new(x509.CertificateRequest), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// lacks fails the test for every text that a page does not have.
func (a *answer) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !a.says(text) {
			t.Errorf("%s does not say %q: %s", a.path, text, a.body)
		}
	}
}

// TestNetwork looks at a network as a picture: empty, whole, and around one router.
func TestNetwork(t *testing.T) {
	s := servertest.Start(t)
	b := admin(t, s)
	b.get("/console/network").is(http.StatusOK).lacks(t, "There is no router yet", `href="/console/edge-routers/new"`)
	st := setStage(t, s)
	gone := servertest.Unique("invited")
	s.Admin(t).Post("edge-routers", M{"name": gone}).Want(http.StatusCreated)
	a := b.get("/console/network").is(http.StatusOK)
	a.lacks(t, "4 routers, 1 not connected; 2 links, 1 slow.", "3.0 ms", "300 ms, slow", "not enrolled", st.service, st.records[0].Name, st.records[2].Name, gone, `class="line slow"`, `data-live="presences,links,`)
	if n := strings.Count(a.body, `<a class="node `); n != 4 {
		t.Errorf("the picture has %d routers", n)
	}
	// Of a router in the picture one comes to its links alone.
	around := b.get("/console/network?router=" + st.records[0].ID).is(http.StatusOK)
	around.lacks(t, st.records[0].Name, st.records[1].Name)
	if around.says(st.records[2].Name) || around.says(gone) {
		t.Errorf("the picture around a router has others: %s", around.body)
	}
	b.get("/console/network?router=none").is(http.StatusNotFound)
	b.get("/console/network?group=none").is(http.StatusNotFound)
	// What is lost is seen.
	st.routers[2].Close()
	servertest.Eventually(t, soon, "the last router is away, and the link to it down", func() bool {
		a := b.get("/console/network")
		return a.says("4 routers, 2 not connected; 2 links, 1 down.") && a.says("offline") && a.says(`class="line down"`)
	})
	open(t, s).get("/console/network").is(http.StatusUnauthorized)
}

// TestNetworkOfMany has more routers than a picture: they are grouped, and a group opens.
func TestNetworkOfMany(t *testing.T) {
	s := servertest.Start(t)
	b, c := admin(t, s), s.Admin(t)
	var steps []M
	for i := range 230 {
		body := M{"name": fmt.Sprintf("r%03d", i), "roleAttributes": []string{"all-of-them"}}
		switch {
		case i < 110:
			body["roleAttributes"] = []string{"all-of-them", "berlin"}
		case i < 150:
			body["roleAttributes"] = []string{"all-of-them", "<b>tokyo</b>"}
		}
		steps = append(steps, body)
	}
	for _, body := range steps {
		c.Post("edge-routers", body).Want(http.StatusCreated)
	}
	a := b.get("/console/network").is(http.StatusOK)
	a.lacks(t, "230 routers", "grouped by a role attribute", "berlin", "<b>tokyo</b>", "0 of 40 online", "0 of 110 online")
	if strings.Contains(a.body, "<b>tokyo") || strings.Count(a.body, `<a class="node `) != 3 {
		t.Errorf("the picture is %s", a.body)
	}
	a = b.get("/console/network?group=berlin").is(http.StatusOK)
	a.lacks(t, "1–100 of 110 routers", `rel="next"`, "r000", "r099")
	if n := strings.Count(a.body, `<a class="node `); n != 100 {
		t.Errorf("the group shows %d routers", n)
	}
	a = b.get("/console/network?group=berlin&from=100").is(http.StatusOK)
	if n := strings.Count(a.body, `<a class="node `); n != 10 || !a.says("101–110 of 110") {
		t.Errorf("the rest of the group shows %d routers", n)
	}
	for _, from := range []string{"-1", "x", "99999999999999999999", "110"} {
		b.get("/console/network?group=berlin&from=" + from).is(http.StatusOK)
	}
	b.get("/console/network?group="+url.QueryEscape("<b>tokyo</b>")).is(http.StatusOK).lacks(t, "r149")
}

// TestCircuits looks at who is connected to what, and ends it.
func TestCircuits(t *testing.T) {
	s := servertest.Start(t)
	b := admin(t, s)
	b.get("/console/circuits").is(http.StatusOK).lacks(t, "Nobody is connected to anything")
	st := setStage(t, s)
	c := s.Admin(t)
	for _, filter := range []string{"", st.service, strings.ToUpper(st.service[:12]), st.user.Username, st.records[1].Name, `serviceId = "` + st.serviceID + `"`, st.circuit} {
		a := b.get("/console/circuits?filter=" + url.QueryEscape(filter)).is(http.StatusOK)
		a.lacks(t, st.service, st.user.Username, st.records[0].Name, st.records[1].Name, st.records[2].Name, "1–1 of 1", "/console/circuits/"+st.circuit+"/end")
	}
	b.get("/console/circuits?order=oldest").is(http.StatusOK).lacks(t, `aria-sort="ascending"`, st.service)
	b.get("/console/circuits?filter=nothing-like-it").is(http.StatusOK).lacks(t, "Nothing matches")
	b.get("/console/circuits?filter="+url.QueryEscape("nme = 1")).is(http.StatusBadRequest).lacks(t, `id="filter-problem"`)

	// To look ends nothing, and neither does a form of somebody else.
	end := "/console/circuits/" + st.circuit + "/end"
	a := b.get(end).is(http.StatusOK)
	a.lacks(t, "End this connection?", st.service)
	b.get("/console/circuits/"+st.circuit+"/delete").is(http.StatusOK).lacks(t, "End this connection?")
	b.get("/console/circuits/" + st.circuit).is(http.StatusOK)
	b.post(end, url.Values{}).is(http.StatusForbidden).lacks(t, "Nothing was done yet")
	b.post(end, url.Values{"token": {strings.Repeat("A", 43)}}).is(http.StatusForbidden)
	token := regexpToken.FindStringSubmatch(a.body)[1]
	b.post(end, url.Values{"token": {token}}, "Sec-Fetch-Site", "cross-site").is(http.StatusForbidden)
	open(t, s).post(end, url.Values{"token": {token}}).is(http.StatusUnauthorized)
	c.Get("/fabric/v1/circuits/" + st.circuit).Want(http.StatusOK)
	if a := b.post(end, url.Values{"token": {token}}).is(http.StatusOK); a.path != "/console/circuits" || !a.says("Nobody is connected") {
		t.Errorf("the end leads to %s: %s", a.path, a.body)
	}
	c.Get("/fabric/v1/circuits/" + st.circuit).Want(http.StatusNotFound)
	b.get(end).is(http.StatusNotFound)
	b.post(end, url.Values{"token": {token}}).is(http.StatusNotFound)
}

// TestCertificates looks at what ends when.
func TestCertificates(t *testing.T) {
	s := servertest.Start(t)
	b, c := admin(t, s), s.Admin(t)
	b.get("/console/certificates").is(http.StatusOK).lacks(t, "Root", "Intermediate", "Server", "netkeep keys rotate root", "No edge router has a certificate yet", "None is believed")
	name := servertest.Unique("partner")
	c.Post("cas", M{
		"name": name, "certPem": servertest.Certificate(t, true), "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": false, "isOttCaEnrollmentEnabled": false, "identityRoles": []string{},
	}).Want(http.StatusCreated)
	r := s.AddRouter(t)
	b.get("/console/certificates").is(http.StatusOK).lacks(t, name, "0, soon", r.Name, `/console/edge-routers/`+r.ID)
}

// TestSnapshots takes a snapshot and has it read.
func TestSnapshots(t *testing.T) {
	s := servertest.Start(t)
	b, c := admin(t, s), s.Admin(t)
	a := b.get("/console/snapshots").is(http.StatusOK)
	a.lacks(t, "There is none yet", "netkeep restore")
	token := regexpToken.FindStringSubmatch(a.body)[1]
	b.post("/console/snapshots", url.Values{}).is(http.StatusForbidden)
	b.post("/console/snapshots", url.Values{"token": {token}}, "Sec-Fetch-Site", "same-site").is(http.StatusForbidden)
	if n := c.Get("database/snapshots").Total(); n != 0 {
		t.Fatalf("%d snapshots were taken by forms of nobody", n)
	}
	a = b.post("/console/snapshots", url.Values{"token": {token}}).is(http.StatusOK)
	name := c.Get("database/snapshots").Want(http.StatusOK).List()[0]["name"].(string)
	a.lacks(t, "A snapshot was taken: "+name, "asked for", "Verify")
	// There may be one a minute: who asks for more is told why there is none.
	b.post("/console/snapshots", url.Values{"token": {token}}).is(http.StatusTooManyRequests).lacks(t, `class="problem"`, name)
	verify := "/console/snapshots/" + name + "/verify"
	b.post(verify, url.Values{}).is(http.StatusForbidden)
	b.post(verify, url.Values{"token": {token}}).is(http.StatusOK).lacks(t, name+" was read from begin to end, and is intact")
	b.get(verify).is(http.StatusOK)
	if a := b.get("/console/snapshots?taken=made-up.db"); a.says("made-up") {
		t.Errorf("an address can say that there is a snapshot: %s", a.body)
	}
	b.post("/console/snapshots/none.db/verify", url.Values{"token": {token}}).is(http.StatusNotFound)
}

// TestClusterAlone looks at the members of a network that has one controller.
func TestClusterAlone(t *testing.T) {
	b := admin(t, controller)
	b.get("/console/cluster").is(http.StatusOK).lacks(t, "netkeep cluster invite")
	for _, path := range []string{"/console/cluster/none/remove", "/console/cluster/none/promote", "/console/cluster/none/other"} {
		b.get(path).is(http.StatusNotFound)
		b.post(path, url.Values{}).is(http.StatusNotFound)
	}
}

// TestCluster has two controllers, and takes one of them out.
func TestCluster(t *testing.T) {
	s := servertest.Start(t, func(c *config.Config) { c.Cluster.Listen = "127.0.0.1:" + machine.Port(t) })
	token := s.Admin(t).Post("cluster/invitations", nil).Want(http.StatusOK).Data()["token"].(string)
	b := admin(t, s)
	if a := b.get("/console/cluster").is(http.StatusOK); a.says("Take out") || !a.says("this one") || !a.says("leads") {
		t.Errorf("one controller is shown as %s", a.body)
	}
	other, err := servertest.Open(t.TempDir(), func(c *config.Config) { c.Join, c.Cluster.Listen = token, "127.0.0.1:"+machine.Port(t) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() }) // it complains that it was taken out
	var id string
	servertest.Eventually(t, soon, "the other has a vote, and is there", func() bool {
		for _, m := range s.Admin(t).Get("cluster/members").Want(http.StatusOK).List() {
			if m["self"] == false && m["vote"] == true && m["isOnline"] == true {
				id = m["id"].(string)
			}
		}
		return id != ""
	})
	a := b.get("/console/cluster").is(http.StatusOK)
	a.lacks(t, "2 decide; all of them are there", "Take out", "/console/cluster/"+id+"/remove")
	if strings.Count(a.body, "/remove\"") != 1 || a.says("/promote") {
		t.Errorf("too much is offered: %s", a.body)
	}
	// Pages that tell of routers say whose they are, and where the others tell of theirs.
	for _, path := range []string{"network", "circuits"} {
		if path == "network" {
			s.Admin(t).Post("edge-routers", M{"name": servertest.Unique("router")}).Want(http.StatusCreated)
		}
		b.get("/console/"+path).is(http.StatusOK).lacks(t, "of the controller", other.URL+"/console/"+path)
	}
	remove := "/console/cluster/" + id + "/remove"
	a = b.get(remove).is(http.StatusOK)
	a.lacks(t, "out for good?")
	b.post(remove, url.Values{}).is(http.StatusForbidden)
	b.get("/console/cluster/" + id + "/promote").is(http.StatusNotFound)
	if n := s.Admin(t).Get("cluster/members").Total(); n != 2 {
		t.Fatalf("%d members are left", n)
	}
	if a := b.post(remove, url.Values{"token": {regexpToken.FindStringSubmatch(a.body)[1]}}).is(http.StatusOK); a.path != "/console/cluster" || a.says("Take out") {
		t.Errorf("afterwards %s is %s", a.path, a.body)
	}
	if n := s.Admin(t).Get("cluster/members").Total(); n != 1 {
		t.Errorf("%d members are left", n)
	}
}
