// Package network runs a whole network on one machine, with the public router,
// command line and SDK as they are: enrolled, online, hosting, dialling, and
// then with one part after the other taken away.
package network

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The longest tests run beside each other, each with a network of its own: they wait more
// than they work. What is judged by the clock runs alone.

// programs are built once, before all tests.
var programs struct{ netkeep, paste, party, switchboard, ziti, peer, newer string }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "network")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	for _, p := range []struct {
		path        *string
		name, build string
		in          string
		more        []string
	}{
		{&programs.netkeep, "netkeep", "./cmd/netkeep", filepath.Join("..", ".."), nil},
		{&programs.paste, "paste", "./test/paste", filepath.Join("..", ".."), nil},
		{&programs.party, "party", "./test/party", filepath.Join("..", ".."), nil},
		{&programs.switchboard, "switchboard", "./test/switchboard", filepath.Join("..", ".."), nil},
		{&programs.ziti, "ziti", "github.com/openziti/ziti/ziti", ".", nil},
		{&programs.peer, "peer", "./peer", ".", nil},
		{&programs.newer, "newer peer", "./peer", ".", []string{"-modfile=sdk-1.5.0.mod"}},
	} {
		*p.path = filepath.Join(dir, p.name)
		fmt.Printf("building %s\n", p.name)
		// Without a version routers take each other for newer than they are.
		args := append([]string{"build", "-ldflags", "-X github.com/openziti/ziti/common/version.Version=v1.6.0", "-o", *p.path}, p.more...)
		cmd := exec.Command("go", append(args, p.build)...)
		cmd.Dir = p.in
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Printf("building %s: %v\n%s", p.name, err, out)
			return 1
		}
	}
	return m.Run()
}

const (
	password = "a password for tests"
	// soon is how long anything may take that should happen at once, on a
	// machine that has other things to do.
	soon = time.Minute
)

// network is a controller with all that uses it.
type network struct {
	t       *testing.T
	dir     string
	address string
	metrics string // address of monitoring
	flags   []string
	http    *http.Client
	token   string
	control *process
	started func(pid int) // is told of each process of the controller, if set
}

// process is a running program with what it says.
type process struct {
	cmd  *exec.Cmd
	in   io.Writer // what it reads
	done chan struct{}

	mu      sync.Mutex
	lines   []string
	changed chan struct{}
}

// start runs a program until the test ends.
func start(t *testing.T, dir string, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program, args...), done: make(chan struct{}), changed: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.cmd.Stdout
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(out)
	t.Cleanup(func() {
		p.kill(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s %s said:\n%s", filepath.Base(program), strings.Join(args, " "), p.tail(40))
		}
	})
	return p
}

func (p *process) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
	}
	_ = p.cmd.Wait()
	close(p.done)
}

func (p *process) tail(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-n):], "\n")
}

// next is the number of the line that it will say next.
func (p *process) next() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

// kill ends the program and waits for that.
func (p *process) kill(with syscall.Signal) {
	_ = p.cmd.Process.Signal(with)
	<-p.done
}

// says waits for a line with a text, from the line with that number on, and
// returns it with the number of the next.
func (p *process) says(t *testing.T, text string, from int) (line string, next int) {
	t.Helper()
	timeout := time.NewTimer(soon)
	defer timeout.Stop()
	for {
		p.mu.Lock()
		for i := from; i < len(p.lines); i++ {
			if strings.Contains(p.lines[i], text) {
				line = p.lines[i]
				p.mu.Unlock()
				return line, i + 1
			}
		}
		from = max(from, len(p.lines))
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-p.done:
			t.Fatalf("it ended before it said %q:\n%s", text, p.tail(20))
		case <-timeout.C:
			t.Fatalf("it did not say %q in %v:\n%s", text, soon, p.tail(20))
		}
	}
}

// free returns an address that nothing listens on. It is none of those that
// connections to others are given, or one of them could take it meanwhile, and
// nobody is told the same one before the test ends: it stays taken elsewhere.
func free(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		claim, err := net.ListenPacket("udp", "127.0.0.2:"+port)
		if err != nil {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", port)
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			t.Cleanup(func() { _ = claim.Close() })
			return address
		}
		_ = claim.Close()
	}
	t.Fatal("no port is free")
	return ""
}

