package auth_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// asking is a service that can be asked for, which those with an attribute may dial.
type asking struct{ id, name, attribute, approvers string }

func newAsking(t *testing.T, approvals int) asking {
	t.Helper()
	s := asking{name: servertest.Unique("payroll"), attribute: servertest.Unique("finance"), approvers: servertest.Unique("leads")}
	admin := shared.Admin(t)
	s.id = admin.Post("services", M{"name": s.name, "encryptionRequired": true, "requests": M{
		"attribute": s.attribute, "approvers": s.approvers, "approvals": approvals, "longestMinutes": 120,
	}}).Want(http.StatusCreated).ID()
	admin.Post("service-policies", M{
		"name": servertest.Unique("policy"), "type": "Dial", "semantic": "AnyOf",
		"identityRoles": []any{"#" + s.attribute}, "serviceRoles": []any{"@" + s.id},
	}).Want(http.StatusCreated)
	return s
}

const requestsPath = api.ClientRoot + "/access-requests"

func (s asking) body() M { return M{"service": s.name, "minutes": 60, "reason": "quarter end"} }

// sees reports whether somebody may use the service.
func (s asking) sees(c *servertest.Client) bool {
	return slices.ContainsFunc(c.Get(api.ClientRoot+"/services?limit=500").Want(http.StatusOK).List(), func(one M) bool { return one["id"] == s.id })
}

// TestAskForAccess has somebody ask for a service that they do not see, and two others
// decide.
func TestAskForAccess(t *testing.T) {
	t.Parallel()
	s := newAsking(t, 2)
	annID := add(t, nil)
	ann, bob := enter(t, annID), enter(t, add(t, nil))
	cat, dan := enter(t, add(t, M{"roleAttributes": []any{s.approvers}})), enter(t, add(t, M{"roleAttributes": []any{s.approvers}}))

	asked := ann.Post(requestsPath, s.body()).Want(http.StatusCreated)
	one := requestsPath + "/" + asked.ID()
	if asked.At("data.standing") != "pending" || asked.At("data.isOwn") != true || asked.At("data.canDecide") != false {
		t.Errorf("it is %s", asked.Raw)
	}
	bob.Get(one).Fails(http.StatusNotFound, "NOT_FOUND", "")
	bob.Post(one+"/approve", nil).Fails(http.StatusNotFound, "NOT_FOUND", "")
	bob.Post(one+"/withdraw", nil).Fails(http.StatusNotFound, "NOT_FOUND", "")
	if n := bob.Get(requestsPath).Total(); n != 0 {
		t.Errorf("bob sees %d requests", n)
	}
	ann.Post(one+"/approve", nil).Fails(http.StatusBadRequest, "COULD_NOT_VALIDATE", "")
	enter(t, annID).Post(one+"/approve", nil).Fails(http.StatusBadRequest, "COULD_NOT_VALIDATE", "")
	if got := cat.Get(requestsPath).List(); len(got) != 1 || got[0]["canDecide"] != true || got[0]["isOwn"] != false {
		t.Errorf("cat sees %v", got)
	}
	first := cat.Post(one+"/approve", nil).Want(http.StatusOK)
	if first.At("data.standing") != "pending" || first.At("data.approvals") != 1.0 || first.At("data.needed") != 2.0 || s.sees(ann) {
		t.Errorf("with one of two it is %s", first.Raw)
	}
	cat.Post(one+"/approve", nil).Fails(http.StatusBadRequest, "COULD_NOT_VALIDATE", "")
	dan.Post(one+"/approve", nil).Want(http.StatusOK)
	if !s.sees(ann) || ann.Get(one).At("data.standing") != "approved" {
		t.Errorf("approved it is %s, and ann sees the service: %v", ann.Get(one).Raw, s.sees(ann))
	}
	admin := shared.Admin(t)
	grant := admin.Get("grants/" + ann.Get(one).At("data.grantId").(string)).Want(http.StatusOK)
	if grant.At("data.requestId") != asked.ID() || grant.At("data.identityId") != annID || grant.At("data.attribute") != s.attribute {
		t.Errorf("the grant is %s", grant.Raw)
	}
	ann.Post(one+"/withdraw", nil).Want(http.StatusOK)
	if s.sees(ann) {
		t.Error("what was given back is there still")
	}
}

