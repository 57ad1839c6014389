package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/openziti/sdk-golang/ziti"
)

// process is a program that runs.
type process struct {
	cmd *exec.Cmd
	log *os.File
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	_ = p.cmd.Wait()
	_ = p.log.Close()
}

// network is a controller and what belongs to it.
type network struct {
	dir, netkeep, ziti string
	address            string
	control            *process
}

const password = "a password for measuring"

// start runs a controller.
func start(dir, netkeep, zitiFile string) (*network, error) {
	n := &network{dir: dir, netkeep: netkeep, ziti: zitiFile}
	var err error
	if n.address, err = free(); err != nil {
		return nil, err
	}
	metrics, err := free()
	if err != nil {
		return nil, err
	}
	n.control, err = n.run("controller", []string{"NETKEEP_ADMIN_PASSWORD=" + password}, netkeep, "run", "--data", "data", "--listen", n.address, "--metrics-listen", metrics)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte(password+"\n"), 0o600); err != nil {
		return nil, err
	}
	err = n.eventually("the controller is ready", func() error {
		_, err := n.cli("login", "https://"+n.address, "--username", "admin", "--password-file", "password", "--ca", "data/pki/root.crt")
		return err
	})
	return n, err
}

func (n *network) stop() { n.control.stop() }

// free is an address that nobody listens at.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// run starts a program whose output goes to a file.
func (n *network) run(name string, env []string, program string, args ...string) (*process, error) {
	log, err := os.Create(filepath.Join(n.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, args...), log: log}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = n.dir, append(os.Environ(), append(env, "HOME="+n.dir)...), log, log
	return p, p.cmd.Start()
}

// cli runs our command line.
func (n *network) cli(args ...string) (string, error) { return n.cliWith("", args...) }