// newNetwork starts a controller.
func newNetwork(t *testing.T, flags ...string) *network {
	t.Helper()
	n := &network{t: t, dir: t.TempDir(), address: free(t), metrics: free(t), flags: flags}
	n.begin()
	return n
}

// begin starts the controller for the first time. It may be given flags that hold
// for this time only.
func (n *network) begin(once ...string) {
	n.t.Helper()
	n.startController(once...)
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(n.dir, "data", "pki", "root.crt"))
	if err != nil || !roots.AppendCertsFromPEM(ca) {
		n.t.Fatalf("the root certificate: %v", err)
	}
	n.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: soon}
	if n.token == "" {
		n.login()
	}
}

func (n *network) startController(once ...string) {
	n.t.Helper()
	n.control = start(n.t, n.dir, []string{"NETKEEP_ADMIN_PASSWORD=" + password}, programs.netkeep,
		slices.Concat([]string{"run", "--data", "data", "--listen", n.address, "--metrics-listen", n.metrics, "--log-format", "text"}, n.flags, once)...)
	if n.started != nil {
		n.started(n.control.cmd.Process.Pid)
	}
	n.control.says(n.t, "netkeep is ready", 0)
}

// eventually waits until something is so.
func (n *network) eventually(what string, so func() bool) {
	n.t.Helper()
	n.within(soon, what, so)
}

