package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// last is the last entry of a record.
func last(t testing.TB, c *servertest.Client, id string) M {
	t.Helper()
	entries := c.Get("audit-entries?filter=" + url.QueryEscape(`targetId = "`+id+`" sort by number desc limit 1`)).Want(http.StatusOK).List()
	if len(entries) == 0 {
		t.Fatalf("there is no entry of %s", id)
	}
	return entries[0]
}

// TestHistory reads who changed what, compares moments and goes back to one.
func TestHistory(t *testing.T) {
	s := newSmall(t)
	made := fmt.Sprint(last(t, s.c, s.policy)["number"])
	s.c.Patch("service-policies/"+s.policy, M{"identityRoles": []string{"@" + s.bob, "#" + s.identityWord}}).Want(http.StatusOK)
	entry := last(t, s.c, s.policy)
	id, number := entry["id"].(string), fmt.Sprint(entry["number"])
	for path, want := range map[string][]string{
		"/console/history": {"@" + s.bobName, s.policyName, "updated", "Default Admin"},
		"/console/history?who=Default+Admin&kind=service-policy&name=" + s.policyName:  {"1–2 of 2"},
		"/console/history?name=" + s.policyName + "&since=2020-01-01&until=2099-01-01": nil,
		"/console/history?name=" + s.policyName + "&since=2020-01-01+00:00":            {"1–2 of 2"},
		"/console/history?name=" + s.policyName + "&until=2020-01-01T00:00:00Z":        {"Nothing matches"},
		"/console/service-policies/" + s.policy + "/history":                           {"History of " + s.policyName, "1–2 of 2", "created", "updated"},
		"/console/history/" + id:                                                   {"Change " + number, "@" + s.bobName, "#" + s.identityWord, "/console/history/" + id + "/undo", "patchServicePolicy"},
		"/console/history?at=" + number:                                            {"/console/services?at=" + number},
		"/console/difference?since=" + made + "&until=" + number:                   {"1 changed", "@" + s.bobName, s.bobName, s.webName, "1 gained", "0 lost"},
		"/console/service-policies/" + s.policy + "?at=" + made:                    {"after audit entry " + made, "#" + s.identityWord, "Show the present"},
		"/console/service-policies?at=" + made + "&filter=" + s.policyName:         {"after audit entry " + made, s.policy + "?at=" + made},
		"/console/identities/" + s.ann + "/services?at=" + made:                    {s.webName},
		"/console/access?identity=" + s.bob + "&at=" + made:                        {"No service policy leads"},
		"/console/access?identity=" + s.bob:                                        {s.webName},
		"/console/explain?identity=" + s.bob + "&service=" + s.web + "&at=" + made: {s.bobName + " could not use " + s.webName, "Nothing is known in the past of"},
	} {
		if want == nil {
			s.b.get(path).is(http.StatusBadRequest)
			continue
		}
		a := s.b.get(path).is(http.StatusOK)
		for _, text := range want {
			if !a.says(text) {
				t.Errorf("%s does not say %q: %s", path, text, a.body)
			}
		}
	}
	if a := s.b.get("/console/service-policies/" + s.policy + "?at=" + made); a.says("@"+s.bobName) || a.says("/edit") || a.says("/delete") {
		t.Errorf("the past is %s", a.body)
	}
	if got := s.b.get("/console/difference?since=" + made + "&until=" + number).moved(); len(got) != 1 || !got[s.bobName+" gains use "+s.webName] {
		t.Errorf("the difference gives %v", got)
	}
	s.c.Delete("service-policies/" + s.policy).Want(http.StatusOK)
	if a := s.b.get("/console/service-policies/" + s.policy + "/history").is(http.StatusOK); !a.says("deleted") || !a.says("1–3 of 3") {
		t.Errorf("the history of one that is gone is %s", a.body)
	}
	s.b.get("/console/service-policies/" + s.policy + "?at=" + number).is(http.StatusOK)
}

