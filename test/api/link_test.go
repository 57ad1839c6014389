package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

// follow takes every link of a record below the root of an API. There must be
// something at its end, which need not be there to be read.
func follow(t *testing.T, c *servertest.Client, root string, record M) {
	t.Helper()
	for name, link := range record["_links"].(M) {
		href := link.(M)["href"].(string)
		if !strings.HasPrefix(href, "./") {
			t.Errorf("%s leads to %s, which is not relative", name, href)
		}
		if a := c.Get(root + strings.TrimPrefix(href, "./")); a.Status != http.StatusOK && a.Status != http.StatusMethodNotAllowed {
			t.Errorf("%s leads to %s, which answers %d: %s", name, href, a.Status, a.Raw)
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		follow(t, c, "", c.Get(r.path+"/"+create(t, c, r.path, nil)).Want(200).Data())
	})
	c := shared.Admin(t)
	user := shared.AddUser(t, false)
	me := shared.Login(t, user.Username, user.Password)
	authenticator := c.Get("identities/" + user.ID + "/authenticators").Want(200).List()[0]
	follow(t, c, "", authenticator)
	wantLinks(t, authenticator, "self", "./authenticators/"+authenticator["id"].(string), "identities", "./identities/"+user.ID)
	session := me.Get("current-api-session").Want(200).Data()
	id := session["id"].(string)
	listed := c.Get("api-sessions/" + id).Want(200).Data()
	follow(t, c, "", listed)
	wantLinks(t, listed, "self", "./api-sessions/"+id, "sessions", "./sessions?filter=apiSession%3D%22"+id+"%22")
	wantLinks(t, session, "self", "./current-api-session", "current-identity", "./current-identity")
	for _, root := range []string{"/edge/client/v1/", "/edge/management/v1/"} {
		follow(t, me, root, me.Get(root+"current-api-session").Want(200).Data())
		me.Post(root+"current-identity/mfa", nil).Want(201)
		follow(t, me, root, me.Get(root+"current-identity").Want(200).Data())
		follow(t, me, root, me.Get(root+"current-identity/mfa").Want(200).Data())
		me.Delete(root + "current-identity/mfa").Want(200)
		own := me.Get(root + "current-identity/authenticators").Want(200).List()[0]
		follow(t, me, root, own)
		wantLinks(t, own, "self", "./current-identity/authenticators/"+own["id"].(string), "identities", "./current-identity")
	}
}

// wantLinks compares the links of a record with pairs of name and address.
func wantLinks(t *testing.T, record M, pairs ...string) {
	t.Helper()
	want := M{}
	for i := 0; i < len(pairs); i += 2 {
		want[pairs[i]] = M{"href": pairs[i+1]}
	}
	if diff := cmp.Diff(want, record["_links"]); diff != "" {
		t.Errorf("links differ (-want +got):\n%s", diff)
	}
}
