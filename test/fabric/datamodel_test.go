package fabric

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// grouped makes a router one of the second generation.
func grouped(o *scripted.Options) { o.Grouped = true }

func subscribe(t *testing.T, r *scripted.Router, ask message.SubscribeToDataModel) {
	t.Helper()
	if err := r.Subscribe(ask); err != nil {
		t.Fatal(err)
	}
}

// heard is every byte that a router was told of the model.
type heard struct {
	mu     sync.Mutex
	frames []*wire.Frame
}

func (h *heard) listen(o *scripted.Options) {
	o.Seen = func(f *wire.Frame) {
		if f.Type == message.TypeDataState || f.Type == message.TypeDataChanges {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.frames = append(h.frames, f)
		}
	}
}

// names reports which of some texts it was told.
func (h *heard) names(texts ...string) (found []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, text := range texts {
		if slices.ContainsFunc(h.frames, func(f *wire.Frame) bool { return bytes.Contains(f.Body, []byte(text)) }) {
			found = append(found, text)
		}
	}
	return found
}

// hosting is a service that a router may host by itself.
type hosting struct {
	*servertest.Client
	router                  *router
	name, service, config   string
	policy, secret, elsesID string
}

// addHosting makes the service, and another that is for somebody else.
func addHosting(t *testing.T, s *servertest.Server) *hosting {
	t.Helper()
	h := &hosting{Client: s.Admin(t), router: addRouter(t, s), name: servertest.Unique("hosted"), secret: servertest.Unique("secret")}
	h.Patch(management+"edge-routers/"+h.router.ID, M{"isTunnelerEnabled": true}).Want(200)
	typ := h.Get(management + `config-types?filter=name="host.v1"`).Want(200).List()[0]["id"].(string)
	config := func(address string) string {
		return h.Post(management+"configs", M{
			"name": servertest.Unique("config"), "configTypeId": typ, "data": M{"protocol": "tcp", "address": address, "port": 80},
		}).Want(201).ID()
	}
	service := func(name, config string) string {
		return h.Post(management+"services", M{"name": name, "encryptionRequired": true, "configs": []string{config}}).Want(201).ID()
	}
	h.config = config("first.example.com")
	h.service = service(h.name, h.config)
	other := s.AddUser(t, false)
	h.elsesID = other.ID
	policy := func(name, identity, service string) string {
		return h.Post(management+"service-policies", M{
			"name": name, "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{"@" + identity}, "serviceRoles": []string{"@" + service},
		}).Want(201).ID()
	}
	h.policy = policy(servertest.Unique("policy"), h.router.ID, h.service)
	policy(h.secret+"-policy", other.ID, service(h.secret+"-service", config(h.secret+".example.com")))
	return h
}

// TestDataModel has a router learn what it may host, and follow every change of
// that; and nothing else.
func TestDataModel(t *testing.T) {
	s := servertest.Start(t)
	h := addHosting(t, s)
	var told heard
	r := h.router.Connect(t, grouped, told.listen)
	subscribe(t, r, message.SubscribeToDataModel{Seconds: 300, Subscription: "first"})
	follows := func(what, address string, services ...string) {
		t.Helper()
		await(t, r, what, func(k scripted.Known) bool {
			var config M
			_ = json.Unmarshal(k.Model.Configs[h.config].Data, &config)
			return slices.Equal(k.Model.Usable(h.router.ID, message.PolicyBind), services) && (address == "" || config["address"] == address)
		})
	}
	follows("what it may host", "first.example.com", h.name)
	h.Patch(management+"configs/"+h.config, M{"data": M{"protocol": "tcp", "address": "second.example.com", "port": 80}}).Want(200)
	follows("another config", "second.example.com", h.name)
	h.Patch(management+"service-policies/"+h.policy, M{"serviceRoles": []string{}}).Want(200)
	follows("nothing", "")
	h.Patch(management+"service-policies/"+h.policy, M{"serviceRoles": []string{"@" + h.service}}).Want(200)
	follows("the service again", "second.example.com", h.name)

	check := h.Post(management+"posture-checks", M{"name": h.secret + "-check", "typeId": "MAC", "macAddresses": []string{"0a1b2c3d4e5f"}}).Want(201).ID()
	h.Patch(management+"service-policies/"+h.policy, M{"postureCheckRoles": []string{"@" + check}}).Want(200)
	follows("nothing that it cannot pass a check for", "")
	h.Patch(management+"service-policies/"+h.policy, M{"postureCheckRoles": []string{}}).Want(200)
	follows("without the check", "second.example.com", h.name)

	h.Patch(management+"edge-routers/"+h.router.ID, M{"isTunnelerEnabled": false}).Want(200)
	await(t, r, "no client any more", func(k scripted.Known) bool {
		m := k.Model
		return len(m.Identities)+len(m.Services)+len(m.Policies)+len(m.Configs)+len(m.Types) == 0 && len(m.Keys) == 2 && m.States == 1
	})
	if found := told.names(h.secret, h.elsesID, check, "0a1b2c3d4e5f", h.policy); found != nil {
		t.Errorf("it was told of %q, which is nothing to it", found)
	}
	if found := told.names(h.service, h.name); len(found) != 2 {
		t.Errorf("of what it was told only %q is found: the test does not see what it should", found)
	}
}

