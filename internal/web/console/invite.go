package console

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/lang/kind"
)

// inviteView is the form by which somebody is invited.
type inviteView struct {
	formView
	Identity string // id of one that is there already
	Who      string
	Ways     []wayView
	Details  []*inputView // what some ways need
}

// wayView is a way to enroll.
type wayView struct {
	Value, Label, Doc string
	Chosen            bool
}

// enrollWays are how an identity can enroll, in words for who has to choose.
var enrollWays = []wayView{
	{Value: "ott", Label: "With a key of its own", Doc: "The device makes a key, and the network signs a certificate for it. That is what most want."},
	{Value: "updb", Label: "With a user name and password", Doc: "A person chooses a password."},
	{Value: "ottca", Label: "With a certificate of another CA", Doc: "The device has a certificate of a CA that this network knows."},
}

// invitedWith are the fields of an identity that an invitation asks for. The rest can
// be given later.
var invitedWith = []string{"name", "type", "roleAttributes"}

// invitationLasts is how long one is good that is made again, as one of the API is.
const invitationLasts = 3 * time.Hour

// invite leads to the pages of invitations.
func (v *visit) invite(parts []string) {
	switch len(parts) {
	case 1:
		v.inviteNew()
	case 2:
		v.invitation(parts[1])
	default:
		v.missing()
	}
}

// kindOf is a kind that there must be.
func (v *visit) kindOf(name string) resource { return resource{v.Console, v.Kinds.Named(name)} }

// inviteFields are those that the form has of an identity.
func (v *visit) inviteFields() (some []*kind.Field) {
	fields, _ := v.kindOf("identity").creates()
	for _, name := range invitedWith {
		if i := slices.IndexFunc(fields, func(f *kind.Field) bool { return f.Name == name }); i >= 0 {
			some = append(some, fields[i])
		}
	}
	return some
}

// inviteNew invites somebody.
func (v *visit) inviteNew() {
	if v.r.Method != http.MethodPost {
		in := v.usual(v.kindOf("identity"), v.inviteFields())
		in["method"], in["identity"] = enrollWays[0].Value, v.r.URL.Query().Get("identity")
		v.inviteForm(http.StatusOK, &drawing{visit: v, in: in}, formView{})
		return
	}
	if !v.receive(v.MaxBody) {
		return
	}
	if !v.ours() {
		v.inviteAgain("The page was of another session. Nothing was saved yet: look it through and save.")
		return
	}
	in, _ := sent(v.form)
	d := &drawing{visit: v, in: in, errors: map[string]string{}}
	id, err := v.makeInvitation(d)
	switch {
	case len(d.errors) > 0:
		v.inviteForm(http.StatusBadRequest, d, formView{Problem: "Nothing was saved. Look at what is marked."})
	case err != nil:
		v.notInvited(err, d)
	default:
		http.Redirect(v.w, v.r, link("invite", id), http.StatusSeeOther)
	}
}

// inviteAgain shows the form with what was typed in it.
func (v *visit) inviteAgain(why string) {
	in, _ := sent(v.form)
	v.inviteForm(http.StatusOK, &drawing{visit: v, in: in}, formView{Notice: why})
}

// notInvited shows what an API has against it beside the input that it is about.
func (v *visit) notInvited(err error, d *drawing) {
	var f *failure
	if errors.As(err, &f) && f.status < http.StatusInternalServerError {
		for _, input := range []struct{ member, path string }{{"updb", "username"}, {"username", "username"}, {"ottca", "ca"}, {"caId", "ca"}} {
			if member := f.Cause.Field[strings.LastIndex(f.Cause.Field, ".")+1:]; member == input.member {
				d.errors[input.path] = sentence(f.Cause.Reason)
				v.inviteForm(f.status, d, formView{Problem: "Nothing was saved. Look at what is marked."})
				return
			}
		}
	}
	v.notSaved(err, d, v.inviteFields(), func(status int, view formView) { v.inviteForm(status, d, view) })
}

