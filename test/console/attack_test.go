package console

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

// hostile are texts that would do something if they were taken for code.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`, `</title><script>alert(1)</script>`,
	`</textarea><script>alert(1)</script>`, `{{.Token}}`, `&lt;script&gt;`, `-->`, `</option></datalist><svg onload=alert(1)>`,
}

// TestHostileNames gives records names that are code, and looks at every page that
// shows them.
func TestHostileNames(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	for _, text := range hostile {
		name := text + servertest.Unique("x")
		id := c.Post("identities", M{
			"name": name, "type": "User", "isAdmin": false, "roleAttributes": []string{text}, "tags": M{text: "javascript:alert(2)", "link": text}, "appData": M{text: text},
		}).Want(http.StatusCreated).ID()
		typ := c.Post("config-types", M{"name": name}).Want(http.StatusCreated).ID()
		paths := []string{
			"/console/", "/console/identities", "/console/identities?wide=1", "/console/identities?filter=" + url.QueryEscape(text), "/console/identities?sort=" + url.QueryEscape(text),
			"/console/identities/" + id, "/console/identities/" + id + "/edit", "/console/identities/" + id + "/delete", "/console/identities/" + id + "/services",
			"/console/config-types/" + typ, "/console/configs/new", "/console/search?q=" + url.QueryEscape(text), "/console/" + url.PathEscape(text), "/console/identities/" + url.PathEscape(text),
			"/console/login?next=" + url.QueryEscape(text), "/console/identities/new?f.name=" + url.QueryEscape(text), "/console/identities?column=" + url.QueryEscape(text),
			"/console/invite?identity=" + id, "/console/invite?f.name=" + url.QueryEscape(text), "/console/api?q=" + url.QueryEscape(text), "/console/api/management/detailIdentity?run=yes&p.id=" + id,
		}
		for _, path := range paths {
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
		// Sent in a form with mistakes, it comes back as it was.
		action, form := b.get("/console/identities/new").form(t)
		form.Set("f.name", text)
		form.Set("f.roleAttributes", text)
		form.Set("f.defaultHostingCost", text)
		a := b.post(action, form).is(http.StatusBadRequest)
		if _, again := a.form(t); strings.Contains(a.body, "<script>alert") || again.Get("f.name") != text || again.Get("f.roleAttributes") != text {
			t.Errorf("%q comes back as %q", text, again.Get("f.name"))
		}
		stranger := open(t, controller)
		if a := stranger.login(text, text); strings.Contains(a.body, "<script>alert") || strings.Contains(a.body, "<svg onload") {
			t.Errorf("the login takes %q for code", text)
		}
		c.Delete("identities/" + id).Want(http.StatusOK)
		c.Delete("config-types/" + typ).Want(http.StatusOK)
	}
}

// TestHeaders looks at what every answer of the console tells browsers.
func TestHeaders(t *testing.T) {
	b, stranger := admin(t, controller), open(t, controller)
	page := b.get("/console/")
	var assets []string
	for part := range strings.SplitSeq(page.body, `"`) {
		if strings.HasPrefix(part, "/console/assets/") {
			assets = append(assets, part)
		}
	}
	if len(assets) != 3 {
		t.Fatalf("pages use %q", assets)
	}
	for _, a := range []*answer{page, b.get("/console/none"), stranger.get("/console/"), stranger.get("/console/login"), b.get("/console/identities/none"), b.get(assets[0]), b.post("/console/services/new", nil), b.do(http.MethodPut, "/console/", nil)} {
		want := map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"Referrer-Policy":         "no-referrer", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Access-Control-Allow-Origin": "",
		}
		if !strings.Contains(a.path, "/assets/") {
			want["Cache-Control"] = "no-store"
		}
		for name, value := range want {
			if got := a.Header.Get(name); got != value {
				t.Errorf("%s of %s is %q", name, a.path, got)
			}
		}
		for _, inline := range []string{"<style", " style=", " onclick=", "javascript:", "<script>"} {
			if strings.Contains(a.body, inline) && !strings.Contains(a.path, "/assets/") {
				t.Errorf("%s has %s", a.path, inline)
			}
		}
	}
	size := len(page.body)
	for _, path := range assets {
		a := b.get(path).is(http.StatusOK)
		if size += len(a.body); a.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s is kept for %q", path, a.Header.Get("Cache-Control"))
		}
		if strings.HasSuffix(path, ".js") && len(a.body) > 30_000 {
			t.Errorf("the script has %d bytes", len(a.body))
		}
	}
	if size > 100_000 {
		t.Errorf("the first page takes %d bytes in all", size)
	}
	stranger.get("/console/assets/console.js").is(http.StatusNotFound)
	stranger.get("/console/assets/../console.go").is(http.StatusNotFound)
}

// TestHugeForms sends more than anybody types.
func TestHugeForms(t *testing.T) {
	b := admin(t, controller)
	action, form := b.get("/console/services/new").form(t)
	form.Set("f.roleAttributes", strings.Repeat("x\n", 2<<20))
	b.post(action, form).is(http.StatusRequestEntityTooLarge)
	open(t, controller).post("/console/login", url.Values{"username": {strings.Repeat("x", 300<<10)}}).is(http.StatusRequestEntityTooLarge)
	open(t, controller).post(action, url.Values{"f.name": {strings.Repeat("x", 300<<10)}}).is(http.StatusRequestEntityTooLarge)
	many := url.Values{}
	for range 6000 {
		many.Add("a", "")
	}
	open(t, controller).post("/console/login", many).is(http.StatusRequestEntityTooLarge)
	rows := url.Values{"token": form["token"], "f.operatingSystems.#": {"2000000000"}, "f.typeId": {"OS"}}
	if a := b.post("/console/posture-checks/new", rows); len(a.body) > 2<<20 {
		t.Errorf("a number in a form made a page of %d bytes", len(a.body))
	}
	b.post("/console/services/new", nil, "Content-Type", "text/plain").is(http.StatusUnsupportedMediaType)
	b.get("/console/identities?from=99999999999999999999").is(http.StatusOK)
	b.get("/console/identities?from=-5").is(http.StatusOK)
}

