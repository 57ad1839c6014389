package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep.internal/test/servertest"
)

// suggested is what somebody is offered who typed something.
func (b *browser) suggested(source, typed string) (list []string) {
	b.t.Helper()
	a := b.get("/console/suggest?" + url.Values{"for": {source}, "q": {typed}}.Encode()).is(http.StatusOK)
	if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.Header.Get("Content-Type") != "application/json" {
		b.t.Fatalf("%s is answered with %s: %v", typed, a.body, err)
	}
	return list
}

func TestSuggestions(t *testing.T) {
	b, c := admin(t, controller), controller.Admin(t)
	word := servertest.Unique("Sug")
	for _, name := range []string{"x" + word, word + " two", word + "-one", word + `"<b>`} {
		c.Post("identities", M{"name": name, "type": "User", "isAdmin": false, "roleAttributes": []string{"role" + word, word + name[:1]}}).Want(http.StatusCreated)
	}
	list := b.suggested("names:identity", strings.ToLower(word))
	if want := []string{word + " two", word + `"<b>`, word + "-one", "x" + word}; len(list) != 4 || list[3] != "x"+word || !slices.Contains(list, want[1]) {
		t.Errorf("the names are %q", list)
	}
	if list := b.suggested("roles:identity", "@"+word); len(list) != 4 || list[0][0] != '@' {
		t.Errorf("the names are %q", list)
	}
	if list := b.suggested("roles:identity", "#"+word); len(list) != 3 || list[2] != "#role"+word {
		t.Errorf("the attributes are %q", list)
	}
	if list := b.suggested("roles:identity", word); len(list) != 7 || list[0][0] != '#' || list[6][0] != '@' {
		t.Errorf("the roles are %q", list)
	}
	if list := b.suggested("roles:identity", "#a"); !slices.Contains(list, "#all") {
		t.Errorf("the roles are %q", list)
	}
	if list := b.suggested("attributes:identity", "role"+word); !slices.Equal(list, []string{"role" + word}) {
		t.Errorf("the attributes are %q", list)
	}
	if list := b.suggested("names:ca,ext-jwt-signer", "nothing like it"); len(list) != 0 {
		t.Errorf("there is %q", list)
	}
	for _, odd := range []string{"", "names:", "names:none", "attributes:config", "roles:", "x:identity", "names:mfa", "attributes:../identity"} {
		b.suggested(odd, word)
	}
	for _, typed := range append(hostile, `"`, `\`, strings.Repeat("x", 5000), "\x00", `" or true`) {
		b.suggested("roles:identity", typed)
		b.suggested("roles:identity", "#"+typed)
	}
	for range 30 {
		c.Post("services", M{"name": servertest.Unique(word), "encryptionRequired": true}).Want(http.StatusCreated)
	}
	if list := b.suggested("names:service", word); len(list) != 20 {
		t.Errorf("there are %d", len(list))
	}
	open(t, controller).get("/console/suggest?for=names:identity").is(http.StatusUnauthorized)
	u := controller.AddUser(t, false)
	user := open(t, controller)
	user.login(u.Username, u.Password)
	if list := user.suggested("names:identity", ""); len(list) != 0 {
		t.Errorf("somebody is told %q who may not know", list)
	}

	// Inputs say what they are offered, and hold no names themselves.
	page := b.get("/console/service-policies/new")
	for _, want := range []string{`data-suggest="roles:identity"`, `data-suggest="roles:service"`, `data-suggest="roles:posture-check"`} {
		if !page.says(want) {
			t.Errorf("the form of a policy has no %s", want)
		}
	}
	page = b.get("/console/identities/new")
	for _, want := range []string{`data-suggest="attributes:identity"`, `data-suggest="names:auth-policy"`, `data-suggest="names:service" data-after=": "`} {
		if !page.says(want) {
			t.Errorf("the form of an identity has no %s", want)
		}
	}
}

// TestFilterHelp looks at what the filter box says of itself.
func TestFilterHelp(t *testing.T) {
	a := admin(t, controller).get("/console/identities").is(http.StatusOK)
	for _, want := range []string{`<option value="isAdmin" label="yes or no">`, `<option value="createdAt" label="moment">`, `<option value="roleAttributes" label="list">`, `data-values="default, required, failed"`, "Whether the identity may manage the network", "icontains"} {
		if !a.says(want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	// What the page says of filters is true.
	b := admin(t, controller)
	for _, filter := range []string{`name in ["a", "b"]`, `name icontains "x"`, `externalId = null`, `createdAt > datetime(2026-01-31T00:00:00Z)`, `anyOf(roleAttributes) = "staff"`, `allOf(roleAttributes) = "staff"`, `isEmpty(roleAttributes)`, `not (isAdmin = true)`, `name != "x" and isAdmin = true or isAdmin = false sort by createdAt desc limit 10`, `defaultHostingCost between 1 and 9`} {
		b.get("/console/identities?filter=" + url.QueryEscape(filter)).is(http.StatusOK)
	}
}
