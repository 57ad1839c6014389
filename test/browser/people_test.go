package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestInvite invites somebody, and looks at what is handed over.
func TestInvite(t *testing.T) {
	b := open(t, start(t))
	b.login()
	b.visit("/console/invite")
	b.eventually("what another way needs is hidden", `document.querySelector('#f-username').closest('.input').hidden`)
	b.look("invite")
	b.do(typed("#f-name", "Ann's phone"+kb.Enter), shown(".qr"))
	b.look("invitation")
	b.eventually("the address has no token", `location.href.length < 80 && location.pathname.startsWith('/console/invite/')`)
}

// TestAPI reads about an operation, and tries it.
func TestAPI(t *testing.T) {
	b := open(t, start(t))
	b.login()
	b.visit("/console/api")
	b.look("api")
	b.visit("/console/api/management/listIdentities")
	b.do(typed("#p-limit", "1"+kb.Enter), shown("#result"))
	b.eventually("the answer is shown", `document.querySelector('#result').innerText.includes('"totalCount"') && location.search.includes('p.limit=1')`)
	b.look("api-answer")
	b.visit("/console/api/management/createService")
	b.do(chromedp.SetValue(chromedp.CSS("#body"), `{"name": "tried", "encryptionRequired": true}`), click("form.record button"), shown("button.danger"))
	b.look("api-sure")
	b.do(click("form.record button.danger"), shown("#result"))
	b.eventually("it was made", `document.querySelector('#result').innerText.includes('201 Created')`)
	b.fine("a request")
}

// TestSuggestions types by suggestions, without a mouse.
func TestSuggestions(t *testing.T) {
	c := start(t)
	b := open(t, c)
	b.login()
	c.run(t, "login", "--data", c.data, "--username", "admin")
	c.run(t, "demo")
	b.visit("/console/service-policies/new")
	b.do(focus("#f-identityRoles"))
	b.press("#staf")
	b.eventually("roles are offered", `document.querySelector('#offers li') && document.querySelector('#offers li').textContent === '#staff'`)
	b.press(kb.ArrowDown)
	b.glance("suggestions")
	b.strike("Enter", "Enter")
	b.eventually("one is taken", `/^#staff$/.test(document.querySelector('#f-identityRoles').value) && document.querySelector('#offers').hidden`)
	b.visit("/console/identities")
	b.do(focus("#filter"))
	b.press("isAd")
	b.eventually("members are offered", `document.querySelector('#offers li').textContent === 'isAdmin'`)
	b.press(kb.ArrowDown, kb.Tab)
	b.eventually("operators are offered", `document.querySelector('#offers li') && document.querySelector('#offers li').textContent === '='`)
	b.press(kb.ArrowDown)
	b.strike("Enter", "Enter")
	b.eventually("values are offered", `document.querySelector('#offers li') && document.querySelector('#offers li').textContent === 'true'`)
	b.press(kb.ArrowDown)
	b.glance("filter-words")
	b.strike("Enter", "Enter")
	b.eventually("what comes next is offered", `document.querySelector('#offers li') && document.querySelector('#offers li').textContent === 'and'`)
	b.press(kb.Enter)
	b.eventually("the table is filtered", `(new URLSearchParams(location.search).get('filter') || '').trim() === 'isAdmin = true' && document.querySelectorAll('tbody tr').length >= 1`)
	b.fine("suggestions")
}

// glance leaves a picture of the page as it is: a list of suggestions goes away when the
// window changes.
func (b *browser) glance(name string) {
	b.t.Helper()
	b.accessible(name, allRules)
	if err := os.WriteFile(filepath.Join(bin, "browser", name+".png"), value(b, chromedp.CaptureScreenshot()), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// network has the browser reach the controller slowly, or not at all.
func (b *browser) network(offline bool, latency float64) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: offline, Latency: latency, DownloadThroughput: -1, UploadThroughput: -1}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestLost loses the controller while a form is filled in: it says so, comes back by
// itself, and nothing is lost.
func TestLost(t *testing.T) {
	b := open(t, start(t))
	b.login()
	b.visit("/console/services/new")
	b.do(typed("#f-name", "kept"), typed("#f-roleAttributes", "one"))
	b.network(true, 0)
	b.do(click("form.record button"), shown("#lost"))
	b.eventually("what was typed is there", `document.querySelector('#f-name').value === 'kept' && document.querySelector('#f-roleAttributes').value === 'one'`)
	b.network(false, 0)
	b.eventually("it is back", `document.querySelector('#lost').hidden && !document.querySelector('form.record button').disabled`)
	b.take() // what the browser says of requests that nobody answered
	b.do(click("form.record button"), shown(".fields"))
	if text := b.text("h1"); text != "kept" {
		t.Errorf("the page is of %q", text)
	}
	b.network(false, 1500)
	b.visit("/console/services")
	b.do(focus("#filter"))
	b.press("x", kb.Enter)
	b.eventually("a slow answer says so", `document.documentElement.classList.contains('slow')`)
	b.eventually("and no more once it is there", `!document.documentElement.classList.contains('slow') && location.search === '?filter=x'`)
	b.fine("a slow answer")
}
