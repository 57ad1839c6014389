package console

import "net/http"

// asking is the kind of requests for access, and pending what they are until somebody
// decides.
const (
	asking  = "access-request"
	pending = "pending"
)

// decisions are the ways to decide on a request for access that is pending. Who may is
// for the API to say.
func decisions(of resource, rec members) []navLink {
	if of.Name != asking || rec.text("standing") != pending {
		return nil
	}
	id := rec.text("id")
	return []navLink{{Text: "Approve", Href: of.page(id, "approve")}, {Text: "Deny", Href: of.page(id, "deny")}}
}

// decide asks whether a request for access is to be approved or denied, and does it.
func (v *visit) decide(id, verb string) {
	of := resource{v.Console, v.Kinds.Named(asking)}
	var rec members
	if err := v.get(of.at()+"/"+id, nil, &rec); err != nil {
		v.fail(err)
		return
	}
	fields, _ := v.fieldsOf(of, rec)
	view := sureView{Head: "Approve this request?", Up: navLink{Text: label(rec), Href: of.page(id)}, Facts: fields, Button: "Approve", Keep: "Leave it"}
	if verb == "deny" {
		view.Head, view.Button, view.Danger, view.Asks = "Deny this request?", "Deny", true, "Why, for who asked"
	}
	if standing := rec.text("standing"); standing != pending {
		view.Blocked, view.About = true, "It is "+standing+": there is nothing to decide."
	}
	v.makeSure(view, func() error {
		body := map[string]any{}
		if answer := v.form.Get("answer"); verb == "deny" && answer != "" {
			body["answer"] = answer
		}
		_, err := v.ask(request{method: http.MethodPost, path: of.at() + "/" + id + "/" + verb, body: body})
		return err
	}, of.page(id))
}
