package overlay_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/overlay"
	"netkeep.internal/test/networktest"
	"netkeep.internal/test/servertest"
)

// addChecked makes a service that everybody may host, and dial who passes a
// check. Somebody hosts it.
func addChecked(n *networktest.Network, host *overlay.Network, check M) (name string) {
	n.T.Helper()
	name = servertest.Unique("checked")
	create := func(kind string, body M) string {
		n.T.Helper()
		return n.Admin.Post(networktest.Management+kind, body).Want(201).ID()
	}
	id := create("services", M{"name": name, "encryptionRequired": false, "roleAttributes": []string{n.Word}})
	check["name"], check["roleAttributes"] = name, []string{name}
	create("posture-checks", check)
	policy := M{"name": name + "-host", "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{"#" + n.Word}, "serviceRoles": []string{"@" + id}}
	create("service-policies", policy)
	policy["name"], policy["type"], policy["postureCheckRoles"] = name+"-dial", "Dial", []string{"#" + name}
	create("service-policies", policy)
	l, err := host.Listen(n.T.Context(), name)
	if err != nil {
		n.T.Fatal(err)
	}
	go sendBack(l)
	return name
}

// dials reports whether a service can be dialled; it may only be denied.
func dials(t *testing.T, network *overlay.Network, service string) bool {
	t.Helper()
	conn, err := network.Dial(t.Context(), service)
	if err == nil {
		must(t, conn.Close())
	} else if !errors.Is(err, overlay.ErrDenied) {
		t.Error(err)
	}
	return err == nil
}

// TestPosture has programs answer checks of each kind well, badly or not at all,
// as it is drawn: who answers well may dial, and nobody else.
func TestPosture(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	host := open(t, n.AddIdentity("host").File)
	program, hash, signer := "/usr/bin/agent", strings.Repeat("ab", 64), strings.Repeat("cd", 20)
	checks := []struct {
		kind  string
		check M
		good  overlay.Posture
		bad   []overlay.Posture
	}{
		{"OS", M{"typeId": "OS", "operatingSystems": []M{{"type": "Windows", "versions": []string{">=10.0.0"}}}},
			overlay.Posture{OS: func() overlay.OS { return overlay.OS{Type: "windows", Version: "10.0.1"} }},
			[]overlay.Posture{
				{OS: func() overlay.OS { return overlay.OS{Type: "windows", Version: "9.0.0"} }},
				{OS: func() overlay.OS { return overlay.OS{Type: "linux", Version: "10.0.1"} }},
				{OS: func() overlay.OS { return overlay.OS{} }},
			}},
		{"MAC", M{"typeId": "MAC", "macAddresses": []string{"02:00:5e:10:00:01"}},
			overlay.Posture{MACs: func() []string { return []string{"02005e100002", "02-00-5E-10-00-01"} }},
			[]overlay.Posture{{MACs: func() []string { return nil }}, {MACs: func() []string { return []string{"02005e100002"} }}}},
		{"DOMAIN", M{"typeId": "DOMAIN", "domains": []string{"corp.example.com"}},
			overlay.Posture{Domain: func() string { return "CORP.example.com" }},
			[]overlay.Posture{{Domain: func() string { return "home" }}, {Domain: func() string { return "" }}}},
		{"PROCESS", M{"typeId": "PROCESS", "process": M{"osType": "Linux", "path": program, "hashes": []string{hash}, "signerFingerprint": signer}},
			overlay.Posture{Process: func(path string) overlay.Process {
				return overlay.Process{Running: path == program, Hash: hash, Signers: []string{"ef", signer}}
			}},
			[]overlay.Posture{
				{Process: func(string) overlay.Process { return overlay.Process{Hash: hash, Signers: []string{signer}} }},
				{Process: func(string) overlay.Process {
					return overlay.Process{Running: true, Hash: signer, Signers: []string{signer}}
				}},
				{Process: func(string) overlay.Process { return overlay.Process{Running: true, Hash: hash} }},
			}},
	}
	services := map[string]string{}
	for _, c := range checks {
		services[c.kind] = addChecked(n, host, c.check)
	}
	me := n.AddIdentity("me")
	for round := range 12 {
		var all overlay.Posture
		passes := map[string]bool{}
		for _, c := range checks {
			one := overlay.Posture{} // what there is by itself passes none of the checks
			switch choice := rand.N(len(c.bad) + 4); {
			case choice < 3 || round == 0:
				one, passes[c.kind] = c.good, true
			case choice > 3:
				one = c.bad[choice-4]
			}
			switch c.kind {
			case "OS":
				all.OS = one.OS
			case "MAC":
				all.MACs = one.MACs
			case "DOMAIN":
				all.Domain = one.Domain
			case "PROCESS":
				all.Process = one.Process
			}
		}
		network, err := overlay.Open(t.Context(), me.File, overlay.WithPosture(all))
		must(t, err)
		for kind, service := range services {
			if got := dials(t, network, service); got != passes[kind] {
				t.Errorf("the check of %s lets dial: %v, want %v", kind, got, passes[kind])
			}
		}
		must(t, network.Close())
	}
}

// TestPostureChanges has a program answer otherwise than before: it counts from
// the next dial on.
func TestPostureChanges(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	service := addChecked(n, open(t, n.AddIdentity("host").File), M{"typeId": "DOMAIN", "domains": []string{"corp"}})
	var domain atomic.Pointer[string]
	answer := func(s string) { domain.Store(&s) }
	answer("home")
	me := open(t, n.AddIdentity("me").File, overlay.WithPosture(overlay.Posture{Domain: func() string { return *domain.Load() }}))
	if dials(t, me, service) {
		t.Error("it dials from home")
	}
	// What no controller takes is no answer.
	answer(strings.Repeat("x", 1000))
	if dials(t, me, service) {
		t.Error("it dials from nowhere")
	}
	answer("corp")
	if !dials(t, me, service) {
		t.Error("it does not dial from the office")
	}
}

// addFactor gives an identity a second factor, and returns codes of it that work
// once each.
func addFactor(n *networktest.Network, i networktest.Identity) []string {
	n.T.Helper()
	file, err := remote.ReadIdentity(i.File)
	if err != nil {
		n.T.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(file.ID.Cert), []byte(file.ID.Key))
	if err != nil {
		n.T.Fatal(err)
	}
	const root = "/edge/client/v1/"
	nobody := n.Server.Nobody(n.T).Presenting(&pair)
	me := nobody.With("zt-session", nobody.Post(root+"authenticate?method=cert", M{}).Want(200).Data()["token"].(string))
	me.Post(root+"current-identity/mfa", M{}).Want(201)
	factor := me.Get(root + "current-identity/mfa").Want(200).Data()
	_, secret, _ := strings.Cut(factor["provisioningUrl"].(string), "secret=")
	secret, _, _ = strings.Cut(secret, "&")
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		n.T.Fatal(err)
	}
	me.Post(root+"current-identity/mfa/verify", M{"code": code}).Want(200)
	var codes []string
	for _, c := range factor["recoveryCodes"].([]any) {
		codes = append(codes, c.(string))
	}
	return codes
}

