package client_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pquerna/otp/totp"

	"netkeep.internal/test/servertest"
)

// checked is a scene with a service behind a posture check.
func checked(t *testing.T, check M) (s *scene, service, id string) {
	t.Helper()
	s = newScene(t)
	service = s.service()
	s.routers()
	check["roleAttributes"] = []string{s.role}
	id = s.add("posture-checks", check)
	s.policy("Dial", M{"postureCheckRoles": []string{"#" + s.role}})
	return s, service, id
}

func (s *scene) report(body M) *servertest.Answer {
	s.Helper()
	return s.me.Post(root+"posture-response", body).Want(201)
}

// passing reads whether the service's policy passes, and what its first query
// says.
func (s *scene) passing(service string) (bool, M) {
	s.Helper()
	a := s.me.Get(root + "services/" + service).Want(200)
	query := a.At("data.postureQueries.0.postureQueries.0").(M)
	return a.At("data.postureQueries.0.isPassing").(bool), query
}

// TestEveryKindOfCheck fails each check first, then passes it, then fails it
// again and loses the session.
func TestEveryKindOfCheck(t *testing.T) {
	process := M{"osType": "Linux", "path": "/usr/bin/agent", "hashes": []string{"abc"}, "signerFingerprint": "0102"}
	multi := []M{
		{"osType": "Linux", "path": "/usr/bin/a", "hashes": []string{"h1"}},
		{"osType": "Linux", "path": "/usr/bin/b", "signerFingerprints": []string{"0304"}},
	}
	running := func(path, hash string, signers ...string) M {
		return M{"typeId": "PROCESS", "path": path, "isRunning": true, "hash": hash, "signerFingerprints": signers}
	}
	for name, test := range map[string]struct {
		check      M
		good, evil []M
	}{
		"OS": {
			M{"typeId": "OS", "operatingSystems": []M{{"type": "Linux", "versions": []string{">=5.0.0"}}}},
			[]M{{"typeId": "OS", "type": "linux", "version": "5.4.0", "build": ""}},
			[]M{{"typeId": "OS", "type": "Linux", "version": "4.19.0", "build": ""}},
		},
		"DOMAIN": {
			M{"typeId": "DOMAIN", "domains": []string{"corp.example.com"}},
			[]M{{"typeId": "DOMAIN", "domain": "CORP.example.com"}}, []M{{"typeId": "DOMAIN", "domain": "home"}},
		},
		"MAC": {
			M{"typeId": "MAC", "macAddresses": []string{"00:1A:2b:3c:4d:5e"}},
			[]M{{"typeId": "MAC", "macAddresses": []string{"ff-ff-ff-ff-ff-ff", "001a2b3c4d5e"}}},
			[]M{{"typeId": "MAC", "macAddresses": []string{"ff-ff-ff-ff-ff-ff"}}},
		},
		"PROCESS": {
			M{"typeId": "PROCESS", "process": process},
			[]M{running("/usr/bin/agent", "ABC", "0102")}, []M{running("/usr/bin/agent", "evil", "0102")},
		},
		"PROCESS_MULTI": {
			M{"typeId": "PROCESS_MULTI", "semantic": "AllOf", "processes": multi},
			[]M{running("/usr/bin/a", "h1"), running("/usr/bin/b", "", "0304")},
			[]M{running("/usr/bin/b", "", "9999")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, service, check := checked(t, test.check)
			s.dial(service).Fails(409, "INVALID_POSTURE", "")
			if ok, _ := s.passing(service); ok {
				t.Error("a device of which nothing is known passes")
			}
			send := func(reports []M) {
				t.Helper()
				for _, r := range reports {
					r["id"] = check
				}
				if a := s.me.Post(root+"posture-response-bulk", reports).Want(200); len(a.Data()["services"].([]any)) != 0 {
					t.Errorf("services are prompted: %s", a.Raw)
				}
			}
			send(test.good)
			if ok, query := s.passing(service); !ok || query["isPassing"] != true || query["queryType"] != name || query["id"] != check {
				t.Errorf("a good device does not pass: %v", query)
			}
			session := s.dial(service).Want(201).ID()
			send(test.evil)
			s.me.Get(root+"sessions/"+session).Fails(404, "NOT_FOUND", "")
			s.admin.Get("sessions/"+session).Fails(404, "NOT_FOUND", "")
			s.dial(service).Fails(409, "INVALID_POSTURE", "")

			failed := s.admin.Get("identities/" + s.user.ID + "/failed-service-requests").Want(200)
			if failed.Total() != 2 {
				t.Fatalf("two requests failed, not %d", failed.Total())
			}
			last := failed.At("data.0.policyFailures.0.checks.0").(M)
			if last["postureCheckId"] != check || last["postureCheckType"] != name || last["expectedValue"] == nil || last["actualValue"] == nil {
				t.Errorf("the last failure is %s", failed.Raw)
			}
			if failed.At("data.0.serviceId") != service || failed.At("data.0.sessionType") != "Dial" {
				t.Errorf("the last failure is %s", failed.Raw)
			}
		})
	}
}

