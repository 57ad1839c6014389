package network

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base32"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// authority is a CA of a test's.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	up   *authority
}

// issue signs a certificate with a key of its own; nobody signs one of a root but itself.
func (a *authority) issue(t *testing.T, name string, ca bool) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		BasicConstraintsValid: true, IsCA: ca, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if ca {
		cert.KeyUsage, cert.ExtKeyUsage = x509.KeyUsageCertSign|x509.KeyUsageCRLSign|x509.KeyUsageDigitalSignature, nil
	} else {
		cert.DNSNames, cert.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	parent, with := cert, key
	if a != nil {
		parent, with = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), with)
	if err != nil {
		t.Fatal(err)
	}
	made := &authority{key: key, up: a}
	if made.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return made
}

// chain is a certificate with those above it.
func (a *authority) chain() (text string) {
	for ; a != nil; a = a.up {
		text += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	}
	return text
}

func (a *authority) keyText(t *testing.T) string {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

const oldConfig = `v: 3
db: ctrl.db
identity: {cert: client.pem, server_cert: server.pem, key: client.key, server_key: server.key, ca: cas.pem}
ctrl:
  options: {advertiseAddress: "tls:%[2]s"}
  listener: "tls:%[2]s"
edge:
  api: {sessionTimeout: 30m, address: "%[1]s"}
  enrollment:
    signingCert: {cert: signing.pem, key: signing.key}
    edgeIdentity: {duration: 180m}
    edgeRouter: {duration: 180m}
web:
  - name: all
    bindPoints: [{interface: "%[1]s", address: "%[1]s"}]
    apis: [{binding: edge-management}, {binding: edge-client}, {binding: fabric}]
`

// newElsewhere starts a network of a controller of others, with two roots, as they were set
// up for years, and a port for clients and one for routers.
func newElsewhere(t *testing.T) (n *network, config string) {
	t.Helper()
	var none *authority
	n = &network{t: t, dir: t.TempDir(), address: free(t), metrics: free(t)}
	routers := free(t)
	first, second := none.issue(t, "control root", true), none.issue(t, "signing root", true)
	signing := second.issue(t, "signing grandparent", true).issue(t, "signing", true)
	server, client := first.issue(t, "server", false), first.issue(t, "old-controller", false)
	for name, text := range map[string]string{
		"client.pem": client.chain(), "client.key": client.keyText(t), "server.pem": server.chain(), "server.key": server.keyText(t),
		"signing.pem": signing.chain(), "signing.key": signing.keyText(t), "cas.pem": first.chain() + second.chain(),
	} {
		n.write(name, text)
	}
	n.write("ctrl.yml", fmt.Sprintf(oldConfig, n.address, routers))
	roots := x509.NewCertPool()
	roots.AddCert(first.cert)
	roots.AddCert(second.cert)
	n.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}, Timeout: soon}
	n.ziti("controller", "edge", "init", "ctrl.yml", "-u", "admin", "-p", password)
	n.startElsewhere()
	return n, strings.ReplaceAll(routerConfig, "tls:%[2]s", "tls:"+routers)
}

// startElsewhere starts the controller of others.
func (n *network) startElsewhere() {
	n.t.Helper()
	n.control = start(n.t, n.dir, nil, programs.ziti, "controller", "run", "ctrl.yml")
	n.eventually("the old controller answers", func() bool {
		n.token = ""
		data, err := n.try("POST", "authenticate?method=password", M{"username": "admin", "password": password})
		if err == nil {
			n.token = data["token"].(string)
		}
		return err == nil
	})
}

// enrolled is addIdentity by the command line of others alone.
func (n *network) enrolled(name string) string {
	n.t.Helper()
	n.ziti("edge", "create", "identity", name, "-a", name, "-o", name+".jwt")
	n.ziti("edge", "enroll", name+".jwt", "-o", name+".json")
	return n.closed(name + ".json")
}

// closed is where a file is that nobody else may read from now on.
func (n *network) closed(name string) string {
	n.t.Helper()
	file := filepath.Join(n.dir, name)
	if err := os.Chmod(file, 0o600); err != nil {
		n.t.Fatal(err)
	}
	return file
}

