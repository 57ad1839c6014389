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
// user at the first and one at the second.
func (n *network) side(word string, ours bool) (*side, error) {
	s := &side{name: word}
	var routers []*process
	for _, name := range []string{"a", "b"} {
		r, err := n.router(word+name, word, ours)
		if err != nil {
			return nil, err
		}
		routers = append(routers, r)
	}
	if err := n.policies(word); err != nil {
		return nil, err
	}
	host, err := n.identity(word+"host", word+"a")
	if err != nil {
		return nil, err
	}
	near, err := n.identity(word+"near", word+"a")
	if err != nil {
		return nil, err
	}
	far, err := n.identity(word+"far", word+"b")
	if err != nil {
		return nil, err
	}
	s.one = &pair{user: near, host: host, service: word, routers: routers[:1]}
	s.two = &pair{user: far, host: host, service: word, routers: routers}
	if err := s.one.listen(); err != nil {
		return nil, err
	}
	return s, n.eventually("traffic flows", func() error {
		for _, p := range []*pair{s.one, s.two} {
			conn, err := p.get(1)
			if err != nil {
				return err
			}
			_ = conn.Close()
		}
		return nil
	})
}

func (s *side) stop() {
	_ = s.one.listener.Close()
	s.one.user.Close()
	s.two.user.Close()
	s.one.host.Close()
	for _, r := range s.two.routers {
		r.stop()
	}
}

// policies let everybody with a word host and dial its service, each at the
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

// identity makes a client of the public SDK, which uses one router.
func (n *network) identity(name, router string) (ziti.Context, error) {
	word := strings.TrimRight(router, "ab")
	if _, err := n.cli("invite", name, "--roles", router+","+word, "--save", name+".jwt"); err != nil {
		return nil, err
	}
	if _, err := n.cli("enroll", name+".jwt", "-o", name+".json"); err != nil {
		return nil, err
	}
	return ziti.NewContextFromFile(filepath.Join(n.dir, name+".json"))
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