// within is eventually for what takes its time.
func (n *network) within(most time.Duration, what string, so func() bool) {
	n.t.Helper()
	deadline := time.Now().Add(most)
	for !so() {
		if time.Now().After(deadline) {
			n.t.Fatalf("%s: not within %v", what, most)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (n *network) login() {
	n.t.Helper()
	n.token = ""
	data := n.call("POST", "authenticate?method=password", M{"username": "admin", "password": password})
	n.token = data["token"].(string)
}

// M is a JSON object.
type M = map[string]any

// call uses the Management API, or another at a path that begins with a slash.
func (n *network) call(method, path string, body any) M {
	n.t.Helper()
	data, err := n.try(method, path, body)
	if err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
	return data
}

func (n *network) try(method, path string, body any) (M, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(path, "/") {
		path = "/edge/management/v1/" + path
	}
	req, err := http.NewRequest(method, "https://"+n.address+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("zt-session", n.token)
	resp, err := n.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Data  json.RawMessage
		Error json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if resp.StatusCode > 299 {
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, answer.Error)
	}
	data := M{}
	if json.Unmarshal(answer.Data, &data) != nil {
		var list []any
		if err := json.Unmarshal(answer.Data, &list); err != nil {
			return nil, err
		}
		data["list"] = list
	}
	return data, nil
}

// list returns the records at a path.
func (n *network) list(path string) []M {
	n.t.Helper()
	var all []M
	for _, one := range n.call("GET", path, nil)["list"].([]any) {
		all = append(all, one.(M))
	}
	return all
}

func (n *network) create(path string, body M) string {
	n.t.Helper()
	return n.call("POST", path, body)["id"].(string)
}

// ziti runs the public command line.
func (n *network) ziti(args ...string) string {
	n.t.Helper()
	cmd := exec.Command(programs.ziti, args...)
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), "HOME="+n.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Fatalf("ziti %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// write puts a file into the network's directory.
func (n *network) write(name, text string) string {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// router is a router under our controller: a public one, or one of ours.
type router struct {
	*process
	n        *network
	id, name string
	ours     bool
}

// addRouter creates, enrolls and starts a router. It links with those that it
// has a word in common with, or with all that have none either.
func (n *network) addRouter(name string, linked ...string) *router {
	n.t.Helper()
	return n.addRouterAs(M{"name": name}, routerConfig, linked...)
}

func (n *network) addRouterAs(record M, config string, linked ...string) *router {
	n.t.Helper()
	if len(linked) == 0 {
		linked = []string{"default"}
	}
	name := record["name"].(string)
	r := &router{n: n, name: name}
	r.id = n.create("edge-routers", record)
	jwt := n.call("GET", "edge-routers/"+r.id, nil)["enrollmentJwt"].(string)
	n.write(name+".jwt", jwt)
	n.write(name+".yml", fmt.Sprintf(config, name, n.address, free(n.t), free(n.t), strings.Join(linked, ", ")))
	n.netkeep("router", "enroll", name+".jwt", "--config", name+".yml")
	r.start()
	return r
}

// addOwnRouter is addRouter for a router of ours.
func (n *network) addOwnRouter(name string, linked ...string) *router {
	n.t.Helper()
	r := &router{n: n, name: name, ours: true, id: n.create("edge-routers", M{"name": name})}
	n.write(name+".jwt", n.call("GET", "edge-routers/"+r.id, nil)["enrollmentJwt"].(string))
	args := []string{"router", "enroll", name + ".jwt", "--data", name, "--listen", free(n.t), "--metrics-listen", "off"}
	if len(linked) > 0 {
		args = append(args, "--link-group", strings.Join(linked, ","))
	}
	n.netkeep(args...)
	r.start()
	return r
}

func (r *router) start(flags ...string) {
	r.n.t.Helper()
	program, args := programs.ziti, append([]string{"router", "run", r.name + ".yml"}, flags...)
	if r.ours {
		program, args = programs.netkeep, []string{"router", "run", "--data", r.name}
	}
	r.process = start(r.n.t, r.n.dir, []string{"HOME=" + r.n.dir}, program, args...)
	r.n.eventually("the router is online", func() bool {
		data, err := r.n.try("GET", "edge-routers/"+r.id, nil)
		return err == nil && data["isOnline"] == true && data["syncStatus"] == "SYNC_DONE"
	})
}

const routerConfig = `v: 3
identity: {cert: %[1]s.cert, server_cert: %[1]s.server.cert, key: %[1]s.key, ca: %[1]s.cas}
ctrl: {endpoint: "tls:%[2]s"}
link:
  dialers: [{binding: transport, groups: [%[5]s]}]
  listeners: [{binding: transport, bind: "tls:%[3]s", advertise: "tls:%[3]s", groups: [%[5]s]}]
metrics: {reportInterval: 1s}
listeners:
  - {binding: edge, address: "tls:%[4]s", options: {advertise: "%[4]s"}}
edge:
  csr:
    country: US
    province: Test
    locality: Test
    organization: Test
    organizationalUnit: Test
    sans: {dns: [localhost], ip: ["127.0.0.1"]}
`

// addIdentity creates and enrolls an identity, and returns the path of its
// file.
func (n *network) addIdentity(name string) string {
	n.t.Helper()
	n.ziti("edge", "create", "identity", name, "-a", name, "-o", name+".jwt")
	n.netkeep("enroll", name+".jwt", "-o", name+".json")
	return filepath.Join(n.dir, name+".json")
}

// netkeep runs our own command line.
func (n *network) netkeep(args ...string) {
	n.t.Helper()
	cmd := exec.Command(programs.netkeep, args...)
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), "HOME="+n.dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("netkeep %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// everyone lets every identity and every service use every router.
func (n *network) everyone() {
	n.create("edge-router-policies", M{"name": "all", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "edgeRouterRoles": []string{"#all"}})
	n.create("service-edge-router-policies", M{"name": "all", "semantic": "AnyOf", "serviceRoles": []string{"#all"}, "edgeRouterRoles": []string{"#all"}})
}

// allow lets an identity dial or host everything.
func (n *network) allow(typ, identity string) string {
	return n.create("service-policies", M{
		"name": typ + "-" + identity, "type": typ, "semantic": "AnyOf", "identityRoles": []string{"#" + identity}, "serviceRoles": []string{"#all"},
	})
}

// dial sends bytes over some connections and expects them back.
func (n *network) dial(identity, service string, size, connections int) (string, error) {
	out, err := exec.Command(programs.peer, "dial", identity, service, fmt.Sprint(size), fmt.Sprint(connections)).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if err != nil {
		return last, fmt.Errorf("%w\n%s", err, out)
	}
	return last, nil
}
