package main

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/pquerna/otp/totp"

	"netkeep.internal/test/upgrade/fixture"
)

// network is a controller that is being filled, and the ids of what it has.
type network struct {
	*client
	known fixture.Known
	ids   map[string]string
}

// fill gives a controller something of every kind, in every variant.
func fill(at, caFile string) (_ *fixture.Known, err error) {
	defer func() {
		if p := recover(); p != nil {
			failed, ok := p.(error)
			if !ok {
				panic(p)
			}
			err = failed
		}
	}()
	n := &network{client: connect(at, caFile), known: fixture.Known{Password: password}, ids: map[string]string{}}
	n.login("password", M{"username": "admin", "password": password})
	n.addAuthorities()
	n.addServices()
	n.addPeople()
	n.addRouters()
	n.addPolicies()
	n.enrollDevices()
	n.usePerson()
	n.post("database/snapshot", nil)
	return &n.known, nil
}

// put creates something and remembers its id by its name.
func (n *network) put(path string, body M) string {
	id := n.add(path, body)
	n.ids[body["name"].(string)] = id
	return id
}

// addAuthorities adds those who may say who somebody is.
func (n *network) addAuthorities() {
	signer := newAuthority("signer")
	n.put("external-jwt-signers", M{
		"name": "by certificate", "enabled": true, "issuer": "https://issuer.example.org", "audience": "netkeep",
		"certPem": certPEM(signer.cert), "kid": "key-1", "claimsProperty": "email", "useExternalId": true,
		"externalAuthUrl": "https://issuer.example.org/login", "tags": M{"owner": "IT"},
	})
	n.put("external-jwt-signers", M{
		"name": "by endpoint", "enabled": false, "issuer": "https://keys.example.org", "audience": nil,
		"jwksEndpoint": "https://keys.example.org/jwks.json",
	})
	n.put("auth-policies", M{
		"name": "lenient",
		"primary": M{
			"cert":   M{"allowed": true, "allowExpiredCerts": true},
			"updb":   M{"allowed": true, "minPasswordLength": 8, "requireSpecialChar": false, "requireNumberChar": false, "requireMixedCase": false, "maxAttempts": 5, "lockoutDurationMinutes": 3},
			"extJwt": M{"allowed": true, "allowedSigners": []any{n.ids["by certificate"]}},
		},
		"secondary": M{"requireTotp": false},
	})
	n.put("auth-policies", M{
		"name": "strict",
		"primary": M{
			"cert":   M{"allowed": false, "allowExpiredCerts": false},
			"updb":   M{"allowed": true, "minPasswordLength": 12, "requireSpecialChar": true, "requireNumberChar": true, "requireMixedCase": true, "maxAttempts": 0, "lockoutDurationMinutes": 0},
			"extJwt": M{"allowed": false, "allowedSigners": []any{}},
		},
		"secondary": M{"requireTotp": true, "requireExtJwtSigner": n.ids["by endpoint"]},
	})
}

// addServices adds what people want to reach.
func (n *network) addServices() {
	n.put("config-types", M{"name": "own.v1", "schema": M{
		"type": "object", "additionalProperties": false, "properties": M{"label": M{"type": "string"}, "size": M{"type": "integer"}},
	}})
	n.put("configs", M{"name": "label", "configTypeId": n.ids["own.v1"], "data": M{"label": "Zürich ☂ <&>", "size": 7}, "tags": M{"note": nil}})
	n.put("configs", M{"name": "other label", "configTypeId": n.ids["own.v1"], "data": M{"label": "for one"}})
	n.put("configs", M{"name": "intercept", "configTypeId": "g7cIWbcGg", "data": M{
		"protocols": []any{"tcp"}, "addresses": []any{"*.example.org", "10.0.0.0/8"}, "portRanges": []any{M{"low": 1, "high": 65535}},
	}})
	n.put("services", M{
		"name": "web", "encryptionRequired": true, "roleAttributes": []any{"public", "eu"}, "configs": []any{n.ids["label"], n.ids["intercept"]},
		"tags": M{"team": "site", "critical": true},
	})
	n.put("services", M{"name": "db", "encryptionRequired": false, "terminatorStrategy": "weighted"})
	for _, check := range []M{
		{"typeId": "DOMAIN", "domains": []any{"example.org", "example.com"}},
		{"typeId": "MAC", "macAddresses": []any{"00:1A:2b:3c:4d:5e", "aabbccddeeff"}},
		{"typeId": "MFA", "timeoutSeconds": 600, "promptOnWake": true, "promptOnUnlock": false, "ignoreLegacyEndpoints": true},
		{"typeId": "OS", "operatingSystems": []any{M{"type": "Windows", "versions": []any{">=10.0.0", "8.1.0"}}, M{"type": "Linux", "versions": []any{}}}},
		{"typeId": "PROCESS", "process": M{"osType": "Linux", "path": "/usr/bin/guard", "hashes": []any{"aa"}, "signerFingerprint": "bb"}},
		{"typeId": "PROCESS_MULTI", "semantic": "AnyOf", "processes": []any{M{"osType": "macOS", "path": "/Applications/guard", "hashes": []any{"cc"}, "signerFingerprints": []any{"dd"}}}},
	} {
		check["name"], check["roleAttributes"] = fmt.Sprint("check ", check["typeId"]), []any{"device"}
		n.put("posture-checks", check)
	}
}

