package console

import (
	"image/color"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boombuler/barcode/qr"

	"netkeep.internal/test/servertest"
)

var (
	qrTag   = regexp.MustCompile(`<svg class="qr" viewBox="0 0 (\d+) \d+".*?<path d="([^"]*)"`)
	qrRun   = regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`)
	lineTag = regexp.MustCompile(`(?s)<pre tabindex="0" id="line-\d">(.*?)</pre>`)
)

// shows ends the test unless the page shows a text as a QR code.
func (a *answer) shows(text string) {
	a.t.Helper()
	found := qrTag.FindStringSubmatch(a.body)
	if found == nil {
		a.t.Fatalf("%s has no QR code", a.path)
	}
	size, _ := strconv.Atoi(found[1])
	dark := map[[2]int]bool{}
	for _, run := range qrRun.FindAllStringSubmatch(found[2], -1) {
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(run[i+1])
		}
		for x := range n[2] {
			dark[[2]int{n[0] + x, n[1]}] = true
		}
		if n[2] != n[3] {
			a.t.Errorf("a run is %s", run[0])
		}
	}
	code, err := qr.Encode(text, qr.L, qr.Auto)
	if err != nil {
		a.t.Fatal(err)
	}
	const margin = 4
	if want := code.Bounds().Dx() + 2*margin; size != want {
		a.t.Fatalf("the code has %d modules from edge to edge, want %d", size, want)
	}
	for y := range size {
		for x := range size {
			inside := x >= margin && y >= margin && x < size-margin && y < size-margin
			want := inside && color.GrayModel.Convert(code.At(x-margin, y-margin)).(color.Gray).Y < 128
			if dark[[2]int{x, y}] != want {
				a.t.Fatalf("module %d, %d is wrong", x, y)
			}
		}
	}
}

// lines are what is to be pasted.
func (a *answer) lines() (all []string) {
	for _, m := range lineTag.FindAllStringSubmatch(a.body, -1) {
		all = append(all, unescaped(m[1]))
	}
	return all
}

// TestInvite invites devices and people, and takes the invitations along.
func TestInvite(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	name := servertest.Unique("Ann's phone")
	action, form := b.get("/console/invite").is(http.StatusOK).form(t)
	form.Set("f.name", name)
	role := servertest.Unique("phones")
	form.Set("f.roleAttributes", role)
	form.Set("f.method", "ott")
	a := b.post(action, form).is(http.StatusOK)
	enrollment := c.Get("enrollments/" + a.id()).Want(http.StatusOK)
	token := enrollment.At("data.jwt").(string)
	a.shows(token)
	if !strings.HasPrefix(a.path, "/console/invite/") || strings.Contains(a.Request.URL.String(), token[:20]) || !a.says(name) || !a.says("Good for 2 h 59 min") {
		t.Errorf("the page at %s is %s", a.path, a.body)
	}
	file := strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(name, "'", "-"), " ", "-"))
	if lines := a.lines(); len(lines) != 2 || lines[0] != "netkeep enroll "+token+" -o "+file+".json" || lines[1] != "netkeep tunnel run --identity "+file+".json" {
		t.Errorf("the lines are %q", lines)
	}
	who := enrollment.At("data.identityId").(string)
	if rec := c.Get("identities/" + who); rec.At("data.roleAttributes.0") != role || rec.At("data.isAdmin") != false {
		t.Errorf("the identity is %s", rec.Raw)
	}
	if page := b.get("/console/identities/" + who); !page.says(`href="` + a.path + `">Invitation`) {
		t.Errorf("the page of the identity does not lead there: %s", page.body)
	}

	// With a service to use, the line has a port for it.
	service := servertest.Unique("wiki")
	c.Post("services", M{"name": service, "encryptionRequired": true, "roleAttributes": []string{service}}).Want(http.StatusCreated)
	c.Post("service-policies", M{"name": service, "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#" + role}, "serviceRoles": []string{"#" + service}}).Want(http.StatusCreated)
	if lines := b.get(a.path).lines(); len(lines) != 2 || lines[1] != "netkeep tunnel run --identity "+file+".json "+service+":8080" {
		t.Errorf("the lines are %q", lines)
	}

	// Once more: what there was is worthless.
	form = url.Values{"token": {regexpToken.FindStringSubmatch(a.body)[1]}}
	b.post(a.path, url.Values{}).is(http.StatusForbidden)
	if now := c.Get("enrollments/" + a.id()).At("data.jwt"); now != token {
		t.Error("a form of nobody made an invitation again")
	}
	fresh := b.post(a.path, form).is(http.StatusOK)
	again := c.Get("enrollments/" + a.id()).At("data.jwt").(string)
	if fresh.shows(again); again == token || fresh.says(token) {
		t.Error("the token is the one of before")
	}

	// It is over when it was used, and an identity can be invited anew.
	c.Delete("enrollments/" + a.id()).Want(http.StatusOK)
	if gone := b.get(a.path).is(http.StatusNotFound); !gone.says("This invitation is over") {
		t.Errorf("the page is %s", gone.body)
	}
	page := b.get("/console/identities/" + who)
	if !page.says("/console/invite?identity=" + who) {
		t.Fatalf("the page of the identity does not lead to an invitation: %s", page.body)
	}
	action, form = b.get("/console/invite?identity=" + who).is(http.StatusOK).form(t)
	form.Set("f.method", "ott")
	b.post(action, form).is(http.StatusOK).shows(c.Get("identities/" + who + "/enrollments").At("data.0.jwt").(string))
	for _, secret := range []string{token, again} {
		if controller.Logged(secret) {
			t.Error("a token was logged")
		}
	}
}

// TestInvitePerson invites somebody to choose a password, and a device of another CA.
func TestInvitePerson(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	name := servertest.Unique("bob")
	action, form := b.get("/console/invite").form(t)
	form.Set("f.name", name)
	form.Set("f.method", "updb")
	a := b.post(action, form).is(http.StatusBadRequest)
	if _, again := a.form(t); !a.says("Is needed for a password") || again.Get("f.name") != name {
		t.Errorf("without a user name the page is %s", a.body)
	}
	form.Set("f.username", name)
	a = b.post(action, form).is(http.StatusOK)
	token := c.Get("enrollments/" + a.id()).At("data.jwt").(string)
	a.shows(token)
	if lines := a.lines(); len(lines) != 2 || lines[0] != "netkeep enroll "+token || lines[1] != "netkeep login "+controller.URL+" --username "+name {
		t.Errorf("the lines are %q", lines)
	}
	form.Set("f.name", name)
	form.Set("f.username", servertest.Unique("other"))
	if a := b.post(action, form).is(http.StatusBadRequest); !a.says(`<p class="error">`) {
		t.Errorf("a name twice shows %s", a.body)
	}
	form.Set("f.name", servertest.Unique("machine"))
	form.Set("f.method", "ottca")
	form.Set("f.ca", "none like it")
	if a := b.post(action, form); a.StatusCode < 400 || a.StatusCode >= 500 || !a.says(`<p class="error">`) {
		t.Errorf("a CA that is none shows %s %s", a.Status, a.body)
	}
	form.Set("token", "x")
	if _, again := b.post(action, form).is(http.StatusOK).form(t); again.Get("f.username") != form.Get("f.username") {
		t.Error("what was typed is lost")
	}
}

// TestInvitationOfRouter shows what a router is to run.
func TestInvitationOfRouter(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	name := servertest.Unique("branch")
	id := c.Post("edge-routers", M{"name": name}).Want(http.StatusCreated).ID()
	page := b.get("/console/edge-routers/" + id).is(http.StatusOK)
	_, rest, found := strings.Cut(page.body, `href="/console/invite/`)
	if !found {
		t.Fatalf("the page does not lead to the invitation: %s", page.body)
	}
	enrollment, _, _ := strings.Cut(rest, `"`)
	a := b.get("/console/invite/" + enrollment).is(http.StatusOK)
	token := c.Get("edge-routers/" + id).At("data.enrollmentJwt").(string)
	a.shows(token)
	name = strings.ToLower(name)
	if lines := a.lines(); len(lines) != 2 || lines[0] != "netkeep router enroll "+token+" --data "+name || lines[1] != "netkeep router run --data "+name {
		t.Errorf("the lines are %q", lines)
	}
}

