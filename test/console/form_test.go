package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

type M = servertest.M

// leaves are the fields that hold values, by their path.
func leaves(fields []*kind.Field, prefix string, shape kind.Shape) (paths []string) {
	for _, f := range fields {
		switch {
		case !f.Taken(shape):
		case f.Form == kind.Struct:
			paths = append(paths, leaves(f.Members, prefix+f.Last()+".", shape)...)
		case f.Form == kind.Structs:
			paths = append(paths, leaves(f.Members, prefix+f.Last()+".0.", kind.Create)...)
		default:
			paths = append(paths, prefix+f.Last())
		}
	}
	return paths
}

// TestEveryField looks for an input of every field that a body may set: a new field
// is in the console by itself.
func TestEveryField(t *testing.T) {
	b := admin(t, controller)
	seen := 0
	for _, d := range model.All.Defs {
		if !d.Verbs.Has(kind.Creates | kind.Gets | kind.Lists) {
			continue
		}
		names := b.get("/console/" + d.Path + "/new").is(http.StatusOK).names()
		for _, path := range leaves(d.Fields, "", kind.Create) {
			// An invitation has no fields that a body sets, and is made by a few of its own.
			if d.Name == "enrollment" && path == "tags" {
				continue
			}
			if seen++; !names["f."+path] {
				t.Errorf("the form of a new %s has no input for %s", d.Name, path)
			}
		}
	}
	if seen < 100 {
		t.Errorf("there are %d fields", seen)
	}
	more := map[string][]string{
		"identities":     {"f.enrollment.ott", "f.enrollment.ottca", "f.enrollment.updb"},
		"authenticators": {"f.password", "f.certPem"},
		"enrollments":    {"f.identityId", "f.method", "f.expiresAt", "f.caId", "f.username"},
	}
	for path, want := range more {
		names := b.get("/console/" + path + "/new").names()
		for _, name := range want {
			if !names[name] {
				t.Errorf("%s has no input %s", path, name)
			}
		}
	}
}

// save sends a form and returns the page of the record that comes of it.
func (b *browser) save(action string, form url.Values) *answer {
	b.t.Helper()
	return b.post(action, form).is(http.StatusOK)
}

// id is that of the record whose page an answer is.
func (a *answer) id() string {
	parts := strings.Split(a.path, "/")
	return parts[len(parts)-1]
}

func TestCreateAndEdit(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	name := servertest.Unique("bob")
	action, form := b.get("/console/identities/new").form(t)
	form.Set("f.name", name)
	form.Set("f.roleAttributes", "staff\r\nfinance\r\n")
	form.Set("f.appData", `{"desk": 7}`)
	form.Set("f.tags", "floor: 3\nremote: true\nnote: \"true\"")
	a := b.save(action, form)
	id := a.id()
	rec := c.Get("identities/" + id).Want(http.StatusOK)
	if rec.At("data.name") != name || rec.At("data.appData.desk") != 7.0 || rec.At("data.tags.remote") != true || rec.At("data.tags.note") != "true" || rec.At("data.tags.floor") != "3" || rec.At("data.enrollment.ott.token") == nil {
		t.Fatalf("the record is %s", rec.Raw)
	}
	for _, text := range []string{name, "staff", "finance", `"desk": 7`} {
		if !a.says(text) {
			t.Errorf("the page does not show %q", text)
		}
	}

	// What is not touched stays, and no change is none.
	action, form = b.get("/console/identities/" + id + "/edit").form(t)
	before := c.Get("identities/" + id).At("data.updatedAt")
	b.save(action, form)
	if c.Get("identities/"+id).At("data.updatedAt") != before {
		t.Error("a form that changes nothing changed something")
	}
	form.Set("f.roleAttributes", "staff")
	form.Set("f.isAdmin", "true")
	b.save(action, form)
	rec = c.Get("identities/" + id)
	if list, _ := rec.At("data.roleAttributes").([]any); len(list) != 1 || rec.At("data.isAdmin") != true || rec.At("data.appData.desk") != 7.0 {
		t.Errorf("the record is %s", rec.Raw)
	}

	// An object is emptied, and a flag is taken away.
	action, form = b.get("/console/identities/" + id + "/edit").form(t)
	form.Set("f.appData", "")
	form.Set("f.tags", "")
	form.Del("f.isAdmin")
	b.save(action, form)
	rec = c.Get("identities/" + id)
	if data, _ := rec.At("data.appData").(M); len(data) != 0 || rec.At("data.isAdmin") != false || len(rec.At("data.tags").(M)) != 0 || rec.At("data.name") != name {
		t.Errorf("the record is %s", rec.Raw)
	}
}