// TestDecideByPower has an admin deny by the Management API, which a machine may not.
func TestDecideByPower(t *testing.T) {
	t.Parallel()
	s := newAsking(t, 1)
	admin := shared.Admin(t)
	ann := enter(t, add(t, nil))
	id := ann.Post(requestsPath, s.body()).Want(http.StatusCreated).ID()
	if admin.Get("access-requests/"+id).At("data.service.name") != s.name {
		t.Error("an admin does not see it")
	}
	helpdesk := enter(t, add(t, M{"adminRoles": []any{"helpdesk"}}))
	helpdesk.Post("access-requests/"+id+"/approve", nil).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	token := admin.Post("tokens", M{"name": servertest.Unique("ci"), "roleId": "admin", "expiresAt": ends}).Want(http.StatusCreated)
	machine := shared.Nobody(t).With("Authorization", "Bearer "+token.At("data.token").(string))
	machine.Get("access-requests/" + id).Want(http.StatusOK)
	machine.Post("access-requests/"+id+"/approve", nil).Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
	admin.Post("access-requests/"+id+"/deny", M{"answer": "ask in June"}).Want(http.StatusOK)
	if got := ann.Get(requestsPath + "/" + id).Data(); got["standing"] != "denied" || got["answer"] != "ask in June" || s.sees(ann) {
		t.Errorf("denied it is %v", got)
	}
}

// TestAskInVain is what is refused, and what nobody learns by it.
func TestAskInVain(t *testing.T) {
	t.Parallel()
	s, admin := newAsking(t, 1), shared.Admin(t)
	ann := enter(t, add(t, nil))
	for member, values := range map[string][]any{
		"minutes": {0, -1, 121, 5256000, "1h"}, "reason": {"", string(make([]byte, 2000)), "\u200b"}, "service": {""},
	} {
		for _, value := range values {
			body := s.body()
			body[member] = value
			if a := ann.Post(requestsPath, body); a.Status != http.StatusBadRequest {
				t.Errorf("%s = %v: %d %s", member, value, a.Status, a.Raw)
			}
		}
	}
	closed := servertest.Unique("closed")
	admin.Post("services", M{"name": closed, "encryptionRequired": true}).Want(http.StatusCreated)
	for _, name := range []string{closed, servertest.Unique("nothing")} {
		body := s.body()
		body["service"] = name
		ann.Post(requestsPath, body).Fails(http.StatusNotFound, "NOT_FOUND", "service")
	}
	for member, value := range map[string]any{"approvers": s.attribute, "attribute": "#x", "approvals": 3, "longestMinutes": 10081} {
		requests := M{"attribute": s.attribute, "approvers": s.approvers, "approvals": 1, "longestMinutes": 60}
		requests[member] = value
		admin.Patch("services/"+s.id, M{"requests": requests}).Fails(http.StatusBadRequest, "COULD_NOT_VALIDATE", "requests."+member)
	}
	if got := admin.Get(api.ClientRoot + "/services/" + s.id).Want(http.StatusOK).Data(); got["requests"] != nil {
		t.Errorf("the Client API tells %v", got["requests"])
	} else if _, there := got["requests"]; there {
		t.Error("the Client API shows requests")
	}
	admin.Patch(api.ClientRoot+"/services/"+s.id, M{"requests": nil}).Want(http.StatusOK)
	admin.Put(api.ClientRoot+"/services/"+s.id, M{"name": s.name, "encryptionRequired": true}).Want(http.StatusOK)
	if admin.Get("services/"+s.id).At("data.requests.attribute") != s.attribute {
		t.Error("the Client API changes who may ask")
	}
	admin.Patch("services/"+s.id, M{"requests": nil}).Want(http.StatusOK)
	if got := admin.Get("services/" + s.id).Data()["requests"]; got != nil {
		t.Errorf("taken away it is %v", got)
	}
	admin.Patch("services/"+s.id, M{"requests": M{"approvers": "leads"}}).Fails(http.StatusBadRequest, "COULD_NOT_VALIDATE", "requests.attribute")
	admin.Patch("services/"+s.id, M{"requests": M{"attribute": s.attribute, "approvers": "leads"}}).Want(http.StatusOK)
	if got := admin.Get("services/" + s.id).At("data.requests.longestMinutes"); got != 480.0 {
		t.Errorf("without a word on it the longest is %v", got)
	}
}
