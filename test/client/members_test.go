package client_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// base is the members of everything that has an address.
const base = "id:string createdAt:string updatedAt:string tags:map _links:map "

// commonRouter is the members of every form of an edge router.
const commonRouter = "name:string hostname:string isOnline:bool syncStatus:string supportedProtocols:map cost:number disabled:bool noTraversal:bool "

// TestRequiredMembers looks at every member that clients rely on, in each
// answer that holds it.
func TestRequiredMembers(t *testing.T) {
	s, service, check := checked(t, M{"typeId": "PROCESS", "process": M{"osType": "Linux", "path": "/bin/a"}})
	router := s.add("edge-routers", M{"roleAttributes": []string{s.role}})
	shared.EnrollRouter(t, router)
	s.admin.Post("terminators", M{"service": service, "router": router, "binding": "transport", "address": "tcp:a:1"}).Want(201)
	s.dial(service).Fails(409, "INVALID_POSTURE", "")
	s.report(M{"id": check, "typeId": "PROCESS", "path": "/bin/a", "isRunning": true})
	session := s.dial(service).Want(201)
	signer := s.add("ext-jwt-signers", M{
		"enabled": true, "issuer": servertest.Unique("https://issuer"), "audience": "a",
		"jwksEndpoint": "https://127.0.0.1:1/keys", "externalAuthUrl": "https://login.example.com/",
	})
	services := s.me.Get(root + "services").Want(200)
	posture := s.admin.Get("identities/" + s.user.ID + "/posture-data").Want(200)
	failed := s.admin.Get("identities/" + s.user.ID + "/failed-service-requests").Want(200)
	const detail = base + "name:string terminatorStrategy:string maxIdleTimeMillis:number roleAttributes:list configs:list config:map encryptionRequired:bool permissions:list postureQueries:list"
	const sessionDetail = base + "apiSession:map apiSessionId:string identityId:string service:map serviceId:string token:string type:string edgeRouters:list"
	const reported = "postureCheckId:string timedOut:bool lastUpdatedAt:string "
	for _, test := range []struct {
		a          *servertest.Answer
		at, member string
	}{
		{services, "data.0", detail},
		{s.me.Get(root + "services/" + service), "data", detail},
		{services, "data.0.postureQueries.0", "policyId:string policyType:string isPassing:bool postureQueries:list"},
		{services, "data.0.postureQueries.0.postureQueries.0", base + "isPassing:bool queryType:string timeout:number timeoutRemaining:number process:map"},
		{services, "data.0.postureQueries.0.postureQueries.0.process", "osType:string path:string"},
		{session, "data", sessionDetail},
		{s.me.Get(root + "sessions"), "data.0", sessionDetail},
		{s.me.Get(root + "sessions/" + session.ID()), "data", sessionDetail},
		{s.admin.Get("sessions/" + session.ID()), "data", sessionDetail + " servicePolicies:list"},
		{session, "data.edgeRouters.0", commonRouter + "urls:map appData:map"},
		{s.me.Get(root + "current-identity/edge-routers"), "data.0", base + commonRouter},
		{s.me.Get(root + "services/" + service + "/terminators"), "data.0", base + "service:map serviceId:string routerId:string identity:string"},
		{shared.Nobody(t).Get(root + "external-jwt-signers?filter=" + url.QueryEscape(`id="`+signer+`"`)), "data.0", "id:string _links:map name:string externalAuthUrl:string scopes:list"},
		{s.me.Get(root + "current-api-session/service-updates"), "data", "lastChangeAt:string"},
		{s.me.Get(root + "current-identity"), "data", base + "name:string isAdmin:bool hasEdgeRouterConnection:bool"},
		{posture, "data", "mac:map domain:map os:map processes:list apiSessionPostureData:map"},
		{posture, "data.mac", reported + "addresses:list"},
		{posture, "data.domain", reported + "domain:string"},
		{posture, "data.os", reported + "type:string version:string build:string"},
		{posture, "data.processes.0", reported + "isRunning:bool"},
		{failed, "data.0", "when:string apiSessionId:string serviceId:string serviceName:string sessionType:string policyFailures:list"},
		{failed, "data.0.policyFailures.0", "policyId:string policyName:string checks:list"},
		{failed, "data.0.policyFailures.0.checks.0", "postureCheckId:string postureCheckName:string postureCheckType:string expectedValue:map actualValue:map"},
		{failed, "data.0.policyFailures.0.checks.0.actualValue", "hash:string isRunning:bool signerFingerprints:list"},
	} {
		object, ok := test.a.At(test.at).(M)
		if !ok {
			t.Errorf("there is no %s in %s", test.at, test.a.Raw)
			continue
		}
		for _, member := range strings.Fields(test.member) {
			name, want, _ := strings.Cut(member, ":")
			if got := typeOf(object[name]); got != want {
				t.Errorf("%s.%s is a %s, want a %s: %v", test.at, name, got, want, object)
			}
		}
	}
}

// typeOf is the JSON type of a value.
func typeOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case float64:
		return "number"
	case []any:
		return "list"
	case M:
		return "map"
	}
	return fmt.Sprintf("%T", v)
}