// TestNames gives records by their names where the API has ids.
func TestNames(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	service, policy, who := servertest.Unique("web"), servertest.Unique("policy"), servertest.Unique("ann")
	whoID := c.Post("identities", M{"name": who, "type": "User", "isAdmin": false}).Want(http.StatusCreated).ID()
	serviceID := c.Post("services", M{"name": service, "encryptionRequired": true}).Want(http.StatusCreated).ID()
	action, form := b.get("/console/service-policies/new").form(t)
	form.Set("f.name", policy)
	form.Set("f.type", "Dial")
	form.Set("f.semantic", "AnyOf")
	form.Set("f.identityRoles", "@"+who+"\n#staff")
	form.Set("f.serviceRoles", "@"+service)
	a := b.save(action, form)
	rec := c.Get("service-policies/" + a.id())
	if list, _ := rec.At("data.identityRoles").([]any); !slices.Contains(list, any("@"+whoID)) {
		t.Errorf("the roles are %s", rec.Raw)
	}
	if _, form := b.get("/console/service-policies/" + a.id() + "/edit").form(t); form.Get("f.serviceRoles") != "@"+service {
		t.Errorf("the form has %q", form.Get("f.serviceRoles"))
	}
	for _, path := range []string{"/console/identities/" + whoID, "/console/identities/" + whoID + "/services", "/console/services/" + serviceID + "/service-policies"} {
		if a := b.get(path).is(http.StatusOK); !a.says(service) && !a.says(policy) {
			t.Errorf("%s shows nothing that is related", path)
		}
	}

	// Operations that know ids alone are given them.
	action, form = b.get("/console/authenticators/new").form(t)
	form.Set("f.identityId", who)
	form.Set("f.method", "updb")
	form.Set("f.username", who)
	form.Set("f.password", "a long enough password")
	id := b.save(action, form).id()
	if got := c.Get("authenticators/" + id).At("data.identityId"); got != whoID {
		t.Errorf("the authenticator is of %v", got)
	}
	action, form = b.get("/console/authenticators/" + id + "/edit").form(t)
	form.Set("f.password", "another long password")
	b.save(action, form)
	controller.Login(t, who, "another long password")
	if c.Get("authenticators/"+id).At("data.username") != who {
		t.Error("the user name has changed with the password")
	}
	action, form = b.get("/console/enrollments/new").form(t)
	form.Set("f.identityId", who)
	form.Set("f.method", "ott")
	b.save(action, form)
}

// TestVariants makes a posture check, whose type decides what else it has.
func TestVariants(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	action, form := b.get("/console/posture-checks/new").form(t)
	form.Set("f.name", servertest.Unique("check"))
	form.Set("f.typeId", "OS")
	form.Set("f.domains", "ignored.example")
	form.Set("f.operatingSystems.0.type", "Linux")
	form.Set("f.operatingSystems.0.versions", ">=5.0.0\n<7.0.0")
	form.Set("f.operatingSystems.1.type", "macOS")
	id := b.save(action, form).id()
	rec := c.Get("posture-checks/" + id)
	if list, _ := rec.At("data.operatingSystems").([]any); len(list) != 2 || rec.At("data.operatingSystems.0.versions.1") != "<7.0.0" {
		t.Fatalf("the record is %s", rec.Raw)
	}
	page := b.get("/console/posture-checks/" + id + "/edit")
	action, form = page.form(t)
	if page.names()["f.domains"] || form.Get("f.operatingSystems.1.type") != "macOS" {
		t.Errorf("the form is %v", form)
	}
	form.Set("f.operatingSystems.0.type", "")
	form.Set("f.operatingSystems.0.versions", "")
	b.save(action, form)
	rec = c.Get("posture-checks/" + id)
	if list, _ := rec.At("data.operatingSystems").([]any); len(list) != 1 || rec.At("data.operatingSystems.0.type") != "macOS" {
		t.Errorf("the record is %s", rec.Raw)
	}
}