// addPeople adds identities with passwords, and some that were only invited.
func (n *network) addPeople() {
	n.put("identities", M{
		"name": "person", "type": "User", "isAdmin": false, "externalId": "person@example.org", "authPolicyId": n.ids["lenient"],
		"roleAttributes": []any{"staff", "eu"}, "appData": M{"nested": M{"list": []any{1, "two", nil}}}, "tags": M{"desk": "4b", "remote": true},
		"defaultHostingCost": 77, "defaultHostingPrecedence": "required",
		"serviceHostingCosts": M{n.ids["web"]: 12}, "serviceHostingPrecedences": M{n.ids["web"]: "failed"},
	})
	n.put("identities", M{"name": "clerk", "type": "User", "isAdmin": true, "roleAttributes": []any{"staff"}})
	n.put("identities", M{"name": "robot", "type": "Service", "isAdmin": false})
	for _, who := range []string{"person", "clerk"} {
		n.add("authenticators", M{"identityId": n.ids[who], "method": "updb", "username": who, "password": password})
	}
	n.post("identities/"+n.ids["robot"]+"/disable", M{"durationMinutes": 0})
	n.post("identities/"+n.ids["person"]+"/service-configs", []any{M{"serviceId": n.ids["web"], "configId": n.ids["other label"]}})
	n.put("identities", M{"name": "invited by token", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}})
	n.put("identities", M{"name": "invited by name", "type": "User", "isAdmin": false, "enrollment": M{"updb": "newcomer"}})
}