// TestLately has the overview tell of changes alone, and entries name what a person did in
// a form, not how the console asks for it.
func TestLately(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	name := servertest.Unique("lately")
	id := c.Post("services", M{"name": name, "encryptionRequired": true}).Want(http.StatusCreated).ID()
	open(t, controller).login(servertest.Username, "not the password").is(http.StatusUnauthorized)
	action, form := b.get("/console/services/" + id + "/edit").form(t)
	form.Set("f.roleAttributes", "books")
	b.save(action, form)
	servertest.Eventually(t, 0, "an entry of the login that was refused", func() bool {
		return len(c.Get("audit-entries?filter="+url.QueryEscape(`event = "login-refused"`)).Want(http.StatusOK).List()) > 0
	})
	_, lately, _ := strings.Cut(b.get("/console/").is(http.StatusOK).body, "Changed lately")
	lately, _, _ = strings.Cut(lately, "</section>")
	if !strings.Contains(lately, name) || strings.Contains(lately, "login") {
		t.Errorf("changed lately is %s", lately)
	}
	if entry := last(t, c, id); entry["operation"] != "patchService" {
		t.Errorf("the entry of a form is %v", entry)
	}
}

// TestUndo takes changes back, shows what is in the way, and does nothing that was not
// shown.
func TestUndo(t *testing.T) {
	s := newSmall(t)
	roles := func() string { return fmt.Sprint(s.c.Get("service-policies/" + s.policy).At("data.identityRoles")) }
	was := roles()
	s.c.Patch("service-policies/"+s.policy, M{"identityRoles": []string{"@" + s.bob}}).Want(http.StatusOK)
	is, id := roles(), last(t, s.c, s.policy)["id"].(string)
	path := "/console/history/" + id + "/undo"
	page := s.b.get(path).is(http.StatusOK)
	if got := page.moved(); len(got) != 2 || !got[s.bobName+" loses use "+s.webName] || !got[s.annName+" gains use "+s.webName] {
		t.Errorf("to take it back gives %v: %s", got, page.body)
	}
	form := page.hidden(t, path)
	s.b.get(path + "?token=" + form.Get("token") + "&digest=" + form.Get("digest")).is(http.StatusOK)
	s.b.post(path, form, "Sec-Fetch-Site", "same-site").is(http.StatusForbidden)
	s.b.post(path, url.Values{"digest": form["digest"]}).is(http.StatusForbidden)
	s.b.post(path, url.Values{"token": form["token"], "digest": {strings.Repeat("0", 64)}}).is(http.StatusConflict)
	if roles() != is {
		t.Fatalf("the roles are %s", roles())
	}
	if a := s.b.post(path, form).is(http.StatusOK); a.path != "/console/service-policies/"+s.policy+"/history" || roles() != was {
		t.Errorf("it leads to %s, and the roles are %s", a.path, roles())
	}

	// It is taken back already, and what was changed since is in the way.
	s.b.post(path, form).is(http.StatusConflict)
	s.c.Patch("service-policies/"+s.policy, M{"identityRoles": []string{"#" + servertest.Unique("others")}}).Want(http.StatusOK)
	if a := s.b.get(path).is(http.StatusOK); !a.says("Identity roles was changed since.") || a.says("Take it back</button>") {
		t.Errorf("the page is %s", a.body)
	}

	// A record that is gone comes back, and one that was made goes.
	s.c.Delete("services/" + s.mail).Want(http.StatusOK)
	path = "/console/history/" + last(t, s.c, s.mail)["id"].(string) + "/undo"
	page = s.b.get(path).is(http.StatusOK)
	if !page.says("It gets another id") || !page.says("is created") {
		t.Errorf("the page is %s", page.body)
	}
	s.b.post(path, page.hidden(t, path)).is(http.StatusOK)
	if n := s.c.Get("services?filter=" + url.QueryEscape(`name = "`+s.mailName+`"`)).Total(); n != 1 {
		t.Errorf("there are %d of them", n)
	}

	// A login is nothing to take back.
	entries := s.c.Get("audit-entries?filter=" + url.QueryEscape(`event = "logged-in" sort by number desc limit 1`)).Want(http.StatusOK).List()
	if len(entries) == 1 {
		login := "/console/history/" + entries[0]["id"].(string)
		if a := s.b.get(login).is(http.StatusOK); a.says("Take it back") {
			t.Errorf("the page of a login is %s", a.body)
		}
		s.b.get(login + "/undo").is(http.StatusBadRequest)
	}
}