// TestErrors has mistakes in forms shown beside what they are about.
func TestErrors(t *testing.T) {
	b := admin(t, controller)
	action, form := b.get("/console/identities/new").form(t)
	form.Set("f.name", "")
	form.Set("f.defaultHostingCost", "many")
	form.Set("f.appData", "{")
	a := b.post(action, form).is(http.StatusBadRequest)
	if !a.says("Must be a whole number.") || !a.says("Must be a JSON object.") || !a.says("Nothing was saved") {
		t.Errorf("the page is %s", a.body)
	}
	for field, given := range map[string]string{"f.name": servertest.Username, "f.defaultHostingCost": "70000", "f.authPolicyId": "nothing like it"} {
		_, form := b.get("/console/identities/new").form(t)
		form.Set("f.name", servertest.Unique("wrong"))
		form.Set(field, given)
		if field == "f.name" {
			form.Set(field, "Default Admin")
		}
		a := b.post(action, form)
		_, beside, found := strings.Cut(a.body, `name="`+field+`"`)
		input, _, _ := strings.Cut(beside, `class="doc"`)
		if a.StatusCode < 400 || !found || !strings.Contains(input, `<p class="error">`) {
			t.Errorf("%s: status %d, beside the input is %s", field, a.StatusCode, input)
		}
		if _, again := a.form(t); again.Get("f.name") != form.Get("f.name") {
			t.Errorf("%s: what was typed is gone", field)
		}
	}
}

// TestTwoEditors has two people change one record at once.
func TestTwoEditors(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	name := servertest.Unique("shared")
	id := c.Post("services", M{"name": name, "encryptionRequired": true, "roleAttributes": []string{"one"}}).Want(http.StatusCreated).ID()
	action, form := b.get("/console/services/" + id + "/edit").form(t)

	// Different fields do not meet.
	c.Patch("services/"+id, M{"maxIdleTimeMillis": 5000}).Want(http.StatusOK)
	form.Set("f.roleAttributes", "two")
	b.save(action, form)
	rec := c.Get("services/" + id)
	if rec.At("data.maxIdleTimeMillis") != 5000.0 || rec.At("data.roleAttributes.0") != "two" {
		t.Fatalf("the record is %s", rec.Raw)
	}

	// The same field does: both are shown, and nothing is saved.
	action, form = b.get("/console/services/" + id + "/edit").form(t)
	c.Patch("services/"+id, M{"roleAttributes": []string{"theirs"}, "terminatorStrategy": "random"}).Want(http.StatusOK)
	form.Set("f.roleAttributes", "mine")
	a := b.post(action, form).is(http.StatusConflict)
	if !a.says("theirs") || !a.says("mine") || c.Get("services/"+id).At("data.roleAttributes.0") != "theirs" {
		t.Fatalf("the page is %s", a.body)
	}
	action, form = a.form(t)
	if form.Get("f.terminatorStrategy") != "random" {
		t.Errorf("what was not touched is %q", form.Get("f.terminatorStrategy"))
	}
	b.save(action, form)
	rec = c.Get("services/" + id)
	if rec.At("data.roleAttributes.0") != "mine" || rec.At("data.terminatorStrategy") != "random" {
		t.Errorf("the record is %s", rec.Raw)
	}

	// One that is gone is not there.
	action, form = b.get("/console/services/" + id + "/edit").form(t)
	c.Delete("services/" + id).Want(http.StatusOK)
	b.post(action, form).is(http.StatusNotFound)
}

