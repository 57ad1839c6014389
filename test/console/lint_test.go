package console

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// TestLint shows findings with the commands that mend them, and which assertions hold, to
// those who may look.
func TestLint(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	b := admin(t, s)
	b.get("/console/lint").is(http.StatusOK).lacks(t, "Nothing was found that was not meant", "There are none that are about somebody", "policy-shadowed")
	service := c.Post("services", M{"name": "<wiki>", "encryptionRequired": true}).Want(http.StatusCreated).ID()
	ann := c.Post("identities", M{"name": "ann", "type": "User", "isAdmin": false, "roleAttributes": []string{"visitors"}}).Want(http.StatusCreated).ID()
	c.Post("assertions?override=true", M{"name": "people-read", "expect": "always", "identityRoles": []string{"#all"}, "serviceRoles": []string{"@" + service}}).Want(http.StatusCreated)
	c.Post("assertions", M{"name": "nobody-there", "expect": "never", "identityRoles": []string{"#visitors"}, "serviceRoles": []string{"#all"}}).Want(http.StatusCreated)
	c.Patch("identities/"+ann, M{"roleAttributes": []string{}}).Want(http.StatusOK)
	a := b.get("/console/lint").is(http.StatusOK)
	a.lacks(t, "service-not-dialed", "may be dialed by nobody", "netkeep delete service '<wiki>' --yes", `href="/console/services/`+service+`"`, "netkeep invite ann --no-qr", "people-read", "broken", "nobody-there")

	// Everybody sees it who may see who may use what, and whatever they may beside that.
	with := func(roles M) *browser {
		u := s.AddUser(t, false)
		role := c.Post("admin-roles", roles).Want(http.StatusCreated).ID()
		c.Patch("identities/"+u.ID, M{"adminRoles": []string{role}}).Want(http.StatusOK)
		b := open(t, s)
		b.login(u.Username, u.Password).is(http.StatusOK)
		return b
	}
	some := with(M{"name": "looks", "allows": []string{"access:read"}}).get("/console/lint").is(http.StatusOK)
	if some.lacks(t, "service-not-dialed"); some.says("people-read") {
		t.Error("somebody sees assertions who may not")
	}
	if a := with(M{"name": "web", "allows": []string{"service:*"}, "onlyAttributes": []string{"web"}}).get("/console/lint").is(http.StatusForbidden); !a.says("access:read") || a.says("wiki") {
		t.Errorf("who may not look sees %s", a.body)
	}
}

// TestOverrideDelete deletes what an assertion needs, on its page and by taking a change
// back: who may override is offered to, and nobody else gets through.
func TestOverrideDelete(t *testing.T) {
	c, word := controller.Admin(t), servertest.Unique("reads")
	roles := []string{"#" + word}
	c.Post("identities", M{"name": word, "type": "User", "isAdmin": false, "roleAttributes": []string{word}}).Want(http.StatusCreated)
	c.Post("services", M{"name": word, "encryptionRequired": true, "roleAttributes": []string{word}}).Want(http.StatusCreated)
	policy := c.Post("service-policies", M{"name": word, "type": "Dial", "semantic": "AnyOf", "identityRoles": roles, "serviceRoles": roles}).Want(http.StatusCreated).ID()
	made := last(t, c, policy)
	guard := c.Post("assertions", M{"name": word, "expect": "always", "identityRoles": roles, "serviceRoles": roles}).Want(http.StatusCreated).ID()
	t.Cleanup(func() { c.Delete("assertions/" + guard) })

	undo := "/console/history/" + made["id"].(string) + "/undo"
	page := "/console/service-policies/" + policy + "/delete"
	author, b := holder(t, "policy-author"), admin(t, controller)
	for _, path := range []string{page, undo} {
		offer := `formaction="` + path + `?override=1"`
		a := author.get(path).is(http.StatusOK)
		if a.lacks(t, "Assertions that would not hold", word); a.says(offer) || a.says(`type="submit">Delete</button>`) || a.says(`type="submit">Take it back</button>`) {
			t.Errorf("%s lets somebody go on who may not: %s", path, a.body)
		}
		if a := author.post(path+"?override=1", a.hidden(t, path)); a.StatusCode == http.StatusOK || !a.says("assertion:override") {
			t.Errorf("%s: somebody overrides who may not: %d %s", path, a.StatusCode, a.body)
		}
		b.get(path).is(http.StatusOK).lacks(t, offer, "though the assertion breaks")
	}
	c.Get("service-policies/" + policy).Want(http.StatusOK)
	form := b.get(page).hidden(t, page)
	if a := b.post(page, form).is(http.StatusConflict); !a.says("would not hold") {
		t.Errorf("without override it is %s", a.body)
	}
	b.post(page+"?override=1", b.get(page).hidden(t, page)).is(http.StatusOK)
	c.Get("service-policies/" + policy).Want(http.StatusNotFound)
}

