package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"netkeep.internal/test/servertest"
)

// lastEntry is the number of the last audit entry.
func lastEntry(t *testing.T, c *servertest.Client) string {
	t.Helper()
	entries := c.Get("audit-entries?limit=1&sort=" + url.QueryEscape("number desc")).Want(200).List()
	return fmt.Sprint(entries[0]["number"])
}

// TestPast asks for the network as it was: lists, single records, who may use what and
// why.
func TestPast(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	empty := lastEntry(t, c)
	ann := c.Post("identities", M{"name": "ann", "type": "User", "isAdmin": false, "roleAttributes": []string{"staff"}}).Want(201).ID()
	payroll := c.Post("services", M{"name": "payroll", "encryptionRequired": true}).Want(201).ID()
	without := lastEntry(t, c)
	policy := c.Post("service-policies", M{"name": "pay", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#staff"}, "serviceRoles": []string{"@" + payroll}}).Want(201).ID()
	with := c.Get("audit-entries?limit=1&sort=" + url.QueryEscape("number desc")).Want(200).List()[0]["createdAt"].(string)
	s.AddRouter(t)
	whole := lastEntry(t, c)
	c.Patch("identities/"+ann, M{"name": "anna", "roleAttributes": []string{}}).Want(200)
	c.Delete("service-policies/" + policy).Want(200)
	c.Delete("services/" + payroll).Want(200)

	names := func(path string) string {
		t.Helper()
		var names []string
		for _, rec := range c.Get(path).Want(200).List() {
			names = append(names, fmt.Sprint(rec["name"]))
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	for path, want := range map[string]string{
		"services":                                               "",
		"services?at=" + empty:                                   "",
		"services?at=" + without:                                 "payroll",
		"services?at=" + url.QueryEscape(with):                   "payroll",
		"services?filter=name%3D%22x%22&at=" + whole:             "",
		"service-policies?at=" + without:                         "",
		"service-policies?at=" + whole:                           "pay",
		"services/" + payroll + "/who-can?at=" + without:         "",
		"services/" + payroll + "/who-can?at=" + whole:           "ann",
		"identities/" + ann + "/what-can?at=" + whole:            "payroll",
		"service-policies/" + policy + "/identities?at=" + whole: "ann",
		"identities?fields=name&at=" + whole + "&filter=" + url.QueryEscape(`name contains "ann"`): "ann",
	} {
		if got := names(path); got != want {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
	was := c.Get("identities/" + ann + "?at=" + whole).Want(200).Data()
	if was["hasApiSession"] != false || was["name"] != "ann" || was["isAdmin"] != false {
		t.Errorf("ann was %v", was)
	}
	for _, path := range []string{"edge-routers", "routers", "controllers", "terminators", "enrollments", "authenticators", "edge-router-policies"} {
		for _, rec := range c.Get(path + "?limit=50&at=" + whole).Want(200).List() {
			if rec["isOnline"] == true {
				t.Errorf("%s had one that was online: %v", path, rec)
			}
		}
	}
	c.Get("services/" + payroll).Want(404)
	c.Get("services/" + payroll + "?at=" + empty).Want(404)

	why := c.Get("identities/" + ann + "/explain/" + payroll + "?at=" + whole).Want(200).Data()
	policyLink := why["links"].([]any)[1].(M)
	if policyLink["link"] != "service-policy" || policyLink["passed"] != true || len(why["unknown"].([]any)) != 3 || why["allowed"] != false {
		t.Errorf("the explanation is %v", why)
	}
	if link := c.Get("identities/" + ann + "/explain/" + payroll + "?at=" + without).Want(200).Data()["links"].([]any)[1].(M); link["passed"] != false || link["remedy"] != "" {
		t.Errorf("without the policy it is %v", link)
	}

	for _, path := range []string{
		"services?at=yesterday", "services?at=999999999", "services?at=2001-01-01T00:00:00Z",
		"api-sessions?at=" + whole, "sessions?at=" + whole, "audit-entries?at=" + whole, "status?at=" + whole, "summary?at=" + whole,
	} {
		if field := c.Get(path).Want(400).At("error.cause.field"); field != "at" {
			t.Errorf("%s is refused for %v", path, field)
		}
	}
	c.Patch("identities/"+ann+"?at="+whole, M{"name": "x"}).Want(400)
}

// TestPastIsForAdmins has others ask.
func TestPastIsForAdmins(t *testing.T) {
	s := servertest.Start(t)
	s.Nobody(t).Get("services?at=1").Want(401)
}

// TestDifference asks what changed between two moments, and for whom.
func TestDifference(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	ann := c.Post("identities", M{"name": "ann", "type": "User", "isAdmin": false, "roleAttributes": []string{"staff"}}).Want(201).ID()
	from := lastEntry(t, c)
	payroll := c.Post("services", M{"name": "payroll", "encryptionRequired": true}).Want(201).ID()
	c.Post("service-policies", M{"name": "pay", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#staff"}, "serviceRoles": []string{"@" + payroll}}).Want(201)
	c.Patch("identities/"+ann, M{"tags": M{"a": "b"}}).Want(200)
	middle := lastEntry(t, c)
	gone := c.Post("services", M{"name": "gone", "encryptionRequired": true}).Want(201).ID()
	c.Delete("services/" + gone).Want(200)
	c.Delete("services/" + payroll).Want(200)

	told := c.Get("difference?from=" + from + "&to=" + middle).Want(200).Data()
	var records []string
	for _, rec := range told["records"].([]any) {
		r := rec.(M)
		records = append(records, fmt.Sprint(r["outcome"], " ", r["kind"], " ", r["name"], " ", len(r["fields"].([]any))))
	}
	if want := []string{"changed identity ann 1", "created service-policy pay 0", "created service payroll 0"}; !slices.Equal(records, want) {
		t.Errorf("there changed %q, want %q", records, want)
	}
	access := told["access"].(M)
	if pairs := access["pairs"].([]any); len(pairs) != 1 || pairs[0].(M)["identity"] != "ann" || pairs[0].(M)["change"] != "gained" || access["gained"] != 1.0 {
		t.Errorf("there moved %v", access)
	}
	if paged := c.Get("difference?limit=1&offset=1&from=" + from + "&to=" + middle).Want(200).Data(); len(paged["records"].([]any)) != 1 || len(paged["access"].(M)["pairs"].([]any)) != 0 {
		t.Errorf("the second page is %v", paged)
	}
	later := c.Get("difference?from=" + middle).Want(200).Data()
	if counts := later["counts"].(M); counts["unchanged"] != 1.0 || counts["deleted"] != 1.0 || later["access"].(M)["lost"] != 1.0 {
		t.Errorf("later there changed %v", later)
	}
	c.Get("difference").Want(400)
	c.Get("difference?from=" + middle + "&to=" + from).Want(400)
	c.Get("difference?limit=5000&from=" + from).Want(400)
	c.Get("difference?from=x").Want(400)
}

// TestPastFlood has one admin ask for the past very often at once: all are answered,
// or told to wait.
func TestPastFlood(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	for i := range 20 {
		c.Post("services", M{"name": fmt.Sprint("s", i), "encryptionRequired": true}).Want(201)
	}
	var all sync.WaitGroup
	for worker := range 20 {
		all.Go(func() {
			for i := range 50 {
				c.Get(fmt.Sprintf("services?limit=1&at=%d", 1+(worker*50+i)%20)).Want(200)
			}
		})
	}
	all.Wait()
}
