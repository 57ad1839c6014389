package console

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// small is a network of which everybody knows who may use what.
type small struct {
	b *browser
	c *servertest.Client

	ann, bob, web, mail, policy                     string // ids
	annName, bobName, webName, mailName, policyName string
	identityWord, serviceWord                       string // by which the policy selects
	policyEdit, annEdit                             string // their forms
}

func newSmall(t testing.TB) *small {
	t.Helper()
	s := &small{b: admin(t, controller), c: controller.Admin(t), identityWord: servertest.Unique("staff"), serviceWord: servertest.Unique("public")}
	s.annName, s.bobName, s.webName, s.mailName, s.policyName = servertest.Unique("ann"), servertest.Unique("bob"), servertest.Unique("web"), servertest.Unique("mail"), servertest.Unique("lets")
	s.ann = s.c.Post("identities", M{"name": s.annName, "type": "User", "isAdmin": false, "roleAttributes": []string{s.identityWord}}).Want(http.StatusCreated).ID()
	s.bob = s.c.Post("identities", M{"name": s.bobName, "type": "User", "isAdmin": false}).Want(http.StatusCreated).ID()
	s.web = s.c.Post("services", M{"name": s.webName, "encryptionRequired": true, "roleAttributes": []string{s.serviceWord}}).Want(http.StatusCreated).ID()
	s.mail = s.c.Post("services", M{"name": s.mailName, "encryptionRequired": true}).Want(http.StatusCreated).ID()
	s.policy = s.c.Post("service-policies", M{
		"name": s.policyName, "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#" + s.identityWord}, "serviceRoles": []string{"#" + s.serviceWord},
	}).Want(http.StatusCreated).ID()
	s.policyEdit, s.annEdit = "/console/service-policies/"+s.policy+"/edit", "/console/identities/"+s.ann+"/edit"
	return s
}

var pairRow = regexp.MustCompile(`(?s)<tr><td>(?:<a[^>]*>)?([^<]*)(?:</a>)?</td><td><span class="(gains|loses)">[^<]*</span></td><td>(use|host)</td><td>(?:<a[^>]*>)?([^<]*)(?:</a>)?</td></tr>`)

// moved are who gains and loses what on a page.
func (a *answer) moved() map[string]bool {
	all := map[string]bool{}
	for _, m := range pairRow.FindAllStringSubmatch(a.body, -1) {
		all[html.UnescapeString(m[1]+" "+m[2]+" "+m[3]+" "+m[4])] = true
	}
	return all
}

// TestAccess goes from an identity to its services and back.
func TestAccess(t *testing.T) {
	s := newSmall(t)
	s.b.get("/console/access").is(http.StatusOK)
	for path, want := range map[string][]string{
		"/console/access?identity=" + s.ann:     {s.annName, "#" + s.identityWord, s.policyName, "#" + s.serviceWord, s.webName, "1–1 of 1"},
		"/console/access?identity=" + s.annName: {s.webName},
		"/console/access?service=" + s.webName:  {s.annName, "#" + s.identityWord, s.policyName, "#" + s.serviceWord, "1–1 of 1"},
		"/console/access?identity=" + s.bob:     {"No service policy leads"},
		"/console/identities/" + s.ann:          {"/console/access?identity=" + s.ann, "/console/identities/" + s.ann + "/history"},
		"/console/services/" + s.web:            {"/console/access?service=" + s.web},
	} {
		a := s.b.get(path).is(http.StatusOK)
		for _, text := range want {
			if !a.says(text) {
				t.Errorf("%s does not say %q: %s", path, text, a.body)
			}
		}
	}
	page := s.b.get("/console/access?identity=" + s.ann)
	if page.says("and more") {
		t.Errorf("the page leaves something out: %s", page.body)
	}
	if n := strings.Count(page.body, `<svg class="node `); n != 5 || strings.Count(page.body, `class="edge`) != 4 {
		t.Errorf("the picture has %d boxes: %s", n, page.body)
	}
	for path, status := range map[string]int{
		"/console/access?identity=nobody-like-this": http.StatusNotFound, "/console/access?service=" + s.ann: http.StatusNotFound,
		"/console/access?at=never&identity=" + s.ann: http.StatusBadRequest, "/console/access?from=-1&identity=" + s.ann: http.StatusOK,
		"/console/access?from=99999999999&identity=" + s.ann: http.StatusOK, "/console/access/x": http.StatusNotFound,
		"/console/explain?identity=nobody&service=" + s.web: http.StatusNotFound, "/console/explain/x": http.StatusNotFound,
		"/console/explain?type=Neither&identity=" + s.ann + "&service=" + s.web: http.StatusBadRequest,
		"/console/difference?since=never":                                       http.StatusBadRequest, "/console/history/x": http.StatusNotFound,
		"/console/history?at=zzz": http.StatusBadRequest, "/console/history?at=2026-01-31+08:00": http.StatusOK,
		"/console/history?since=never": http.StatusBadRequest, "/console/history/x/undo": http.StatusNotFound,
		"/console/services?at=never": http.StatusBadRequest, "/console/services/" + s.web + "?at=1": http.StatusNotFound,
	} {
		a := s.b.get(path).is(status)
		if status == http.StatusBadRequest && !a.says(`role="alert"`) {
			t.Errorf("%s does not say what is wrong: %s", path, a.body)
		}
	}
}