// addRouters adds routers, one of which has enrolled.
func (n *network) addRouters() {
	n.put("edge-routers", M{
		"name": "edge", "cost": 3, "noTraversal": true, "isTunnelerEnabled": true, "roleAttributes": []any{"eu"}, "appData": M{"rack": 9},
	})
	n.put("edge-routers", M{"name": "spare", "disabled": true})
	n.put("routers", M{"name": "transit", "cost": 5})
	token := n.get("edge-routers/" + n.ids["edge"])["enrollmentToken"].(string)
	n.as(nil).post("enroll?method=erott&token="+url.QueryEscape(token), M{
		"certCsr":       csrPEM(newKey(), x509.CertificateRequest{Subject: pkix.Name{CommonName: n.ids["edge"]}}),
		"serverCertCsr": csrPEM(newKey(), x509.CertificateRequest{DNSNames: []string{"edge.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}),
	})
	n.add("terminators", M{
		"service": n.ids["web"], "router": n.ids["transit"], "binding": "transport", "address": "tcp:127.0.0.1:80",
		"identity": "instance-1", "identitySecret": "c2VjcmV0IQ==", "cost": 40, "precedence": "required",
	})
	n.add("terminators", M{"service": n.ids["db"], "router": n.ids["edge"], "binding": "udp", "address": "udp:127.0.0.1:53"})
}

// addPolicies says who may what.
func (n *network) addPolicies() {
	for _, p := range []M{
		{"name": "dial web", "type": "Dial", "semantic": "AllOf", "identityRoles": []any{"#staff", "#eu"}, "serviceRoles": []any{"@" + n.ids["web"]}, "postureCheckRoles": []any{}},
		{"name": "dial with checks", "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"#all"}, "serviceRoles": []any{"#public"}, "postureCheckRoles": []any{"#device", "@" + n.ids["check MFA"]}},
		{"name": "host db", "type": "Bind", "semantic": "AnyOf", "identityRoles": []any{"@" + n.ids["person"]}, "serviceRoles": []any{"@" + n.ids["db"]}, "tags": M{"why": "it runs there"}},
	} {
		n.put("service-policies", p)
	}
	n.put("edge-router-policies", M{"name": "all routers", "semantic": "AnyOf", "identityRoles": []any{"#all"}, "edgeRouterRoles": []any{"#eu", "@" + n.ids["spare"]}})
	n.put("service-edge-router-policies", M{"name": "all services", "semantic": "AllOf", "serviceRoles": []any{"#all"}, "edgeRouterRoles": []any{"#all"}})
}

// enrollDevices adds identities with certificates, by the controller's CA and
// by one of somebody else.
func (n *network) enrollDevices() {
	n.put("identities", M{"name": "phone", "type": "Device", "isAdmin": false, "authPolicyId": n.ids["lenient"], "enrollment": M{"ott": true}})
	invitation := n.get("identities/" + n.ids["phone"])["enrollment"].(M)["ott"].(M)
	key := newKey()
	enrolled := n.as(nil).send(http.MethodPost, "enroll?method=ott&token="+url.QueryEscape(invitation["token"].(string)),
		"application/x-pem-file", []byte(csrPEM(key, x509.CertificateRequest{})))
	n.known.PhoneCert, n.known.PhoneKey = enrolled["cert"].(string), keyPEM(key)
	block, _ := pem.Decode([]byte(n.known.PhoneCert))
	n.as(pair(block.Bytes, key)).login("cert", M{"sdkInfo": M{"appId": "phone", "type": "sdk", "version": "1.2.3"}})

	ca := newAuthority("partner")
	id := n.put("cas", M{
		"name": "partner", "certPem": certPEM(ca.cert), "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": true, "isOttCaEnrollmentEnabled": true,
		"identityRoles": []any{"partner"}, "identityNameFormat": "[caName]/[commonName]",
		"externalIdClaim": M{"location": "SAN_EMAIL", "matcher": "SUFFIX", "matcherCriteria": "@example.org", "parser": "SPLIT", "parserCriteria": "@", "index": 0},
	})
	proof := ca.sign(&x509.Certificate{Subject: pkix.Name{CommonName: n.get("cas/" + id)["verificationToken"].(string)}}, newKey())
	n.send(http.MethodPost, "cas/"+id+"/verify", "text/plain", []byte(certPEM(proof)))
	key = newKey()
	cert := ca.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "visitor"}, EmailAddresses: []string{"visitor@example.org"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, key)
	n.known.PartnerCert, n.known.PartnerKey = certPEM(cert), keyPEM(key)
	n.as(pair(cert.Raw, key)).post("enroll?method=ca", M{})
	n.put("identities", M{"name": "invited by CA", "type": "Device", "isAdmin": false, "enrollment": M{"ottca": id}})
	n.put("cas", M{
		"name": "unverified", "certPem": certPEM(newAuthority("unverified").cert), "isAuthEnabled": false, "isAutoCaEnrollmentEnabled": false,
		"isOttCaEnrollmentEnabled": false, "identityRoles": []any{},
	})
}

func pair(cert []byte, key *ecdsa.PrivateKey) *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}
}

// usePerson logs in with two factors and takes all that a session can have.
func (n *network) usePerson() {
	person := n.as(nil).login("password", M{
		"username": "person", "password": password, "configTypes": []any{n.ids["own.v1"]},
		"envInfo": M{"arch": "amd64", "os": "linux", "osRelease": "6.1", "osVersion": "6.1.0", "domain": "example.org", "hostname": "desk"},
		"sdkInfo": M{"appId": "desk", "appVersion": "3", "branch": "main", "revision": "abc", "type": "sdk", "version": "1.0.0"},
	})
	n.known.SessionToken = person.token
	n.known.TOTPSecret, n.known.RecoveryCodes = person.startMFA()
	person.post("current-identity/mfa/verify", M{"code": must(totp.GenerateCode(n.known.TOTPSecret, time.Now()))})
	person.post("current-api-session/certificates", M{"csr": csrPEM(newKey(), x509.CertificateRequest{})})
	person.post("sessions", M{"serviceId": n.ids["web"], "type": "Dial", "tags": M{"purpose": "read"}})
	person.post("sessions", M{"serviceId": n.ids["db"], "type": "Bind"})
	person.post("posture-response", M{"id": n.ids["check MFA"], "typeId": "OS", "type": "Linux", "version": "6.1.0", "build": "1"})

	clerk := n.as(nil).login("password", M{"username": "clerk", "password": password})
	clerk.startMFA() // and leaves it at that
}

// startMFA begins to enroll a second factor.
func (c *client) startMFA() (secret string, codes []string) {
	c.post("current-identity/mfa", nil)
	data := c.get("current-identity/mfa")
	for _, code := range data["recoveryCodes"].([]any) {
		codes = append(codes, code.(string))
	}
	return must(url.Parse(data["provisioningUrl"].(string))).Query().Get("secret"), codes
}