// TestDelete says what goes along, and deletes what was shown and nothing else.
func TestDelete(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	who, service, policy := servertest.Unique("gone"), servertest.Unique("used"), servertest.Unique("lets")
	id := c.Post("identities", M{"name": who, "type": "User", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated).ID()
	c.Post("services", M{"name": service, "encryptionRequired": true, "roleAttributes": []string{service}}).Want(http.StatusCreated)
	c.Post("service-policies", M{"name": policy, "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"@" + id}, "serviceRoles": []string{"#" + service}}).Want(http.StatusCreated)
	page := b.get("/console/identities/" + id + "/delete").is(http.StatusOK)
	for _, text := range []string{"enrollment", policy, "is changed", who + " can no longer use " + service} {
		if !page.says(text) {
			t.Errorf("the page does not say %q: %s", text, page.body)
		}
	}
	form := url.Values{}
	for _, tag := range inputTag.FindAllString(page.body[strings.Index(page.body, "<form action=\"/console/identities"):], -1) {
		m := map[string]string{}
		for _, at := range attribute.FindAllStringSubmatch(tag, -1) {
			m[at[1]] = at[2]
		}
		form.Set(m["name"], m["value"])
	}
	// More would go along by now.
	c.Post("service-policies", M{"name": servertest.Unique("also"), "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{"@" + id}, "serviceRoles": []string{"#" + service}}).Want(http.StatusCreated)
	again := b.post("/console/identities/"+id+"/delete", form).is(http.StatusConflict)
	if !again.says("can no longer host") {
		t.Errorf("the page does not say what goes along now: %s", again.body)
	}
	for _, m := range []string{"token", "digest"} {
		_, rest, _ := strings.Cut(again.body, `action="/console/identities/`+id+`/delete"`)
		_, rest, _ = strings.Cut(rest, `name="`+m+`" value="`)
		value, _, _ := strings.Cut(rest, `"`)
		form.Set(m, value)
	}
	if a := b.post("/console/identities/"+id+"/delete", form).is(http.StatusOK); a.path != "/console/identities" {
		t.Errorf("a delete leads to %s", a.path)
	}
	c.Get("identities/" + id).Want(http.StatusNotFound)
	b.get("/console/identities/" + id).is(http.StatusNotFound)

	// What cannot be deleted has no button.
	own := c.Get("current-identity").ID()
	if a := b.get("/console/identities/" + own + "/delete"); a.says(`class="danger" type="submit"`) || !a.says("cannot be deleted") {
		t.Errorf("the page of the default admin is %s", a.body)
	}
}

// TestTwoEditorsOfPassword has two people change one credential: what the password was
// nobody can see, so that any change meanwhile counts.
func TestTwoEditorsOfPassword(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	u := controller.AddUser(t, false)
	rec := c.Get("authenticators?filter=" + url.QueryEscape(`username = "`+u.Username+`"`)).At("data.0").(M)
	path := "/console/authenticators/" + rec["id"].(string)
	action, form := b.get(path + "/edit").form(t)
	c.Patch("authenticators/"+rec["id"].(string), M{"password": "theirs, long enough"}).Want(http.StatusOK)
	form.Set("f.password", "mine, long enough")
	a := b.post(action, form).is(http.StatusConflict)
	if !a.says("somebody else has changed the same") {
		t.Errorf("the page is %s", a.body)
	}
	controller.Login(t, u.Username, "theirs, long enough")
	action, form = a.form(t)
	form.Set("f.password", "mine, long enough")
	b.save(action, form)
	controller.Login(t, u.Username, "mine, long enough")

	// The API holds one to what it read, if one says what that was.
	at := "authenticators/" + rec["id"].(string)
	read := c.Get(at).At("data.updatedAt").(string)
	guarded := at + "?unchangedSince=" + url.QueryEscape(read)
	c.Patch(guarded, M{"password": "a third, long enough"}).Want(http.StatusOK)
	c.Patch(guarded, M{"password": "a fourth, long enough"}).Fails(http.StatusConflict, "PLAN_OUTDATED", "")
	c.Put(guarded, M{"username": u.Username, "password": "a fourth, long enough"}).Fails(http.StatusConflict, "PLAN_OUTDATED", "")
	c.Patch(at+"?unchangedSince=yesterday", M{"password": "a fourth, long enough"}).Want(http.StatusBadRequest)
	controller.Login(t, u.Username, "a third, long enough")
}