// boxes are the places of what a picture has.
var boxes = regexp.MustCompile(`<svg class="node [a-z]+" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"><title>([^<]*)</title>`)

// TestAccessOfMany draws what does not fit in a picture: it groups, says so, and no box is
// upon another.
func TestAccessOfMany(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	word, long := servertest.Unique("many"), strings.Repeat("long-name-", 9)
	who := c.Post("identities", M{"name": word + long, "type": "User", "isAdmin": false, "roleAttributes": []string{word}}).Want(http.StatusCreated).ID()
	var changes []M
	for i := range 120 {
		changes = append(changes, M{"op": "create", "kind": "service", "body": M{"name": fmt.Sprintf("%s-%03d", word, i), "encryptionRequired": true, "roleAttributes": []string{fmt.Sprintf("%s-%d", word, i%30)}}})
	}
	for i := range 30 {
		changes = append(changes, M{"op": "create", "kind": "service-policy", "body": M{
			"name": fmt.Sprintf("%s-%02d", word, i), "type": []string{"Dial", "Bind"}[i%2], "semantic": "AnyOf", "identityRoles": []string{"#" + word},
			"serviceRoles": []string{fmt.Sprintf("#%s-%d", word, i), fmt.Sprintf("#%s-%d", word, (i+1)%30)},
		}})
	}
	c.Post("changes", M{"changes": changes}).Want(http.StatusOK)
	a := b.get("/console/access?identity=" + who).is(http.StatusOK)
	if !a.says("There is more than a picture can hold: 8 of 30 policies") || !a.says("1–50 of 120") {
		t.Errorf("the page does not say what is left out: %s", a.body)
	}
	found := boxes.FindAllStringSubmatch(a.body, -1)
	if len(found) < 10 || len(found) > 40 {
		t.Fatalf("the picture has %d boxes", len(found))
	}
	type box struct{ x, y, w, h int }
	var all []box
	for _, m := range found {
		var one box
		for i, into := range []*int{&one.x, &one.y, &one.w, &one.h} {
			_, _ = fmt.Sscan(m[i+1], into)
		}
		for _, other := range all {
			if one.x < other.x+other.w && other.x < one.x+one.w && one.y < other.y+other.h && other.y < one.y+one.h {
				t.Fatalf("%v is upon %v", one, other)
			}
		}
		all = append(all, one)
	}
	for i := range 6 {
		c.Post("service-policies", M{"name": fmt.Sprintf("%s-also-%d", word, i), "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#" + word}, "serviceRoles": []string{"#" + word + "-0"}}).Want(http.StatusCreated)
	}
	if a := b.get("/console/access?identity=" + who).is(http.StatusOK); strings.Count(a.body, "<li>and more</li>") != 2 {
		t.Errorf("what is left out of a row is not said: %s", a.body)
	}
	if a := b.get("/console/access?from=100&identity=" + who).is(http.StatusOK); !a.says("101–120 of 120") || a.says(`rel="next"`) {
		t.Errorf("the last page is %s", a.body)
	}
	if size := len(a.body); size > 100_000 {
		t.Errorf("the page has %d bytes", size)
	}
	// A change that concerns many names the first of them, and says how many there are.
	action, form := b.get("/console/identities/" + who + "/edit").form(t)
	form.Set("f.roleAttributes", "")
	if a := b.post(action+"?look=1", form).is(http.StatusOK); !a.says("0 gained") || !a.says("240 lost") || len(a.moved()) != 200 || !a.says("And 40 more.") {
		t.Errorf("the page is %s", a.body)
	}
}

