package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// long is a name of a hundred characters.
var long = strings.Repeat("long-name-", 10)

// TestConsole goes through the console as somebody does who looks after a network.
func TestConsole(t *testing.T) {
	c := start(t)
	b := open(t, c)
	b.visit("/console/")
	b.look("login")
	b.do(typed("#username", "admin"), typed("#password", "not the password"+kb.Enter), shown(".problem"))
	b.look("login-refused")
	b.login()
	b.look("overview-empty")
	b.visit("/console/services")
	b.look("table-empty")

	// The rest has something to show.
	c.run(t, "login", "--data", c.data, "--username", "admin")
	c.run(t, "demo")
	c.run(t, "create", "identity", long, "--type", "User", "--roles", strings.Join([]string{long + "1", "staff", "a", "b", "c", "d", "e", "f"}, ","))
	c.run(t, "create", "service", "<script>alert(1)</script>")
	b.visit("/console/")
	b.look("overview")
	for _, path := range []string{
		"identities", "services", "configs", "config-types", "edge-routers", "routers", "terminators", "service-policies", "edge-router-policies",
		"service-edge-router-policies", "posture-checks", "cas", "external-jwt-signers", "auth-policies", "authenticators", "enrollments", "api-sessions",
		"sessions", "audit-entries", "links", "circuits", "controllers",
	} {
		b.visit("/console/" + path)
		b.fine(path)
	}
	for name, path := range map[string]string{
		"table": "identities", "table-wide": "identities?wide=1", "table-filter": "identities?filter=nme+%3D+1", "table-none": "identities?filter=nothing-like-it",
		"audit": "audit-entries", "policies": "service-policies", "form": "identities/new", "form-check": "posture-checks/new", "form-auth": "auth-policies/new",
		"missing": "identities/none", "search": "search?q=pay",
		"network": "network", "circuits-none": "circuits", "certificates": "certificates", "cluster": "cluster", "snapshots-none": "snapshots",
	} {
		b.visit("/console/" + path)
		b.look(name)
	}
	b.visit("/console/snapshots")
	b.do(click(`form[action="/console/snapshots"] button`), shown(".banner[role=status]:not([hidden])"))
	b.look("snapshots")
	b.visit("/console/identities?filter=" + long[:20])
	b.do(click("a.row"), shown(".fields"))
	b.look("record-long")
	b.visit("/console/identities?filter=carol")
	b.do(click("a.row"), shown(".fields"))
	b.look("record")
	b.do(click(".quiet.danger"), shown("button.danger"))
	b.look("delete")
	b.visit("/console/services?filter=script")
	b.do(click("a.row"), shown(".fields"))
	b.fine("a name that is a script")
}

// TestForms makes and changes a record, and makes mistakes.
func TestForms(t *testing.T) {
	b := open(t, start(t))
	b.login()
	b.visit("/console/posture-checks/new")
	b.eventually("what does not count is hidden", `document.querySelector('[name="f.domains"]').closest('.input').hidden`)
	b.do(chromedp.SetValue(chromedp.CSS("#f-name"), "domain"), typed("#f-typeId", "DOMAIN"))
	b.eventually("what counts is shown", `!document.querySelector('[name="f.domains"]').closest('.input').hidden && document.querySelector('[name="f.timeoutSeconds"]').closest('.input').hidden`)
	b.do(click("form.record button"), shown(".wrong .error"))
	b.look("form-wrong")
	b.do(chromedp.SetValue(chromedp.CSS("#f-domains"), "example"), click("form.record button"), shown(".fields"))
	if text := b.text("h1"); text != "domain" {
		t.Errorf("the page is of %q", text)
	}
	b.fine("a form")
}

// TestLive has one window see what another does, without being loaded anew.
func TestLive(t *testing.T) {
	c := start(t)
	b := open(t, c)
	b.login()
	b.visit("/console/services")
	b.do(chromedp.Evaluate[chromedp.Void](`window.same = true`))
	c.run(t, "login", "--data", c.data, "--username", "admin")
	c.run(t, "create", "service", "comes-by-itself")
	b.eventually("a new service is shown", `document.body.innerText.includes('comes-by-itself') && window.same`)
	b.fine("a table that follows")
	b.visit("/console/network")
	b.do(chromedp.Evaluate[chromedp.Void](`window.same = true`))
	c.run(t, "create", "edge-router", "comes-too")
	b.eventually("a new router is in the picture", `document.querySelector('.picture').textContent.includes('comes-too') && window.same`)
	b.fine("a picture that follows")
}

// TestKeyboard does everything without a mouse: log in, find, open, change, save, leave.
func TestKeyboard(t *testing.T) {
	b := open(t, start(t))
	b.visit("/console/")
	b.press("admin", kb.Tab, b.at.password, kb.Enter)
	b.do(shown("nav"))
	b.press(kb.Tab)
	b.eventually("the first stop skips to the content", `document.activeElement.className === 'skip'`)
	b.press(kb.Enter)
	b.eventually("it does", `document.activeElement.id === 'main' || location.hash === '#main'`)
	palette := func(words string) {
		b.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)))
		b.eventually("the palette opens", `document.getElementById('palette').open`)
		b.press(words)
		b.eventually("the palette finds", `document.querySelector('#palette a.on')`)
	}
	palette("services")
	b.do(chromedp.KeyEvent(kb.Enter))
	b.do(shown(".empty .button"))
	b.visit("/console/services/new")
	b.do(focus("#f-name"))
	b.press("by-keyboard", kb.Enter)
	b.do(shown(".fields"))
	palette("by-key")
	b.press(kb.Escape)
	b.eventually("the palette closes", `!document.getElementById('palette').open`)
	palette("by-key")
	b.press(kb.Enter)
	b.do(shown(".fields"))
	b.visit("/console/services")
	b.strike("/", "Slash")
	b.eventually("the filter box has the focus", `document.activeElement.id === 'filter'`)
	b.press("nothing-like-it", kb.Enter)
	b.eventually("the table is filtered", `location.search === '?filter=nothing-like-it' && document.body.innerText.includes('Nothing matches')`)
	b.do(focus(".leave button"))
	b.press(kb.Enter)
	b.do(shown("#username"))
	b.fine("the keyboard")
}