// TestReasonsOfStrangers asks for the pages without a session, and as somebody who is no
// admin.
func TestReasonsOfStrangers(t *testing.T) {
	s := newSmall(t)
	u := controller.AddUser(t, false)
	other := open(t, controller)
	other.login(u.Username, u.Password)
	for _, path := range []string{
		"/console/access?identity=" + s.ann, "/console/explain?identity=" + s.ann + "&service=" + s.web, "/console/history", "/console/difference?since=1",
		"/console/service-policies/" + s.policy + "/history", "/console/services?at=1",
		"/console/explain/change?identity=" + s.bob + "&service=" + s.web + "&link=service-policy",
	} {
		open(t, controller).get(path).is(http.StatusUnauthorized)
		if a := other.get(path); a.says(s.webName) || a.says(s.policyName) || a.StatusCode < 400 {
			t.Errorf("%s is shown to somebody else: %d %s", path, a.StatusCode, a.body)
		}
	}
}

// TestHostileReasons has names that are code on the pages that tell who may use what.
func TestHostileReasons(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	for _, text := range hostile {
		name := text + servertest.Unique("x")
		attribute := strings.ReplaceAll(text, " ", "")
		who := c.Post("identities", M{"name": name, "type": "User", "isAdmin": false, "roleAttributes": []string{attribute}}).Want(http.StatusCreated).ID()
		service := c.Post("services", M{"name": name, "encryptionRequired": true, "roleAttributes": []string{attribute}}).Want(http.StatusCreated).ID()
		policy := c.Post("service-policies", M{"name": name, "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#" + attribute}, "serviceRoles": []string{"@" + service}}).Want(http.StatusCreated).ID()
		c.Patch("service-policies/"+policy, M{"identityRoles": []string{"@" + who}}).Want(http.StatusOK)
		id := last(t, c, policy)["id"].(string)
		escaped := url.QueryEscape(text)
		for _, path := range []string{
			"/console/access?identity=" + who, "/console/access?service=" + service, "/console/access?identity=" + escaped, "/console/access?identity=" + who + "&at=" + escaped,
			"/console/explain?identity=" + who + "&service=" + service, "/console/explain?identity=" + escaped + "&service=" + escaped + "&type=" + escaped,
			"/console/explain?type=Bind&identity=" + who + "&service=" + service, "/console/explain/change?type=Bind&link=service-policy&identity=" + who + "&service=" + service,
			"/console/history", "/console/history?who=" + escaped + "&kind=" + escaped + "&name=" + escaped, "/console/history?since=" + escaped + "&at=" + escaped,
			"/console/history/" + id, "/console/history/" + id + "/undo", "/console/service-policies/" + policy + "/history", "/console/difference?since=" + escaped,
			"/console/services?at=" + escaped, "/console/difference?since=" + fmt.Sprint(last(t, c, policy)["number"].(float64)-1),
		} {
			a := b.get(path)
			for _, live := range []string{"<script>alert", "<img src=x", "<svg onload", "' onmouseover='alert", `href="javascript:`, `href="` + text} {
				if strings.Contains(a.body, live) {
					t.Errorf("%s takes %q for code", path, text)
				}
			}
			if a.StatusCode >= http.StatusInternalServerError {
				t.Errorf("%s is answered with %s", path, a.Status)
			}
		}
		c.Delete("identities/" + who).Want(http.StatusOK)
		c.Delete("services/" + service).Want(http.StatusOK)
		c.Delete("service-policies/" + policy).Want(http.StatusOK)
	}
}