// TestCheckThatOnlyTells fails a check that refuses nobody: the session is given out and
// stays, clients see that all passes, and admins see whom it would refuse, until it is
// enforced.
func TestCheckThatOnlyTells(t *testing.T) {
	s, service, check := checked(t, M{"typeId": "DOMAIN", "mode": "report", "domains": []string{"corp.example.com"}})
	session := s.dial(service).Want(201).ID()
	s.dial(service).Want(201) // the same again
	if ok, query := s.passing(service); !ok || query["isPassing"] != true {
		t.Errorf("the client is told that it fails: %v", query)
	}
	failed := s.admin.Get("identities/" + s.user.ID + "/failed-service-requests").Want(200)
	if failed.Total() != 1 || failed.At("data.0.reportedOnly") != true || failed.At("data.0.policyFailures.0.checks.0.mode") != "report" {
		t.Errorf("what is told once: %s", failed.Raw)
	}
	if !metric(t, shared, `netkeep_posture_failures_total{mode="report",type="DOMAIN"}`) {
		t.Error("it is not counted")
	}
	s.report(M{"id": check, "typeId": "DOMAIN", "domain": "home"})
	s.me.Get(root + "sessions/" + session).Want(200)

	s.admin.Put("posture-checks/"+check, M{"name": s.role, "typeId": "DOMAIN", "domains": []string{"corp.example.com"}, "roleAttributes": []string{s.role}}).Want(200)
	if mode := s.admin.Get("posture-checks/" + check).Want(200).Data()["mode"]; mode != "report" {
		t.Errorf("who does not know of modes makes it %v", mode)
	}
	s.admin.Patch("posture-checks/"+check, M{"typeId": "DOMAIN", "mode": "maybe"}).Fails(400, "COULD_NOT_VALIDATE", "mode")
	s.admin.Patch("posture-checks/"+check, M{"typeId": "DOMAIN", "mode": "enforce"}).Want(200)
	s.removed(session, "the check is enforced")
	s.dial(service).Fails(409, "INVALID_POSTURE", "")
	if failed = s.admin.Get("identities/" + s.user.ID + "/failed-service-requests").Want(200); failed.Total() != 2 || failed.At("data.0.reportedOnly") != nil {
		t.Errorf("what is refused: %s", failed.Raw)
	}
}

// TestChecksOfPolicies has two policies of which one is enough.
func TestChecksOfPolicies(t *testing.T) {
	s, service, _ := checked(t, M{"typeId": "DOMAIN", "domains": []string{"corp"}})
	s.dial(service).Fails(409, "INVALID_POSTURE", "")
	open := s.policy("Dial")
	session := s.dial(service).Want(201).ID()
	s.admin.Delete("service-policies/" + open).Want(200)
	s.me.Get(root+"sessions/"+session).Fails(404, "NOT_FOUND", "")
	s.removed(session, "removal with the last policy that passes")
	queries := s.me.Get(root + "services/" + service).Want(200).Data()["postureQueries"].([]any)
	if len(queries) != 1 {
		t.Errorf("there is one policy, and queries of %d", len(queries))
	}
}

