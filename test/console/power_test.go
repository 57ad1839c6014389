package console

import (
	"net/http"
	"net/url"
	"testing"

	"netkeep.internal/test/servertest"
)

// holder is somebody logged in who has an admin role.
func holder(t *testing.T, role string) *browser {
	t.Helper()
	u := controller.AddUser(t, false)
	controller.Admin(t).Patch("identities/"+u.ID, servertest.M{"adminRoles": []string{role}}).Want(http.StatusOK)
	b := open(t, controller)
	b.login(u.Username, u.Password).is(http.StatusOK)
	return b
}

// TestFirstPageOfRoles has everybody with a role see a first page: how the controller is,
// or else what there is that they may see.
func TestFirstPageOfRoles(t *testing.T) {
	for _, role := range []string{"viewer", "auditor", "helpdesk", "operator", "policy-author"} {
		if a := holder(t, role).get("/console/").is(http.StatusOK); !a.says("Running for") || !a.says("Changed lately") {
			t.Errorf("the first page of %s is %s", role, a.body)
		}
	}
	team := servertest.Unique("team")
	c := controller.Admin(t)
	role := c.Post("admin-roles", servertest.M{"name": team, "allows": []string{"service:*"}, "onlyAttributes": []string{team}}).Want(http.StatusCreated).ID()
	c.Post("services", servertest.M{"name": servertest.Unique("others"), "encryptionRequired": true}).Want(http.StatusCreated)
	c.Post("services", servertest.M{"name": servertest.Unique("own"), "encryptionRequired": true, "roleAttributes": []string{team}}).Want(http.StatusCreated)
	b := holder(t, role)
	a := b.get("/console/").is(http.StatusOK)
	if !a.says(`<a href="/console/services"><span class="number">1</span> <span class="name">Services</span></a>`) || !a.says(`<a href="/console/services/new">Create service</a>`) ||
		!a.says("service:create, service:delete, service:read, service:update") || a.says(`class="name">Identities`) || a.says("Running for") {
		t.Errorf("the first page of a role with a few services is %s", a.body)
	}

	// What is refused says what is missing, and the form is there with what was typed.
	action, form := b.get("/console/services/new").form(t)
	form.Set("f.name", "typed-"+team)
	if a := b.post(action, form).is(http.StatusForbidden); !a.says("have the power service:create over some services only") || !a.says("typed-"+team) {
		t.Errorf("a service that is not the team's: %s", a.body)
	}
	if a := b.get("/console/identities").is(http.StatusForbidden); !a.says("needs the power identity:read") {
		t.Errorf("a table that is not theirs: %s", a.body)
	}
}

// TestOverride has forms refused by an assertion: who may override is offered to, and
// nobody else is, nor gets through without being.
func TestOverride(t *testing.T) {
	c, word := controller.Admin(t), servertest.Unique("out")
	c.Post("identities", servertest.M{"name": servertest.Unique("eve"), "type": "User", "isAdmin": false, "roleAttributes": []string{word}}).Want(http.StatusCreated)
	c.Post("services", servertest.M{"name": servertest.Unique("payroll"), "encryptionRequired": true, "roleAttributes": []string{word}}).Want(http.StatusCreated)
	guard := c.Post("assertions", servertest.M{"name": word, "expect": "never", "identityRoles": []string{"#" + word}, "serviceRoles": []string{"#" + word}}).Want(http.StatusCreated).ID()
	t.Cleanup(func() { c.Delete("assertions/" + guard) })

	create := func(b *browser, name string) (refused *answer, again func() *answer) {
		action, form := b.get("/console/service-policies/new").form(t)
		form.Set("f.name", name)
		form.Set("f.type", "Dial")
		form.Set("f.identityRoles", "#"+word)
		form.Set("f.serviceRoles", "#"+word)
		refused = b.post(action, form).is(http.StatusConflict)
		if !refused.says("would not hold") {
			t.Errorf("it is not said which assertion breaks: %s", refused.body)
		}
		return refused, func() *answer { return b.post(action+"?override=1", form) }
	}
	const offer = `formaction="/console/service-policies/new?override=1"`
	refused, again := create(holder(t, "policy-author"), word+"-author")
	if refused.says(offer) {
		t.Error("somebody is offered to override who may not")
	}
	if a := again(); a.StatusCode == http.StatusOK || !a.says("assertion:override") {
		t.Errorf("somebody overrides who may not: %d %s", a.StatusCode, a.body)
	}
	refused, again = create(admin(t, controller), word+"-admin")
	if !refused.says(offer) {
		t.Errorf("an admin is not offered to override: %s", refused.body)
	}
	again().is(http.StatusOK)
	if n := c.Get("service-policies?filter=" + url.QueryEscape(`name contains "`+word+`"`)).Total(); n != 1 {
		t.Errorf("%d policies were made, and one was meant", n)
	}
}