func (v *visit) inviteForm(status int, d *drawing, form formView) {
	d.required, d.of = kind.Create, "identity"
	form.Head, form.About = "Invite", "A person or a device that is to join the network, and how."
	form.Up, form.Action, form.Save = navLink{Text: "Identities", Href: v.kindOf("identity").page()}, link("invite"), "Invite"
	view := inviteView{Identity: d.in["identity"]}
	var fields []*kind.Field
	if view.Identity == "" {
		fields = v.inviteFields()
	} else {
		var rec members
		of := v.kindOf("identity")
		if err := v.get(of.at()+"/"+view.Identity, nil, &rec); err != nil {
			v.fail(err)
			return
		}
		view.Who, form.Head = label(rec), "Invite "+label(rec)
		form.Up = navLink{Text: view.Who, Href: of.page(view.Identity)}
	}
	view.formView = d.view(form, fields)
	for _, w := range enrollWays {
		w.Chosen = d.in["method"] == w.Value
		view.Ways = append(view.Ways, w)
	}
	method := inputPrefix + "method"
	view.Details = []*inputView{
		{Type: "text", Name: inputPrefix + "username", ID: "f-username", Label: "User name", Doc: "Under which the person logs in.", Value: d.in["username"], Error: d.errors["username"], When: method, Word: "updb"},
		{Type: "text", Name: inputPrefix + "ca", ID: "f-ca", Label: "CA", Doc: "Name or id of the CA of which the device has a certificate.", Value: d.in["ca"], Error: d.errors["ca"], Suggest: "names:ca", When: method, Word: "ottca"},
	}
	v.show(status, "invite", page{Title: form.Head, Body: view})
}

// makeInvitation does what the form says and returns the id of the enrollment. What is
// missing is among the errors of the form.
func (v *visit) makeInvitation(d *drawing) (string, error) {
	method := d.in["method"]
	enrollment := map[string]any{}
	switch method {
	case "updb":
		if enrollment["updb"] = d.in["username"]; d.in["username"] == "" {
			d.errors["username"] = "Is needed for a password."
		}
	case "ottca":
		if enrollment["ottca"] = d.in["ca"]; d.in["ca"] == "" {
			d.errors["ca"] = "Is needed for a certificate of another CA."
		}
	default:
		method, enrollment["ott"] = "ott", true
	}
	if id := d.in["identity"]; id != "" {
		if len(d.errors) > 0 {
			return "", nil
		}
		body := map[string]any{"identityId": id, "method": method, "expiresAt": v.Now().UTC().Add(invitationLasts).Format(time.RFC3339)}
		if method == "updb" {
			body["username"] = d.in["username"]
		}
		if method == "ottca" {
			body["caId"] = d.in["ca"]
		}
		of := v.kindOf("enrollment")
		fields, _ := of.creates()
		return v.makeRecord(of, fields, body)
	}
	of := v.kindOf("identity")
	fields, _ := of.creates()
	body := d.body(v.inviteFields())
	if len(d.errors) > 0 {
		return "", nil
	}
	body["isAdmin"], body["enrollment"] = false, enrollment
	id, err := v.makeRecord(of, fields, body)
	if err != nil {
		return "", err
	}
	return v.openInvitation("identityId", id)
}

// openInvitation is the id of the enrollment of a record; empty if it has none.
func (v *visit) openInvitation(member, id string) (string, error) {
	page, err := v.list(v.kindOf("enrollment").at(), url.Values{"filter": {member + " = " + quote(id)}, "limit": {"1"}})
	if err != nil || len(page.Data) == 0 {
		return "", err
	}
	return page.Data[0].text("id"), nil
}

// inviteLink leads from the page of a record to its invitation, or to one that it could
// get; nil if there is neither.
func (v *visit) inviteLink(of resource, id string) *navLink {
	member := map[string]string{"identity": "identityId", "edge-router": "edgeRouterId", "router": "transitRouterId"}[of.Name]
	switch {
	case of.Name == "enrollment":
		return &navLink{Text: "QR code", Href: link("invite", id)}
	case member == "":
		return nil
	}
	if found, err := v.openInvitation(member, id); err == nil && found != "" {
		return &navLink{Text: "Invitation", Href: link("invite", found)}
	}
	if of.Name == "identity" {
		return &navLink{Text: "Invite", Href: link("invite") + "?" + url.Values{"identity": {id}}.Encode()}
	}
	return nil
}

// invitationView is an invitation to hand over.
type invitationView struct {
	Who, How     string
	Up           navLink
	Action       string
	Token        string
	QR           *qrView
	Lines        []string
	Left         string // how long it is good; empty if it is over
	Until, Time  string
	File         string // what a file with the token is best called
	Problem      string
	SavesNothing bool // whether nothing is left on the machine that enrolls
}

// invitation shows one, and makes it again.
func (v *visit) invitation(id string) {
	of := v.kindOf("enrollment")
	problem, status := "", http.StatusOK
	if v.r.Method == http.MethodPost {
		if !v.receive(v.MaxBody) {
			return
		}
		problem, status = v.inviteOnceMore(of, id)
		if problem == "" {
			http.Redirect(v.w, v.r, link("invite", id), http.StatusSeeOther)
			return
		}
	}
	var rec members
	err := v.get(of.at()+"/"+id, nil, &rec)
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusNotFound {
		v.refuse(http.StatusNotFound, "This invitation is over", "It was used, or somebody took it back. Who was invited is among the identities.")
		return
	}
	if err != nil {
		v.fail(err)
		return
	}
	view := v.invited(rec)
	view.Action, view.Problem = link("invite", id), problem
	v.show(status, "invitation", page{Title: "Invitation for " + view.Who, Body: view, Live: of.Path})
}