// enrollRouter is addRouter by the command line of others alone.
func (n *network) enrollRouter(name, config string) *router {
	n.t.Helper()
	r := &router{n: n, name: name, id: n.create("edge-routers", M{"name": name, "roleAttributes": []string{name}})}
	n.write(name+".jwt", n.call("GET", "edge-routers/"+r.id, nil)["enrollmentJwt"].(string))
	n.write(name+".yml", fmt.Sprintf(config, name, "", free(n.t), free(n.t), "default"))
	n.ziti("router", "enroll", name+".yml", "--jwt", name+".jwt")
	r.process = start(n.t, n.dir, []string{"HOME=" + n.dir}, programs.ziti, "router", "run", name+".yml")
	n.eventually("the router is online", func() bool { return n.call("GET", "edge-routers/"+r.id, nil)["isOnline"] == true })
	return r
}

// certified makes an identity that shows a certificate of a CA of somebody else.
func (n *network) certified(name string) string {
	n.t.Helper()
	var none *authority
	ca := none.issue(n.t, "somebody else", true)
	id := n.create("cas", M{
		"name": "somebody else", "certPem": ca.chain(), "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": false, "isOttCaEnrollmentEnabled": true, "identityRoles": []string{},
	})
	token := n.call("GET", "cas/"+id, nil)["verificationToken"].(string)
	req, err := http.NewRequest("POST", "https://"+n.address+"/edge/management/v1/cas/"+id+"/verify", strings.NewReader(ca.issue(n.t, token, false).chain()))
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/plain")
	req.Header.Set("zt-session", n.token)
	resp, err := n.http.Do(req)
	if err != nil || resp.StatusCode != http.StatusOK {
		n.t.Fatalf("the CA is verified with %v %v", resp, err)
	}
	resp.Body.Close()
	who := n.create("identities", M{"name": name, "type": "Device", "isAdmin": false, "roleAttributes": []string{name}, "enrollment": M{"ottca": id}})
	n.write(name+".jwt", n.call("GET", "identities/"+who, nil)["enrollment"].(M)["ottca"].(M)["jwt"].(string))
	leaf := ca.issue(n.t, name, false)
	n.write(name+".pem", leaf.chain())
	n.write(name+".key", leaf.keyText(n.t))
	n.ziti("edge", "enroll", name+".jwt", "--cert", name+".pem", "--key", name+".key", "-o", name+".json")
	return n.closed(name + ".json")
}

// oneTime is what an app shows for a secret now.
func oneTime(t *testing.T, secret string) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.TrimRight(secret, "="))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, time.Now().Unix()/30)
	sum := mac.Sum(nil)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1_000_000)
}

const clientAPI = "/edge/client/v1/"

// somebody is a person with a password, and a second factor once there is one.
type somebody struct {
	network
	secret string
	codes  []string
}

// secondFactor makes a person with one.
func (n *network) secondFactor(name string) *somebody {
	n.t.Helper()
	id := n.create("identities", M{"name": name, "type": "User", "isAdmin": false})
	n.create("authenticators", M{"method": "updb", "identityId": id, "username": name, "password": password})
	who := &somebody{network: *n}
	who.token = who.call("POST", clientAPI+"authenticate?method=password", M{"username": name, "password": password})["token"].(string)
	who.call("POST", clientAPI+"current-identity/mfa", nil)
	mfa := who.call("GET", clientAPI+"current-identity/mfa", nil)
	at, err := url.Parse(mfa["provisioningUrl"].(string))
	if err != nil {
		n.t.Fatal(err)
	}
	who.secret = at.Query().Get("secret")
	for _, code := range mfa["recoveryCodes"].([]any) {
		who.codes = append(who.codes, code.(string))
	}
	who.call("POST", clientAPI+"current-identity/mfa/verify", M{"code": oneTime(n.t, who.secret)})
	return who
}

// signsIn has them come in with a password and a code, and with nothing less.
func (s *somebody) signsIn(name, code string) {
	s.t.Helper()
	s.token = ""
	data := s.call("POST", clientAPI+"authenticate?method=password", M{"username": name, "password": password})
	s.token = data["token"].(string)
	if _, err := s.try("GET", clientAPI+"services", nil); err == nil {
		s.t.Error("a password alone is enough")
	}
	s.call("POST", clientAPI+"authenticate/mfa", M{"code": code})
	s.call("GET", clientAPI+"services", nil)
}

// stream is a page that goes on until it is told to end.
type stream struct {
	end  chan struct{}
	rest chan error
	n    chan int64
}

const blockSize = 16 << 10