// TestInvitationForOthers shows tokens to nobody who may not read them.
func TestInvitationForOthers(t *testing.T) {
	c := controller.Admin(t)
	id := c.Post("identities", M{"name": servertest.Unique("guarded"), "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated).ID()
	enrollment := c.Get("identities/" + id + "/enrollments")
	path, token := "/console/invite/"+enrollment.At("data.0.id").(string), enrollment.At("data.0.jwt").(string)
	u := controller.AddUser(t, false)
	user := open(t, controller)
	user.login(u.Username, u.Password)
	for _, who := range []*browser{open(t, controller), user} {
		if a := who.get(path); a.StatusCode == http.StatusOK || a.says(token) {
			t.Errorf("it is shown: %s", a.body)
		}
		who.post(path, url.Values{})
	}
	if now := c.Get("enrollments/" + enrollment.At("data.0.id").(string)).At("data.jwt"); now != token {
		t.Error("it was made again by somebody who may not")
	}
	b := admin(t, controller)
	b.get("/console/invite/none").is(http.StatusNotFound)
	b.get("/console/invite/none/x").is(http.StatusNotFound)
	b.get("/console/invite?identity=none").is(http.StatusNotFound)
}

// TestInvitationThatEnded says that it is over.
func TestInvitationThatEnded(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	id := c.Post("identities", M{"name": servertest.Unique("late"), "type": "Device", "isAdmin": false}).Want(http.StatusCreated).ID()
	e := c.Post("enrollments", M{"identityId": id, "method": "ott", "expiresAt": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)})
	if e.Status == http.StatusCreated {
		servertest.Eventually(t, time.Minute, "the invitation to end", func() bool { return b.get("/console/invite/" + e.ID()).says("It ended") })
		if a := b.get("/console/invite/" + e.ID()); qrTag.MatchString(a.body) || !a.says("Make it again") {
			t.Errorf("the page is %s", a.body)
		}
	}
}

// TestHostileInvitations invites somebody whose name is code, for browsers and shells.
func TestHostileInvitations(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	safe := regexp.MustCompile(`^netkeep [A-Za-z0-9 ._:/-]+$`)
	for _, text := range append(hostile, "$(reboot)", "`reboot`", "; reboot", "-rf", "../../x", "--output=x", "a\tb", "😀", "…") {
		role := servertest.Unique("hostile")
		c.Post("services", M{"name": text + role, "encryptionRequired": true, "roleAttributes": []string{role}}).Want(http.StatusCreated)
		c.Post("service-policies", M{"name": role, "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#" + role}, "serviceRoles": []string{"#" + role}}).Want(http.StatusCreated)
		action, form := b.get("/console/invite").form(t)
		form.Set("f.name", text+role)
		form.Set("f.roleAttributes", role)
		form.Set("f.method", "updb")
		form.Set("f.username", text+role)
		a := b.post(action, form)
		if a.StatusCode == http.StatusBadRequest { // a user name may not be everything
			form.Set("f.method", "ott")
			a = b.post(action, form).is(http.StatusOK)
		}
		for _, live := range []string{"<script>alert", "<img src=x", "<svg onload", "' onmouseover='alert"} {
			if strings.Contains(a.body, live) {
				t.Errorf("%q is taken for code", text)
			}
		}
		lines := a.lines()
		for _, line := range lines {
			if !safe.MatchString(line) || strings.Contains(line, "..") || strings.Contains(line, " -rf") {
				t.Errorf("a line to paste is %q", line)
			}
		}
		if len(lines) != 2 {
			t.Errorf("%q has the lines %q", text, lines)
		}
	}
}