// TestDecide approves and denies requests for access on their pages.
func TestDecide(t *testing.T) {
	c, word := controller.Admin(t), servertest.Unique("payroll")
	c.Post("services", M{"name": word, "encryptionRequired": true, "requests": M{"attribute": word, "approvers": "leads-" + word}}).Want(http.StatusCreated)
	ask := func() string {
		u := controller.AddUser(t, false)
		who := controller.Login(t, u.Username, u.Password)
		return who.Post(api.ClientRoot+"/access-requests", M{"service": word, "minutes": 60, "reason": "quarter end"}).Want(http.StatusCreated).ID()
	}
	b := admin(t, controller)
	for _, verb := range []string{"approve", "deny"} {
		id := ask()
		record := "/console/access-requests/" + id
		page := record + "/" + verb
		b.get(record).is(http.StatusOK).lacks(t, `href="`+page+`"`)
		if a := holder(t, "viewer").get(page).is(http.StatusOK); !a.says("quarter end") {
			t.Errorf("it is not said what for: %s", a.body)
		}
		viewer := holder(t, "viewer")
		if a := viewer.post(page, viewer.get(page).hidden(t, page)); a.StatusCode == http.StatusOK {
			t.Errorf("a viewer may %s", verb)
		}
		form := b.get(page).is(http.StatusOK).hidden(t, page)
		if verb == "deny" {
			form.Set("answer", "ask in June")
		}
		b.post(page, form).is(http.StatusOK)
		if got := c.Get("access-requests/" + id).Data(); got["standing"] != map[string]string{"approve": "approved", "deny": "denied"}[verb] || verb == "deny" && got["answer"] != "ask in June" {
			t.Errorf("after %s it is %v", verb, got)
		}
		if a := b.get(record).is(http.StatusOK); a.says(`href="` + page + `"`) {
			t.Error("what is decided can be decided again")
		}
		if a := b.get(page).is(http.StatusOK); !a.says("there is nothing to decide") {
			t.Errorf("the page of what is decided is %s", a.body)
		}
	}
}

// TestAlertReceivers shows who is sent alerts, and tries them.
func TestAlertReceivers(t *testing.T) {
	admin(t, controller).get("/console/alerts").is(http.StatusOK).lacks(t, "Nobody is sent any")
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("correct-horse-battery-staple\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var takes atomic.Int64
	takes.Store(http.StatusOK)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(takes.Load())) }))
	defer hook.Close()
	s := servertest.Start(t, func(cfg *config.Config) {
		cfg.Alerts = []config.Webhook{{Name: "ops", URL: hook.URL + "/secret-path", SecretFile: file}}
	})
	b := admin(t, s)
	a := b.get("/console/alerts").is(http.StatusOK)
	if a.lacks(t, "ops", "locked-out", "/console/alerts/ops/test"); a.says("secret-path") {
		t.Error("what lets others send is shown")
	}
	const test = "/console/alerts/ops/test"
	b.post(test, a.hidden(t, test)).is(http.StatusOK).lacks(t, "ops took a test alert.")
	takes.Store(http.StatusTeapot)
	b.post(test, a.hidden(t, test)).is(http.StatusOK).lacks(t, "ops did not take a test alert", "418")
	u := s.AddUser(t, false)
	role := s.Admin(t).Post("admin-roles", M{"name": "web", "allows": []string{"service:read"}}).Want(http.StatusCreated).ID()
	s.Admin(t).Patch("identities/"+u.ID, M{"adminRoles": []string{role}}).Want(http.StatusOK)
	other := open(t, s)
	other.login(u.Username, u.Password).is(http.StatusOK)
	other.get("/console/alerts").is(http.StatusForbidden).lacks(t, "alert:read")
}