// TestExplainPage mends a chain with its own buttons, as far as changes of records can.
func TestExplainPage(t *testing.T) {
	s := newSmall(t)
	s.b.get("/console/explain").is(http.StatusOK)
	path := "/console/explain?identity=" + s.bobName + "&service=" + s.webName + "&type=Dial"
	a := s.b.get(path).is(http.StatusOK)
	for _, l := range s.c.Get("identities/" + s.bob + "/explain/" + s.web).Want(http.StatusOK).Data()["links"].([]any) {
		what := l.(M)["what"].(string)
		if !a.says(what[1:]) || l.(M)["remedy"] != "" && !a.says(l.(M)["remedy"].(string)[1:]) {
			t.Errorf("the page does not say %v: %s", l, a.body)
		}
	}
	if !a.says(s.bobName + " cannot use " + s.webName) {
		t.Errorf("the page is %s", a.body)
	}
	change := "/console/explain/change?" + url.Values{"identity": {s.bob}, "service": {s.web}, "type": {"Dial"}, "link": {"service-policy"}}.Encode()
	if !strings.Contains(a.body, html.EscapeString(change)) {
		t.Fatalf("there is no way to the change: %s", a.body)
	}
	roles := func() any { return s.c.Get("identities/" + s.bob).At("data.roleAttributes") }
	before := fmt.Sprint(roles())
	page := s.b.get(change).is(http.StatusOK)
	if got := page.moved(); len(got) != 1 || !got[s.bobName+" gains use "+s.webName] {
		t.Errorf("the change gives %v: %s", got, page.body)
	}
	form := page.hidden(t, "/console/explain/change")

	// Nothing is done by looking, nor by a form of others, of nobody, or without a plan.
	s.b.get(change + "&token=" + form.Get("token") + "&digest=" + form.Get("digest")).is(http.StatusOK)
	s.b.post(change, form, "Sec-Fetch-Site", "cross-site").is(http.StatusForbidden)
	s.b.post(change, url.Values{"token": {"x"}, "digest": form["digest"]}).is(http.StatusForbidden)
	s.b.post(change, url.Values{"token": form["token"]}).is(http.StatusConflict)
	s.b.post(change, url.Values{"token": form["token"], "digest": {"x"}}).is(http.StatusConflict)
	open(t, controller).post(change, form).is(http.StatusUnauthorized)
	if got := fmt.Sprint(roles()); got != before {
		t.Fatalf("the roles are %s, were %s", got, before)
	}

	// Somebody else would gain by now.
	s.c.Patch("services/"+s.mail, M{"roleAttributes": []string{s.serviceWord}}).Want(http.StatusOK)
	again := s.b.post(change, form).is(http.StatusConflict)
	if got := again.moved(); len(got) != 2 || !got[s.bobName+" gains use "+s.mailName] || fmt.Sprint(roles()) != before {
		t.Fatalf("the change gives %v: %s", got, again.body)
	}
	if a := s.b.post(change, again.hidden(t, "/console/explain/change")).is(http.StatusOK); a.path != "/console/explain" {
		t.Errorf("a change leads to %s", a.path)
	}
	if got := fmt.Sprint(roles()); got != "["+s.identityWord+"]" {
		t.Errorf("the roles are %s", got)
	}
	if a := s.b.get(change).is(http.StatusOK); !a.says("There is nothing to change here") || a.says("Make this change") {
		t.Errorf("the page of a link that holds is %s", a.body)
	}
	s.b.post(change, form).is(http.StatusConflict)
}

// hidden are the inputs of the form that is sent to a path.
func (a *answer) hidden(t testing.TB, action string) url.Values {
	t.Helper()
	_, rest, ok := strings.Cut(a.body, `<form action="`+action)
	if !ok {
		t.Fatalf("there is no form to %s: %s", action, a.body)
	}
	rest, _, _ = strings.Cut(rest, "</form>")
	form := url.Values{}
	for _, tag := range inputTag.FindAllString(rest, -1) {
		m := map[string]string{}
		for _, at := range attribute.FindAllStringSubmatch(tag, -1) {
			m[at[1]] = html.UnescapeString(at[2])
		}
		form.Set(m["name"], m["value"])
	}
	return form
}