// block is the one with a number: all of its words are that.
func block(n uint64) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint64(nil, n), blockSize/8)
}

// streaming serves one.
func streaming(t *testing.T) (net.Addr, *stream) {
	s := &stream{end: make(chan struct{}), rest: make(chan error, 1), n: make(chan int64, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for n := uint64(1); ; n++ {
			select {
			case <-s.end:
				_, _ = w.Write(block(0))
				return
			case <-r.Context().Done():
				return
			case <-tick.C:
			}
			if _, err := w.Write(block(n)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr(), s
}

// follow reads all of it, and says in the end what was wrong.
func (s *stream) follow(address string) error {
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address)
	if err != nil {
		return err
	}
	go func() {
		defer resp.Body.Close()
		got := make([]byte, blockSize)
		for n := uint64(1); ; n++ {
			_, err := io.ReadFull(resp.Body, got)
			switch {
			case err != nil:
			case bytes.Equal(got, block(n)):
				continue
			case bytes.Equal(got, block(0)):
			default:
				err = fmt.Errorf("block %d is not what was sent", n)
			}
			s.n <- int64(n)
			s.rest <- err
			return
		}
	}()
	return nil
}

// over reports whether it has ended.
func (s *stream) over() bool { return len(s.rest) > 0 }

// TestTakeover takes over a network that works, while a transfer runs, and gives it back.
func TestTakeover(t *testing.T) {
	t.Parallel()
	n, config := newElsewhere(t)
	n.ziti("edge", "login", "--yes", "https://"+n.address, "-u", "admin", "-p", password)
	n.enrollRouter("first", config)
	n.enrollRouter("second", config)
	host, dialer, tunneler, proxy, leaver := n.enrolled("host"), n.enrolled("dialer"), n.enrolled("tunneler"), n.enrolled("proxy"), n.enrolled("leaver")
	certified := n.certified("certified")
	carol := n.secondFactor("carol")
	spent := carol.codes[0]
	carol.signsIn("carol", spent)

	// Who dials is at one router and who hosts at the other.
	n.create("edge-router-policies", M{"name": "dialers", "semantic": "AnyOf", "identityRoles": []string{"#dialer", "#proxy", "#certified", "#leaver"}, "edgeRouterRoles": []string{"#first"}})
	n.create("edge-router-policies", M{"name": "hosts", "semantic": "AnyOf", "identityRoles": []string{"#host", "#tunneler"}, "edgeRouterRoles": []string{"#second"}})
	n.create("service-edge-router-policies", M{"name": "all", "semantic": "AnyOf", "serviceRoles": []string{"#all"}, "edgeRouterRoles": []string{"#all"}})
	n.create("service-policies", M{"name": "dial", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#dialer", "#proxy", "#certified"}, "serviceRoles": []string{"#all"}})
	echoes := n.create("services", M{"name": "echo", "encryptionRequired": true})
	n.create("service-policies", M{"name": "host", "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{"#host"}, "serviceRoles": []string{"@" + echoes}})
	long, transfer := streaming(t)
	n.hosted("long", "#tunneler", long)
	n.hosted("page", "#tunneler", page(t, "a page"))
	atTaken, taken := streaming(t)
	n.hosted("taken", "#tunneler", atTaken)
	leaves := n.create("service-policies", M{"name": "leaver dials", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#leaver"}, "serviceRoles": []string{"#all"}})

	start(t, n.dir, nil, programs.peer, "host", host, "echo").says(t, "hosting echo", 0)
	start(t, n.dir, nil, programs.ziti, "tunnel", "host", "--svcPollRate", "1", "-i", tunneler)
	atLong, atPage := free(t), free(t)
	start(t, n.dir, nil, programs.ziti, "tunnel", "proxy", "--svcPollRate", "1", "-i", proxy, "long:"+portOf(t, atLong), "page:"+portOf(t, atPage))
	atLeaver := free(t)
	start(t, n.dir, nil, programs.ziti, "tunnel", "proxy", "--svcPollRate", "1", "-i", leaver, "taken:"+portOf(t, atLeaver))
	works := func(what string) {
		t.Helper()
		began := time.Now()
		n.within(5*time.Minute, what+": clients of an SDK", func() bool {
			_, err := n.dial(dialer, "echo", 1<<20, 4)
			return err == nil
		})
		n.within(5*time.Minute, what+": a certificate of somebody else", func() bool {
			_, err := n.dial(certified, "echo", 1000, 1)
			return err == nil
		})
		n.within(5*time.Minute, what+": tunnelers", func() bool {
			text, err := read(atPage)
			return err == nil && text == "a page"
		})
		t.Logf("%s: all was there after %v", what, time.Since(began).Round(time.Millisecond))
	}
	works("at first")
	if err := transfer.follow(atLong); err != nil {
		t.Fatal(err)
	}
	n.eventually("the other transfer begins", func() bool { return taken.follow(atLeaver) == nil })

	// The plan is made while the old controller runs: clients ask again with pauses that grow for
	// as long as nobody answers.
	n.ziti("edge", "db", "snapshot")
	if plan := n.says("takeover", "--config", "ctrl.yml", "--db", n.snapshot(), "--data", "data", "--plan"); !strings.Contains(plan, "identities") || strings.Contains(plan, "Refused") {
		t.Errorf("what would be done: %s", plan)
	}
	n.ziti("edge", "logout")
	n.control.kill(syscall.SIGTERM)
	n.netkeep("takeover", "--config", "ctrl.yml", "--data", "data")
	if transfer.over() || taken.over() {
		t.Error("what was connected did not go on without a controller")
	}
	n.control = start(t, n.dir, nil, programs.netkeep, "run", "--config", filepath.Join("data", "netkeep.yaml"), "--metrics-listen", n.metrics, "--log-format", "text")
	n.control.says(t, "netkeep is ready", 0)
	n.login()
	for _, r := range n.list("edge-routers") {
		n.eventually("a router comes back", func() bool { return n.call("GET", "edge-routers/"+r["id"].(string), nil)["isOnline"] == true })
	}
	works("taken over")
	n.knowsTransfers("proxy long", "leaver taken")
	n.call("DELETE", "service-policies/"+leaves, nil)
	n.eventually("the transfer ends of somebody who may not use the service any more", taken.over)
	carol.signsIn("carol", oneTime(t, carol.secret))
	carol.signsIn("carol", carol.codes[1])

	n.create("services", M{"name": "made meanwhile", "encryptionRequired": true})
	n.netkeep("login", "https://"+n.address, "--data", "data", "--username", "admin", "--password-file", n.write("password", password))
	n.write("network.json", n.says("export", "--openziti"))
	n.control.kill(syscall.SIGTERM)
	n.startElsewhere()
	works("given back")
	n.ziti("ops", "import", "network.json", "--controller-url", "https://"+n.address, "--yes", "-u", "admin", "-p", password)
	if !slices.ContainsFunc(n.list("services"), func(s M) bool { return s["name"] == "made meanwhile" }) {
		t.Error("what was made meanwhile is not there")
	}
	carol.signsIn("carol", oneTime(t, carol.secret))
	close(transfer.end)
	blocks, err := <-transfer.n, <-transfer.rest
	if err != nil {
		t.Errorf("the transfer ended with %v", err)
	}
	t.Logf("%d blocks of the transfer came over: %v", blocks, err)
}

// knowsTransfers waits until the controller knows whose the transfers are that began before it:
// their routers tell it once a minute.
func (n *network) knowsTransfers(whose ...string) {
	n.t.Helper()
	n.within(5*time.Minute, "it is known whose the transfers are", func() bool {
		var known []string
		for _, c := range n.list("/fabric/v1/circuits?limit=500") {
			client, _ := c["client"].(M)
			service, _ := c["service"].(M)
			known = append(known, fmt.Sprint(client["name"], " ", service["name"]))
		}
		return !slices.ContainsFunc(whose, func(one string) bool { return !slices.Contains(known, one) })
	})
}

// snapshot is the copy of the old database that its controller has written.
func (n *network) snapshot() string {
	n.t.Helper()
	files, err := filepath.Glob(filepath.Join(n.dir, "ctrl.db-*"))
	if err != nil || len(files) != 1 {
		n.t.Fatalf("the snapshots are %v %v", files, err)
	}
	return files[0]
}

// says is what our command line prints.
func (n *network) says(args ...string) string {
	n.t.Helper()
	cmd := exec.Command(programs.netkeep, args...)
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), "HOME="+n.dir)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		n.t.Fatalf("netkeep %s: %v\n%s%s", strings.Join(args, " "), err, out, &errs)
	}
	return string(out)
}