func TestPostureData(t *testing.T) {
	s, _, check := checked(t, M{"typeId": "PROCESS", "process": M{"osType": "Linux", "path": "/bin/data", "hashes": []string{"h"}}})
	s.report(M{"id": "unknown", "typeId": "DOMAIN", "domain": "corp"})
	s.report(M{"id": "unknown", "typeId": "OS", "type": "Linux", "version": "5.4.0", "build": "1"})
	s.report(M{"id": "unknown", "typeId": "MAC", "macAddresses": []string{"00:11:22:33:44:55"}})
	s.report(M{"id": check, "typeId": "PROCESS", "path": "/bin/data", "isRunning": true, "hash": "h"})
	data := s.admin.Get("identities/" + s.user.ID + "/posture-data").Want(200)
	for path, want := range map[string]any{
		"data.domain.domain": "corp", "data.os.type": "Linux", "data.os.version": "5.4.0", "data.os.build": "1",
		"data.mac.addresses.0": "001122334455", "data.processes.0.isRunning": true, "data.processes.0.binaryHash": "h",
		"data.processes.0.postureCheckId": check,
	} {
		if got := data.At(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	// Reports that no check asked for are shown too.
	domain := s.add("posture-checks", M{"typeId": "DOMAIN", "domains": []string{"corp"}})
	multi := s.add("posture-checks", M{"typeId": "PROCESS_MULTI", "semantic": "AnyOf", "processes": []M{{"osType": "Linux", "path": "/bin/b"}}})
	for _, r := range []M{{"id": "unknown", "path": "/bin/data"}, {"id": domain, "path": "/bin/data"}, {"id": multi, "path": "/bin/b"}, {"id": multi, "path": "/bin/c"}} {
		r["typeId"], r["isRunning"], r["hash"] = "PROCESS", true, r["path"]
		s.report(r)
		s.report(r)
	}
	got := map[string]int{}
	for _, p := range s.admin.Get("identities/" + s.user.ID + "/posture-data").Want(200).Data()["processes"].([]any) {
		got[fmt.Sprint(p.(M)["postureCheckId"], p.(M)["binaryHash"])]++
	}
	want := map[string]int{check + "h": 1, "unknown/bin/data": 1, domain + "/bin/data": 1, multi + "/bin/b": 1, multi + "/bin/c": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("processes differ (-want +got):\n%s", diff)
	}
	empty := s.admin.Get("identities/nobody/posture-data").Want(200)
	if n := len(empty.Data()["processes"].([]any)); n != 0 {
		t.Errorf("nobody runs %d processes", n)
	}
}

func TestReportsThatAreRefused(t *testing.T) {
	s := newScene(t)
	long := make([]string, 5000)
	for i := range long {
		long[i] = "00:00:00:00:00:00"
	}
	for what, body := range map[string]M{
		"id":           {"typeId": "DOMAIN", "domain": "x"},
		"typeId":       {"id": "a", "typeId": "MFA"},
		"domain":       {"id": "a", "typeId": "DOMAIN"},
		"type":         {"id": "a", "typeId": "OS", "version": "1"},
		"version":      {"id": "a", "typeId": "OS", "type": "Linux"},
		"macAddresses": {"id": "a", "typeId": "MAC", "macAddresses": long[:1000]},
	} {
		s.me.Post(root+"posture-response", body).Fails(400, "COULD_NOT_VALIDATE", what)
	}
	s.me.Post(root+"posture-response-bulk", M{"id": "a"}).Fails(400, "COULD_NOT_PARSE_BODY", "")
	s.me.Post(root+"posture-response", M{"id": "a", "typeId": "MAC", "macAddresses": long}).Fails(413, "BODY_TOO_LARGE", "")
	shared.Nobody(t).Post(root+"posture-response", M{"id": "a", "typeId": "DOMAIN", "domain": "x"}).Fails(401, "UNAUTHORIZED", "")
}

// TestMFACheck passes a second factor, and is asked for it again after the
// device was unlocked.
func TestMFACheck(t *testing.T) {
	s, service, check := checked(t, M{"typeId": "MFA", "timeoutSeconds": 3600, "promptOnUnlock": true, "promptOnWake": true})
	s.dial(service).Fails(409, "INVALID_POSTURE", "")
	s.me.Post(root+"current-identity/mfa", M{}).Want(201)
	secret := secretOf(t, s.me.Get(root + "current-identity/mfa").Want(200).Data()["provisioningUrl"].(string))
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	before := s.updated()
	s.me.Post(root+"current-identity/mfa/verify", M{"code": code}).Want(200)
	if s.updated() == before {
		t.Error("showing a second factor leaves the time of the last change where it was")
	}
	ok, query := s.passing(service)
	left, _ := query["timeoutRemaining"].(float64)
	if !ok || query["timeout"] != 3600.0 || left <= 3500 || left > 3600 {
		t.Errorf("after the second factor the query is %v", query)
	}
	session := s.dial(service).Want(201).ID()
	a := s.report(M{"id": check, "typeId": "ENDPOINT_STATE", "unlocked": true, "woken": false})
	want := []any{M{
		"id": service, "name": s.me.Get(root + "services/" + service).Want(200).Data()["name"],
		"postureQueryType": "MFA", "timeout": 3600.0, "timeoutRemaining": a.At("data.services.0.timeoutRemaining"),
	}}
	if diff := cmp.Diff(any(want), a.Data()["services"]); diff != "" {
		t.Errorf("prompted services differ (-want +got):\n%s", diff)
	}
	if left, _ := a.At("data.services.0.timeoutRemaining").(float64); left <= 290 || left > 300 {
		t.Errorf("%v seconds are left to show the factor again, want 300", left)
	}
	s.me.Get(root + "sessions/" + session).Want(200) // there is a grace period
	data := s.admin.Get("identities/" + s.user.ID + "/posture-data").Want(200)
	sessions := data.Data()["apiSessionPostureData"].(M)
	if len(sessions) != 1 {
		t.Fatalf("there is one API session: %v", sessions)
	}
	for id, of := range sessions {
		mfa := of.(M)["mfa"].(M)
		if mfa["apiSessionId"] != id || mfa["passedMfa"] != true || mfa["passedAt"] == "" {
			t.Errorf("the second factor is %v", mfa)
		}
	}
	// Another API session has shown nothing.
	other := s.login()
	other.Post(root+"authenticate/mfa", M{"code": "000000"}).Fails(400, "MFA_INVALID_TOKEN", "")
}

// TestMFACheckWithoutMFA takes the second factor away from somebody who uses a
// service that asks for one. A new one is another: what was shown of the old
// does not count for it.
func TestMFACheckWithoutMFA(t *testing.T) {
	for name, remove := range map[string]func(s *scene, code string){
		"by the owner": func(s *scene, code string) {
			s.me.With("mfa-validation-code", code).Delete(root + "current-identity/mfa").Want(200)
		},
		"by an admin": func(s *scene, _ string) { s.admin.Delete("identities/" + s.user.ID + "/mfa").Want(200) },
	} {
		t.Run(name, func(t *testing.T) {
			s, service, _ := checked(t, M{"typeId": "MFA"})
			enroll := func() (codes []any) {
				s.me.Post(root+"current-identity/mfa", M{}).Want(201)
				mine := s.me.Get(root + "current-identity/mfa").Want(200).Data()
				code, err := totp.GenerateCode(secretOf(t, mine["provisioningUrl"].(string)), time.Now())
				if err != nil {
					t.Fatal(err)
				}
				s.me.Post(root+"current-identity/mfa/verify", M{"code": code}).Want(200)
				return mine["recoveryCodes"].([]any)
			}
			other := s.login() // it has shown nothing
			codes := enroll()
			session := s.dial(service).Want(201).ID()
			asks := func(when string) {
				t.Helper()
				if ok, query := s.passing(service); ok || query["isPassing"] != false || query["timeoutRemaining"] != 0.0 {
					t.Errorf("%s the check says %v", when, query)
				}
				s.dial(service).Fails(409, "INVALID_POSTURE", "")
			}
			before := s.updated()
			remove(s, codes[0].(string))
			asks("without a second factor")
			s.me.Get(root+"sessions/"+session).Fails(404, "NOT_FOUND", "")
			s.removed(session, "removal of the session with the second factor")
			if s.updated() == before {
				t.Error("clients are not told to look again")
			}
			for _, of := range s.admin.Get("identities/" + s.user.ID + "/posture-data").Want(200).Data()["apiSessionPostureData"].(M) {
				if of.(M)["mfa"].(M)["passedMfa"] != false {
					t.Errorf("an API session has still passed: %v", of)
				}
			}
			me := s.me
			s.me = other
			enroll()
			s.dial(service).Want(201)
			s.me = me
			asks("with what was shown of the last one")
		})
	}
}

// secretOf reads the secret from what an authenticator app would scan.
func secretOf(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil || u.Query().Get("secret") == "" {
		t.Fatalf("%q has no secret: %v", text, err)
	}
	return u.Query().Get("secret")
}