// TestMFA has a program ask for codes of a second factor when they are needed,
// and only then.
func TestMFA(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("router")
	service := addChecked(n, open(t, n.AddIdentity("host").File), M{"typeId": "MFA", "timeoutSeconds": -1})
	me := n.AddIdentity("me")
	var codes []string
	asked := 0
	ask := overlay.WithPosture(overlay.Posture{MFA: func(context.Context) (string, error) {
		asked++
		code := codes[0]
		codes = codes[1:]
		return code, nil
	}})
	early := open(t, me.File, ask) // before there is a factor
	mute := open(t, me.File)
	codes = addFactor(n, me)

	// A check of a service waits for one.
	if dials(t, mute, service) {
		t.Error("it dials without a code")
	}
	for range 3 {
		if !dials(t, early, service) {
			t.Error("it does not dial with a code")
		}
	}
	if asked != 1 {
		t.Errorf("%d codes were asked for, want 1", asked)
	}

	// So does the login, and what it gets counts for the check.
	if _, err := overlay.Open(t.Context(), me.File); !errors.Is(err, overlay.ErrFactor) {
		t.Errorf("it logs in without a code: %v", err)
	}
	late := open(t, me.File, ask)
	if !dials(t, late, service) || asked != 2 {
		t.Errorf("%d codes were asked for, want 2", asked)
	}

	codes = slices.Concat([]string{"000000"}, codes)
	if _, err := overlay.Open(t.Context(), me.File, ask); !errors.Is(err, overlay.ErrFactor) || !strings.Contains(err.Error(), "wait for the next") {
		t.Errorf("it logs in with a wrong code: %v", err)
	}
	nobody := errors.New("nobody is here")
	_, err := overlay.Open(t.Context(), me.File, overlay.WithPosture(overlay.Posture{MFA: func(context.Context) (string, error) { return "", nobody }}))
	if !errors.Is(err, overlay.ErrFactor) || !errors.Is(err, nobody) || !strings.Contains(fmt.Sprint(err), "nobody is here") {
		t.Errorf("nobody gives a code: %v", err)
	}
}