// inviteOnceMore gives an invitation another token and all of its time. It returns what
// is in the way.
func (v *visit) inviteOnceMore(of resource, id string) (problem string, status int) {
	if !v.ours() {
		return "The page was of another session. Nothing was changed.", http.StatusForbidden
	}
	_, err := v.ask(request{method: http.MethodPost, path: of.at() + "/" + id + "/refresh", body: map[string]any{"expiresAt": v.Now().UTC().Add(invitationLasts).Format(time.RFC3339)}})
	var f *failure
	switch {
	case errors.As(err, &f):
		return "Nothing was changed. " + f.says(), f.status
	case err != nil:
		v.Log.Error("an invitation could not be made again", "error", err)
		return "Nothing was changed. The log of the controller says why.", http.StatusInternalServerError
	}
	return "", 0
}

// invited is an enrollment for people.
func (v *visit) invited(rec members) invitationView {
	view := invitationView{Token: rec.text("jwt")}
	for _, by := range []struct{ member, kind string }{{"identity", "identity"}, {"edgeRouter", "edge-router"}, {"transitRouter", "router"}} {
		var who members
		if json.Unmarshal(rec[by.member], &who) == nil && who.text("id") != "" {
			of := v.kindOf(by.kind)
			view.Who, view.Up = label(who), navLink{Text: label(who), Href: of.page(who.text("id"))}
			view.File = fileName(label(who))
		}
	}
	view.QR = qrCode(view.Token)
	if end, ok := moment(rec.text("expiresAt")); ok {
		view.Until, view.Time = end.UTC().Format("2006-01-02 15:04"), end.UTC().Format(time.RFC3339)
		if left := end.Sub(v.Now()); left > 0 {
			view.Left = lasting(left)
		}
	}
	method := rec.text("method")
	for _, w := range enrollWays {
		if w.Value == method {
			view.How = w.Label
		}
	}
	view.SavesNothing = method == "updb"
	view.Lines = v.linesFor(rec, view)
	return view
}

// jwtText is what a token is written in, which shells take for nothing else.
var jwtText = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

// plainName is what shells and tunnelers take for a name.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// linesFor are the lines to paste on the machine that is to enroll: one that joins, and
// one that uses the network.
func (v *visit) linesFor(rec members, view invitationView) []string {
	if !jwtText.MatchString(view.Token) {
		return nil
	}
	join := "netkeep enroll " + view.Token
	switch rec.text("method") {
	case "ott":
		return []string{join + " -o " + view.File + ".json", v.tunnelLine(rec, view.File)}
	case "ottca":
		return []string{join + " -o " + view.File + ".json --cert " + view.File + ".crt --key " + view.File + ".key", v.tunnelLine(rec, view.File)}
	case "updb":
		login := "netkeep login " + controllerOf(view.Token)
		if name := rec.text("username"); plainName.MatchString(name) {
			login += " --username " + name
		}
		return []string{join, login}
	case "erott", "trott":
		return []string{"netkeep router enroll " + view.Token + " --data " + view.File, "netkeep router run --data " + view.File}
	}
	return nil
}

// tunnelLine brings the machine into the network, with a port for a service that it may
// use if there is one.
func (v *visit) tunnelLine(rec members, file string) string {
	line := "netkeep tunnel run --identity " + file + ".json"
	page, err := v.list(v.kindOf("identity").at()+"/"+rec.text("identityId")+"/services", url.Values{"limit": {"1"}})
	if err == nil && len(page.Data) == 1 && plainName.MatchString(page.Data[0].text("name")) {
		line += " " + page.Data[0].text("name") + ":8080"
	}
	return line
}

// plainHost is a host and port.
var plainHost = regexp.MustCompile(`^[A-Za-z0-9.:\[\]-]+$`)

// controllerOf is the address that a token leads to.
func controllerOf(token string) string {
	var said struct {
		Issuer string `json:"iss"`
	}
	data, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil || json.Unmarshal(data, &said) != nil {
		return ""
	}
	u, err := url.Parse(said.Issuer)
	if err != nil || !plainHost.MatchString(u.Host) {
		return ""
	}
	return "https://" + u.Host
}

// fileName is a name as files are called.
func fileName(name string) string {
	text := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	const most = 40
	text = strings.Trim(text[:min(len(text), most)], "-.")
	if text == "" {
		return "identity"
	}
	return text
}