// TestWhatIf looks at what forms would change, and saves nothing by that.
func TestWhatIf(t *testing.T) {
	s := newSmall(t)
	look := func(path string, change func(url.Values)) *answer {
		t.Helper()
		page := s.b.get(path).is(http.StatusOK)
		action, form := page.form(t)
		if !page.says(`formaction="` + action + `?look=1#plan"`) {
			t.Fatalf("%s has no button: %s", path, page.body)
		}
		change(form)
		return s.b.post(action+"?look=1", form)
	}
	same := func(what string, got map[string]bool, want ...string) {
		t.Helper()
		for _, w := range want {
			if !got[w] {
				t.Errorf("%s: %v lacks %q", what, got, w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %q", what, got, want)
		}
	}
	a := look(s.policyEdit, func(f url.Values) { f.Set("f.identityRoles", "@"+s.bobName) }).is(http.StatusOK)
	same("another policy", a.moved(), s.annName+" loses use "+s.webName, s.bobName+" gains use "+s.webName)
	if _, form := a.form(t); form.Get("f.identityRoles") != "@"+s.bobName || !a.says("Nothing was saved yet") || !a.says("#"+s.identityWord) {
		t.Errorf("the form is %v", form)
	}
	if got := fmt.Sprint(s.c.Get("service-policies/" + s.policy).At("data.identityRoles")); got != "[#"+s.identityWord+"]" {
		t.Fatalf("looking has changed the policy to %s", got)
	}

	// It is what the API says, and saving does it.
	plan := s.c.Post("changes?plan=true", M{"changes": []M{{"op": "patch", "kind": "service-policy", "target": s.policy, "body": M{"identityRoles": []string{"@" + s.bob}}}}}).Want(http.StatusOK)
	if plan.At("data.access.gained") != 1.0 || plan.At("data.access.lost") != 1.0 {
		t.Errorf("the plan is %s", plan.Raw)
	}
	same("fewer roles", look(s.annEdit, func(f url.Values) { f.Set("f.roleAttributes", "") }).is(http.StatusOK).moved(), s.annName+" loses use "+s.webName)
	same("a service", look("/console/services/"+s.mail+"/edit", func(f url.Values) { f.Set("f.roleAttributes", s.serviceWord) }).is(http.StatusOK).moved(), s.annName+" gains use "+s.mailName)
	a = look("/console/service-policies/new", func(f url.Values) {
		f.Set("f.name", servertest.Unique("new"))
		f.Set("f.type", "Bind")
		f.Set("f.semantic", "AnyOf")
		f.Set("f.identityRoles", "@"+s.bobName)
		f.Set("f.serviceRoles", "@"+s.mailName)
	}).is(http.StatusOK)
	same("a new policy", a.moved(), s.bobName+" gains host "+s.mailName)
	if a := look(s.policyEdit, func(url.Values) {}).is(http.StatusOK); !a.says("Nothing would change.") {
		t.Errorf("a form that changes nothing says %s", a.body)
	}
	if a := look(s.policyEdit, func(f url.Values) { f.Set("f.identityRoles", "staff") }); a.StatusCode != http.StatusBadRequest || !a.says(`class="error"`) {
		t.Errorf("a mistake says %s", a.body)
	}
	if a := look("/console/service-policies/new", func(f url.Values) { f.Set("f.name", s.policyName) }); a.StatusCode < 400 {
		t.Errorf("a mistake says %s", a.body)
	}
	if n := s.c.Get("service-policies?filter=" + url.QueryEscape(`name contains "new"`)).Total(); n != 0 {
		t.Errorf("looking has made %d policies", n)
	}

	// Where nobody can say what would come of it, looking does nothing either.
	action, form := s.b.get("/console/authenticators/new").form(t)
	form.Set("f.identityId", s.bobName)
	form.Set("f.method", "updb")
	form.Set("f.username", s.bobName)
	form.Set("f.password", "a long enough password")
	s.b.post(action+"?look=1", form).is(http.StatusNotFound)
	if n := s.c.Get("authenticators?filter=" + url.QueryEscape(`identityId = "`+s.bob+`"`)).Total(); n != 0 {
		t.Errorf("looking has made %d authenticators", n)
	}

	// Somebody else was faster: both are shown.
	action, form = s.b.get(s.policyEdit).form(t)
	form.Set("f.identityRoles", "@"+s.bobName)
	s.c.Patch("service-policies/"+s.policy, M{"identityRoles": []string{"@" + s.ann}}).Want(http.StatusOK)
	if a := s.b.post(action+"?look=1", form).is(http.StatusConflict); !a.says("@" + s.annName) {
		t.Errorf("the page is %s", a.body)
	}
	form.Set("token", "x")
	if a := s.b.post(action+"?look=1", form).is(http.StatusOK); !a.says("another session") {
		t.Errorf("the page is %s", a.body)
	}
}
