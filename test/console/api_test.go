package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// TestAPIPages opens the page of every operation that there is.
func TestAPIPages(t *testing.T) {
	b := admin(t, controller)
	index := b.get("/console/api").is(http.StatusOK)
	if len(index.body) > 150_000 {
		t.Errorf("the list of operations has %d bytes", len(index.body))
	}
	for name, root := range map[string]string{"management": api.ManagementRoot, "fabric": api.FabricRoot} {
		for _, op := range controller.Operations(root) {
			path := "/console/api/" + name + "/" + op.OperationID
			if !index.says(`href="` + path + `"`) {
				t.Errorf("%s is not in the list", path)
			}
			a := b.get(path).is(http.StatusOK)
			if !a.says(op.Description) {
				t.Errorf("%s does not say what it does", path)
			}
			for _, p := range op.Parameters {
				if !a.says("<code>" + p.Value.Name + "</code>") {
					t.Errorf("%s does not say what %s is", path, p.Value.Name)
				}
			}
		}
	}
	if a := b.get("/console/api?q=REFRESH").is(http.StatusOK); !a.says("refreshEnrollment") || a.says("listServices") {
		t.Errorf("a word finds %s", a.body)
	}
	if a := b.get("/console/api?q=" + url.QueryEscape("<script>alert(1)")).is(http.StatusOK); strings.Contains(a.body, "<script>alert") {
		t.Error("a word is taken for code")
	}
	for _, path := range []string{"/console/api/management", "/console/api/none/listServices", "/console/api/management/none", "/console/api/management/listServices/x"} {
		b.get(path).is(http.StatusNotFound)
	}
	open(t, controller).get("/console/api").is(http.StatusUnauthorized)
}

// TestTryOperation sends requests from pages.
func TestTryOperation(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	name := servertest.Unique("tried")
	at := "/console/api/management/"
	a := b.get(at + "listServices?run=yes&p.limit=1&p.filter=" + url.QueryEscape(`name = "`+name+`"`)).is(http.StatusOK)
	if !a.says("200 OK") || !a.says(`"totalCount": 0`) || !a.says("netkeep-revision") {
		t.Errorf("the answer is %s", a.body)
	}
	if a := b.get(at + "listServices?run=yes&p.filter=" + url.QueryEscape(`nme = "x"`)).is(http.StatusOK); !a.says("400 Bad Request") || !a.says("INVALID_FILTER") {
		t.Errorf("the answer is %s", a.body)
	}

	// What changes something is looked at once more, and counts with a token alone.
	count := func() int { return c.Get("services?filter=" + url.QueryEscape(`name = "`+name+`"`)).Total() }
	action, form := b.get(at + "createService").is(http.StatusOK).form(t)
	if !strings.Contains(form.Get("body"), `"name": ""`) {
		t.Errorf("a body begins with %s", form.Get("body"))
	}
	form.Set("body", `{"name": "`+name+`", "encryptionRequired": true, "x": 1}`)
	forged := url.Values{"sure": {"yes"}, "body": form["body"], "token": {"x"}}
	b.post(action, forged).is(http.StatusForbidden)
	b.get(action + "?run=yes&sure=yes&body=" + url.QueryEscape(form.Get("body"))).is(http.StatusOK)
	a = b.post(action, form).is(http.StatusOK)
	if count() != 0 || !a.says("Nothing was sent yet") || !a.says(name) {
		t.Fatalf("there are %d before anybody was sure, and the page is %s", count(), a.body)
	}
	action, form = a.form(t)
	a = b.post(action, form).is(http.StatusOK)
	if count() != 1 || !a.says("201 Created") || !a.says(`net-ignored`) {
		t.Errorf("there are %d, and the page is %s", count(), a.body)
	}
	id := c.Get("services?filter=" + url.QueryEscape(`name = "`+name+`"`)).At("data.0.id").(string)
	for _, wrong := range []string{"", "..", "a/b"} {
		if a := b.get(at + "detailService?run=yes&p.id=" + url.QueryEscape(wrong)).is(http.StatusBadRequest); !a.says("Nothing was sent") {
			t.Errorf("%q: %s", wrong, a.body)
		}
	}
	if a := b.get(at + "detailService?run=yes&p.id=" + id).is(http.StatusOK); !a.says(name) {
		t.Errorf("the answer is %s", a.body)
	}

	// The token of the session is in no page, whatever is asked for.
	if a := b.get(at + "getCurrentAPISession?run=yes").is(http.StatusOK); !a.says("200 OK") || a.says(b.held()) {
		t.Errorf("the answer is %s", a.body)
	}
	// What goes on for ever is not begun, and what is secret not shown once more.
	events := controller.Operations(api.ManagementRoot)["GET "+api.ManagementRoot+"/events"]
	if events == nil {
		t.Fatal("there are no events")
	}
	if a := b.get(at + events.OperationID + "?run=yes").is(http.StatusOK); !a.says("for as long as somebody listens") {
		t.Errorf("the page is %s", a.body)
	}
	a = b.post(at+"authenticate", url.Values{"token": {regexpToken.FindStringSubmatch(a.body)[1]}, "sure": {"yes"}, "p.method": {"password"}, "body": {`{"username": "x", "password": "a secret word"}`}}).is(http.StatusBadRequest)
	if a.says("a secret word") || !a.says("Its body holds a secret") {
		t.Errorf("the page is %s", a.body)
	}

	// An answer is shown up to a bound.
	big := strings.Repeat("x", 200_000)
	c.Patch("services/"+id, M{"tags": M{"big": big[:4000]}})
	for range 40 {
		c.Post("services", M{"name": servertest.Unique(name), "encryptionRequired": true, "tags": M{"big": big[:4000]}})
	}
	if a := b.get(at + "listServices?run=yes&p.limit=500&p.filter=" + url.QueryEscape(`name contains "`+name+`"`)).is(http.StatusOK); len(a.body) > 120_000 || !a.says("bytes more") {
		t.Errorf("the page has %d bytes", len(a.body))
	}
}