// TestNothingByLooking follows every link of a record, as a browser does that loads
// pages ahead: nothing changes.
func TestNothingByLooking(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	id := c.Post("services", M{"name": servertest.Unique("still"), "encryptionRequired": true}).Want(http.StatusCreated).ID()
	for _, path := range []string{"", "/edit", "/delete", "/delete?token=x&digest=y", "/terminators"} {
		b.get("/console/services/" + id + path).is(http.StatusOK)
	}
	b.get("/console/logout").is(http.StatusOK)
	b.get("/console/services/new?f.name=made").is(http.StatusOK)
	c.Get("services/" + id).Want(http.StatusOK)
	b.get("/console/").is(http.StatusOK)
}

// TestEvents follows changes with the session of the cookie.
func TestEvents(t *testing.T) {
	stranger := open(t, controller)
	stranger.get("/console/events?kinds=services").is(http.StatusUnauthorized)
	b, c := admin(t, controller), controller.Admin(t)
	req, err := http.NewRequest(http.MethodGet, b.at+"/console/events?kinds=services", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := b.http.Do(req.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Fatalf("the stream is %s %v", resp.Status, resp.Header)
	}
	name := servertest.Unique("told")
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	made := false
	for lines.Scan() {
		if lines.Text() == "event: ready" && !made {
			made = true
			c.Post("services", M{"name": name, "encryptionRequired": true}).Want(http.StatusCreated)
		}
		if strings.Contains(lines.Text(), name) {
			return
		}
	}
	t.Errorf("the stream ended: %v", lines.Err())
}

// TestTables filters, orders and pages.
func TestTables(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	word := servertest.Unique("row")
	for i := range 53 {
		c.Post("services", M{"name": word + string(rune('A'+i/26)) + string(rune('a'+i%26)), "encryptionRequired": i%2 == 0}).Want(http.StatusCreated)
	}
	a := b.get("/console/services?filter=" + word).is(http.StatusOK)
	if !a.says("1–50 of 53") || !a.says("rel=\"next\"") || a.says("rel=\"prev\"") {
		t.Errorf("the first page is %s", a.body)
	}
	if a := b.get("/console/services?from=50&filter=" + word); !a.says("51–53 of 53") || a.says("rel=\"next\"") || !a.says(word+"Ca") {
		t.Errorf("the second page is %s", a.body)
	}
	if a := b.get("/console/services?sort=name+desc&filter=" + word); strings.Index(a.body, word+"Ca") > strings.Index(a.body, word+"Bz") || !a.says(`aria-sort="descending"`) {
		t.Error("the order is not turned around")
	}
	if a := b.get("/console/services?filter=" + url.QueryEscape(`name = "`+word+`Aa" and encryptionRequired = true`)); !a.says("1–1 of 1") {
		t.Errorf("the filter shows %s", a.body)
	}
	for _, wrong := range []string{`nme = "x"`, `name =`, `name = 'x`, "name = true"} {
		a := b.get("/console/services?filter=" + url.QueryEscape(wrong))
		if a.StatusCode != http.StatusBadRequest || !a.says(`id="filter-problem"`) || !a.says(`value="`+wrong+`"`) && !a.says(strings.ReplaceAll(wrong, `"`, "&#34;")) {
			t.Errorf("%s: %d %s", wrong, a.StatusCode, a.body)
		}
	}
	if a := b.get("/console/services?filter=" + word + "none"); !a.says("Nothing matches") {
		t.Errorf("a filter that matches nothing shows %s", a.body)
	}
	if a := b.get("/console/services?column=name&column=createdAt&filter=" + word); strings.Count(a.body, "<th ") != 2 {
		t.Errorf("the table has %d columns", strings.Count(a.body, "<th "))
	}
	empty := servertest.Start(t)
	fresh := admin(t, empty)
	for _, d := range model.All.Defs {
		if !d.Verbs.Has(kind.Lists | kind.Gets | kind.Creates) {
			continue
		}
		if a := fresh.get("/console/" + d.Path).is(http.StatusOK); !a.says("<td>") && !a.says("Make the first one") {
			t.Errorf("an empty table of %s does not say what to do", d.Path)
		}
	}
	if a := fresh.get("/console/"); !a.says("What to do first") || !a.says("Everything is as it should be") {
		t.Errorf("the overview is %s", a.body)
	}
}

// TestSearch finds records by a part of their name.
func TestSearch(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	word := servertest.Unique("find")
	c.Post("services", M{"name": word + "-service", "encryptionRequired": true}).Want(http.StatusCreated)
	c.Post("identities", M{"name": word + "-identity", "type": "User", "isAdmin": false}).Want(http.StatusCreated)
	a := b.get("/console/search?q=" + strings.ToUpper(word)).is(http.StatusOK)
	if !a.says(word+"-service") || !a.says(word+"-identity") {
		t.Errorf("the search finds %s", a.body)
	}
	if a := b.get("/console/search?q=service+polic"); !a.says(`href="/console/service-policies"`) {
		t.Errorf("the search finds no page: %s", a.body)
	}
	if a := b.get("/console/search?q=" + word + "nothing"); !a.says("Nothing is called like that") {
		t.Errorf("the search finds %s", a.body)
	}
}
