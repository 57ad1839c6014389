package browser

import "testing"

// TestButtonsOfForms sees what a form would change: nothing is saved by that.
func TestButtonsOfForms(t *testing.T) {
	c := start(t)
	b := open(t, c)
	b.login()
	c.run(t, "login", "--data", c.data, "--username", "admin")
	c.run(t, "create", "service", "wiki")
	b.visit("/console/" + b.first("services") + "/edit")
	b.do(typed("#f-name", "new-"), click("button[formaction*=look]"), shown("#plan"))
	b.eventually("it is said", `document.querySelector('#plan').innerText.includes('new-wiki') && document.querySelector('#f-name').value === 'new-wiki'`)
	b.visit("/console/services")
	b.eventually("nothing was saved", `document.querySelector('a.row').innerText === 'wiki'`)
	b.fine("a look")
}

// TestLint looks a network over, goes from a finding to its record, and deletes a policy
// that an assertion needs.
func TestLint(t *testing.T) {
	c := start(t)
	b := open(t, c)
	b.login()
	c.run(t, "login", "--data", c.data, "--username", "admin")
	b.visit("/console/lint")
	b.look("lint-nothing")
	c.run(t, "create", "service", "wiki", "--roles", "web")
	c.run(t, "create", "identity", "ann", "--type", "User", "--roles", "staff")
	c.run(t, "create", "service-policy", "reads", "--type", "Dial", "--identity-roles", "#staff", "--service-roles", "#web")
	c.run(t, "create", "service-policy", "reads-again", "--type", "Dial", "--identity-roles", "@ann", "--service-roles", "@wiki")
	c.run(t, "create", "service-policy", "typo", "--type", "Bind", "--identity-roles", "#staf", "--service-roles", "#web")
	c.run(t, "create", "assertion", "staff-read", "--expect", "always", "--identity-roles", "#staff", "--service-roles", "#web")
	b.visit("/console/lint")
	b.eventually("findings are shown", `document.body.innerText.includes('netkeep delete service-policy reads-again --yes') && document.body.innerText.includes('1 holds')`)
	b.look("lint")
	c.run(t, "delete", "service-policy", "reads-again", "--yes")
	policy := b.first("service-policies?filter=name+%3D+%22reads%22")
	b.visit("/console/" + policy + "/delete")
	b.look("delete-broken")
	b.do(click("button.danger[formaction]"))
	b.eventually("it is gone", `location.pathname === '/console/service-policies' && !document.body.innerText.includes('reads')`)
	b.visit("/console/lint")
	b.eventually("the assertion is broken", `document.querySelector('.broken a').innerText === 'staff-read'`)
	b.look("lint-broken")
	b.fine("lint")
}