// TestDataModelOfOthers subscribes with routers that may use nothing: they learn
// the keys alone.
func TestDataModelOfOthers(t *testing.T) {
	s := servertest.Start(t)
	h := addHosting(t, s)
	h.Patch(management+"service-policies/"+h.policy, M{"identityRoles": []string{"#all"}}).Want(200)
	var told heard
	r := addRouter(t, s).Connect(t, grouped, told.listen)
	subscribe(t, r, message.SubscribeToDataModel{Seconds: 300})
	keysAlone := func(k scripted.Known) bool {
		m := k.Model
		return len(m.Keys) == 2 && len(m.Identities)+len(m.Services)+len(m.Policies)+len(m.Configs)+len(m.Types) == 0
	}
	await(t, r, "the keys", keysAlone)
	h.Patch(management+"configs/"+h.config, M{"data": M{"protocol": "tcp", "address": "second.example.com", "port": 80}}).Want(200)
	newAuthority(t).register(t, h.Client)
	await(t, r, "another key", func(k scripted.Known) bool { return len(k.Model.Keys) == 3 })
	if found := told.names(h.name, h.service, h.config, h.router.ID, "example.com"); found != nil {
		t.Errorf("it was told of %q, which is nothing to it", found)
	}
}

// TestDataModelResumed has a router renew, come back, and come back to a
// controller whose store was restored: what it knows is newer than that, and
// wrong.
func TestDataModelResumed(t *testing.T) {
	s := servertest.Start(t)
	h := addHosting(t, s)
	file := h.Post(management+"database/snapshot", nil).Want(200).At("data.file").(string)

	r := h.router.Connect(t, grouped)
	var knows scripted.Model
	knowing := func(what, name string, states int) {
		t.Helper()
		await(t, r, what, func(k scripted.Known) bool {
			knows = *k.Model
			return knows.States == states && knows.Services[h.service].Name == name
		})
	}
	ask := func(subscription string, renew bool) {
		t.Helper()
		subscribe(t, r, message.SubscribeToDataModel{
			Index: knows.Index, Timeline: knows.Timeline, Renew: renew, Seconds: 300, Subscription: subscription,
		})
	}
	ask("first", false)
	knowing("everything", h.name, 1)
	ask("first", true)
	h.Patch(management+"services/"+h.service, M{"name": "another-" + h.name}).Want(200)
	knowing("a change", "another-"+h.name, 1)

	back := func(subscription string) {
		t.Helper()
		r.Close()
		<-r.Done()
		r = h.router.Connect(t, grouped, func(o *scripted.Options) { o.Model = knows })
		ask(subscription, false)
	}
	back("second")
	h.Patch(management+"services/"+h.service, M{"name": "third-" + h.name}).Want(200)
	knowing("the difference", "third-"+h.name, 1)

	before := knows
	h.router.Server = restore(t, s, file)
	back("third")
	knowing("everything as it was", h.name, 2)
	if knows.Timeline == before.Timeline {
		t.Error("the restored network has the same time line")
	}
}

// restore starts a controller with a snapshot of another one.
func restore(t *testing.T, s *servertest.Server, file string) *servertest.Server {
	t.Helper()
	data := filepath.Join(t.TempDir(), "restored")
	if _, _, err := server.Restore(t.Context(), data, filepath.Join(s.Config.Data, "snapshots", filepath.Base(file))); err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(data, "pki")
	if err := os.CopyFS(keys, os.DirFS(filepath.Join(s.Config.Data, "pki"))); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(keys)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Chmod(filepath.Join(keys, f.Name()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	return servertest.Start(t, func(c *config.Config) { c.Data = data })
}