func (n *network) cliWith(input string, args ...string) (string, error) {
	cmd := exec.Command(n.netkeep, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = n.dir, append(os.Environ(), "HOME="+n.dir), strings.NewReader(input)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("netkeep %s: %w: %s", strings.Join(args, " "), err, problem.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// create makes a record.
func (n *network) create(kind string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = n.cliWith(string(text), "api", "POST", "/"+kind, "-f", "-")
	return err
}

// eventually waits until something works.
func (n *network) eventually(what string, try func() error) error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within a minute: %w", what, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// side makes a network of two routers that are linked: a host at the first, a
// user at the first and one at the second, with the public SDK and with our
// tunneler.
func (n *network) side(word string, ours bool) (s *side, err error) {
	s = &side{}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	for _, name := range []string{"a", "b"} {
		r, err := n.router(word+name, word, ours)
		if err != nil {
			return s, err
		}
		s.routers = append(s.routers, r)
		s.stops = append(s.stops, r.stop)
	}
	if err := n.policies(word); err != nil {
		return s, err
	}
	sdk, err := n.sdk(s, word)
	if err != nil {
		return s, err
	}
	tunnels, err := n.tunnels(s, word)
	if err != nil {
		return s, err
	}
	s.clients = []clients{sdk, tunnels}
	return s, n.eventually("traffic flows", func() error {
		for _, p := range []*pair{sdk.one, sdk.two, tunnels.one, tunnels.two} {
			conn, err := p.get(1)
			if err != nil {
				return err
			}
			_ = conn.Close()
		}
		return nil
	})
}

// stop ends what was started, the last first.
func (s *side) stop() {
	for i := len(s.stops) - 1; i >= 0; i-- {
		s.stops[i]()
	}
}

// pairs are two, of whom the second dials at the other router.
func (s *side) pairs(name string, near, far func() (net.Conn, error)) clients {
	return clients{name, &pair{near, s.routers[:1]}, &pair{far, s.routers}}
}

// sdk is the public SDK on both ends.
func (n *network) sdk(s *side, word string) (c clients, err error) {
	var contexts []ziti.Context
	for _, who := range []struct{ name, router string }{{"host", "a"}, {"near", "a"}, {"far", "b"}} {
		file, err := n.identity(word+who.name, word+who.router, word)
		if err != nil {
			return c, err
		}
		context, err := ziti.NewContextFromFile(file)
		if err != nil {
			return c, err
		}
		contexts = append(contexts, context)
		s.stops = append(s.stops, context.Close)
	}
	options := ziti.DefaultListenOptions()
	options.WaitForNEstablishedListeners = 1
	l, err := contexts[0].ListenWithOptions(word, options)
	if err != nil {
		return c, err
	}
	s.stops = append(s.stops, func() { _ = l.Close() })
	go serve(l)
	by := func(user ziti.Context) func() (net.Conn, error) {
		return func() (net.Conn, error) {
			return user.DialWithOptions(word, &ziti.DialOptions{ConnectTimeout: time.Minute})
		}
	}
	return s.pairs("SDK", by(contexts[1]), by(contexts[2])), nil
}

// tunnels are our tunneler on both ends, with TCP connections before and behind.
func (n *network) tunnels(s *side, word string) (c clients, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return c, err
	}
	s.stops = append(s.stops, func() { _ = l.Close() })
	go serve(l)
	service, port := word+"-tunnel", l.Addr().(*net.TCPAddr).Port
	if _, err := n.cli("create", "config", service, "--config-type", "host.v1", "--data", fmt.Sprintf("{protocol: tcp, address: 127.0.0.1, port: %d}", port)); err != nil {
		return c, err
	}
	if _, err := n.cli("create", "service", service, "--roles", word, "--encryption-required=false", "--configs", service); err != nil {
		return c, err
	}
	var dials []func() (net.Conn, error)
	for _, who := range []struct{ name, router string }{{"host", "a"}, {"near", "a"}, {"far", "b"}} {
		name := word + "tunnel" + who.name
		file, err := n.identity(name, word+who.router, word)
		if err != nil {
			return c, err
		}
		args := []string{"tunnel", "--identity", file, "host"}
		if who.name != "host" {
			at, err := free()
			if err != nil {
				return c, err
			}
			_, port, _ := net.SplitHostPort(at)
			args = []string{"tunnel", "--identity", file, "proxy", service + ":" + port}
			dials = append(dials, func() (net.Conn, error) { return net.Dial("tcp", at) })
		}
		p, err := n.run(name, nil, n.netkeep, args...)
		if err != nil {
			return c, err
		}
		s.stops = append(s.stops, p.stop)
	}
	return s.pairs("tunneler", dials[0], dials[1]), nil
}

// policies let everybody with a word host and dial its services, each at the
// router that it has in its words.
func (n *network) policies(word string) error {
	for _, at := range []string{word + "a", word + "b"} {
		if err := n.create("edge-router-policies", map[string]any{"name": at, "semantic": "AnyOf", "identityRoles": []string{"#" + at}, "edgeRouterRoles": []string{"#" + at}}); err != nil {
			return err
		}
	}
	if err := n.create("services", map[string]any{"name": word, "encryptionRequired": false, "roleAttributes": []string{word}}); err != nil {
		return err
	}
	if err := n.create("service-edge-router-policies", map[string]any{"name": word, "semantic": "AnyOf", "serviceRoles": []string{"#" + word}, "edgeRouterRoles": []string{"#" + word}}); err != nil {
		return err
	}
	for _, typ := range []string{"Dial", "Bind"} {
		if err := n.create("service-policies", map[string]any{"name": word + typ, "type": typ, "semantic": "AnyOf", "identityRoles": []string{"#" + word}, "serviceRoles": []string{"#" + word}}); err != nil {
			return err
		}
	}
	return nil
}

// identity makes one that uses one router, and returns its file.
func (n *network) identity(name, router, word string) (file string, err error) {
	if _, err := n.cli("invite", name, "--roles", router+","+word, "--save", name+".jwt"); err != nil {
		return "", err
	}
	_, err = n.cli("enroll", name+".jwt", "-o", name+".json")
	return filepath.Join(n.dir, name+".json"), err
}

// router enrolls a router of either side, runs it, and waits until it is online.
func (n *network) router(name, word string, ours bool) (*process, error) {
	if _, err := n.cli("create", "edge-router", name, "--roles", word+","+name); err != nil {
		return nil, err
	}
	jwt, err := n.cli("token", "edge-router", name)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(n.dir, name+".jwt"), []byte(jwt), 0o600); err != nil {
		return nil, err
	}
	edge, err := free()
	if err != nil {
		return nil, err
	}
	link, err := free()
	if err != nil {
		return nil, err
	}
	start := n.theirs
	if ours {
		start = n.ours
	}
	p, err := start(name, word, edge, link)
	if err != nil {
		return nil, err
	}
	return p, n.eventually(name+" is online", func() error {
		out, err := n.cli("get", "edge-router", name, "-o", "json")
		if err == nil && !strings.Contains(out, `"isOnline": true`) {
			err = fmt.Errorf("it is not")
		}
		return err
	})
}

func (n *network) ours(name, _, edge, link string) (*process, error) {
	if _, err := n.cli("router", "enroll", name+".jwt", "--data", name, "--listen", edge, "--link-listen", link); err != nil {
		return nil, err
	}
	return n.run(name, nil, n.netkeep, "router", "run", "--data", name)
}

const config = `v: 3
identity: {cert: %[1]s.cert, server_cert: %[1]s.server.cert, key: %[1]s.key, ca: %[1]s.cas}
ctrl: {endpoint: "tls:%[2]s"}
link:
  dialers: [{binding: transport}]
  listeners: [{binding: transport, bind: "tls:%[3]s", advertise: "tls:%[3]s"}]
listeners:
  - {binding: edge, address: "tls:%[4]s", options: {advertise: "%[4]s"}}
edge:
  csr: {country: US, province: Test, locality: Test, organization: Test, organizationalUnit: Test, sans: {dns: [localhost], ip: ["127.0.0.1"]}}
`

func (n *network) theirs(name, _, edge, link string) (*process, error) {
	if err := os.WriteFile(filepath.Join(n.dir, name+".yml"), fmt.Appendf(nil, config, name, n.address, link, edge), 0o600); err != nil {
		return nil, err
	}
	if _, err := n.cli("router", "enroll", name+".jwt", "--config", name+".yml"); err != nil {
		return nil, err
	}
	return n.run(name, nil, n.ziti, "router", "run", name+".yml")
}
