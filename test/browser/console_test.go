package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestForms makes and changes a record, and makes mistakes.
func TestForms(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
