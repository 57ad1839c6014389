package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// reached are the names that ways lead to, each with what it may.
func reached(ways M) string {
	var all []string
	for _, r := range ways["reached"].([]any) {
		text := fmt.Sprint(r.(M)["name"])
		for _, may := range []string{"dial", "bind"} {
			if r.(M)[may] == true {
				text += " " + may
			}
		}
		for _, w := range r.(M)["ways"].([]any) {
			text += " " + w.(M)["policy"].(string)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestWays asks through which policies somebody has a service, on both sides, now and
// then.
func TestWays(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	ann := c.Post("identities", M{"name": "ann", "type": "User", "isAdmin": false, "roleAttributes": []string{"staff"}}).Want(201).ID()
	c.Post("identities", M{"name": "bob", "type": "User", "isAdmin": false}).Want(201)
	web := c.Post("services", M{"name": "web", "encryptionRequired": true, "roleAttributes": []string{"public"}}).Want(201).ID()
	c.Post("services", M{"name": "mail", "encryptionRequired": true, "roleAttributes": []string{"public"}}).Want(201)
	c.Post("service-policies", M{"name": "p1", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#staff"}, "serviceRoles": []string{"#public"}}).Want(201)
	before := lastEntry(t, c)
	c.Post("service-policies", M{"name": "p2", "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"@" + web, "#none"}}).Want(201)
	for path, want := range map[string]string{
		"identities/" + ann + "/access":                           "mail dial p1, web dial bind p1 p2",
		"identities/" + ann + "/access?at=" + before:              "mail dial p1, web dial p1",
		"identities/" + ann + "/access?limit=1&offset=1":          "web dial bind p1 p2",
		"identities/" + ann + "/access?limit=0":                   "",
		"services/" + web + "/access":                             "Default Admin bind p2, ann dial bind p1 p2, bob bind p2",
		"services/" + web + "/access?at=" + before:                "ann dial p1",
		"services/" + web + "/access?offset=3000000&at=" + before: "",
	} {
		if got := reached(c.Get(path).Want(200).Data()); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	ways := c.Get("identities/" + ann + "/access").Want(200)
	if ways.At("data.count") != 2.0 || ways.At("data.policyCount") != 2.0 || ways.At("data.policies.0.ends.0.count") != 2.0 || ways.At("data.policies.1.ends.0.count") != 0.0 || ways.At("data.policies.1.ends.1.name") != "@web" || ways.At("data.admin") != false {
		t.Errorf("the ways are %s", ways.Raw)
	}
	if admin := c.Get("identities/" + c.Get("current-identity").ID() + "/access").Want(200); admin.At("data.admin") != true || admin.At("data.count") != 1.0 {
		t.Errorf("the ways of an admin are %s", admin.Raw)
	}
	c.Get("identities/none/access").Want(404)
	c.Get("services/" + ann + "/access").Want(404)
	c.Get("identities/"+ann+"/access?limit=501").Fails(400, "COULD_NOT_VALIDATE", "limit")
	c.Get("identities/"+ann+"/access?offset=-1").Fails(400, "COULD_NOT_VALIDATE", "offset")
}

// TestRemedies makes the changes that an explanation names, one after the other, until
// nothing is left that a change of a record could mend.
func TestRemedies(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	ann := c.Post("identities", M{"name": "ann, it's \"me\"", "type": "User", "isAdmin": false, "roleAttributes": []string{"a"}}).Want(201).ID()
	web := c.Post("services", M{"name": "@web", "encryptionRequired": true}).Want(201).ID()
	c.Post("edge-routers", M{"name": "paris"}).Want(201)
	var made []string
	for range 8 {
		links := c.Get("identities/" + ann + "/explain/" + web).Want(200).Data()["links"].([]any)
		i := slices.IndexFunc(links, func(l any) bool { return len(l.(M)["changes"].([]any)) > 0 })
		if i < 0 {
			break
		}
		made = append(made, links[i].(M)["link"].(string))
		changes := M{"changes": links[i].(M)["changes"]}
		changes["expect"] = c.Post("changes?plan=true", changes).Want(200).Data()["digest"]
		c.Post("changes", changes).Want(200)
		if again := c.Get("identities/" + ann + "/explain/" + web).Data()["links"].([]any)[i].(M); again["passed"] != true || len(again["changes"].([]any)) != 0 {
			t.Fatalf("the link is %v", again)
		}
	}
	if got := strings.Join(made, " "); got != "service-policy edge-router-policy service-edge-router-policy" {
		t.Errorf("mended were %s", got)
	}
	at := url.QueryEscape(lastEntry(t, c))
	for _, l := range c.Get("identities/" + ann + "/explain/" + web + "?type=Bind&at=" + at).Want(200).Data()["links"].([]any) {
		if len(l.(M)["changes"].([]any)) != 0 {
			t.Errorf("in the past nobody can mend %v", l)
		}
	}
}
