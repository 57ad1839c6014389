package cluster_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/test/journal"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
	"netkeep.internal/test/wires"
)

// grace is for how long a controller without the store answers.
const grace = 10 * time.Second

// team is three controllers in processes of their own that keep one store, and
// wires between them.
type team struct {
	binary string
	wires  *wires.Wires
	nodes  []*node
	token  string // of an admin
}

// node is one of them.
type node struct {
	*team
	n                   int
	data, listen, peers string
	at                  string // where the others reach it
	http                *http.Client
	cmd                 *exec.Cmd
	ended               chan struct{}
	log                 *journal.Journal
	flags               []string
}

// newTeam starts three of the program, with flags for each.
func newTeam(t *testing.T, flags ...func(n int) []string) *team {
	t.Helper()
	dir := t.TempDir()
	team := &team{binary: built(t), wires: wires.New()}
	t.Cleanup(team.wires.End)
	for n := range 3 {
		node := &node{
			team: team, n: n, data: filepath.Join(dir, fmt.Sprint("node", n)), log: &journal.Journal{},
			listen: "127.0.0.1:" + machine.Port(t), peers: "127.0.0.1:" + machine.Port(t),
		}
		for _, of := range flags {
			node.flags = append(node.flags, of(n)...)
		}
		var err error
		if node.at, err = team.wires.Lay(n, node.peers); err != nil {
			t.Fatal(err)
		}
		var more []string
		if n > 0 {
			var invited tokenAnswer
			team.eventually(t, "an invitation", func() bool {
				return team.nodes[0].ask(http.MethodPost, "cluster/invitations", nil, &invited) == http.StatusOK
			})
			more = []string{"--join", invited.Data.Token}
		}
		team.nodes = append(team.nodes, node)
		t.Cleanup(func() {
			node.kill()
			if t.Failed() {
				text := node.log.String()
				t.Logf("controller %d logged:\n%s", node.n, text[max(0, len(text)-6000):])
			}
		})
		node.start(t, more...)
	}
	team.eventually(t, "three votes", func() bool {
		votes := 0
		for _, m := range team.members(team.nodes[0]) {
			if m.Vote {
				votes++
			}
		}
		return votes == 3
	})
	for _, n := range team.nodes {
		n.serves(t)
	}
	return team
}

// eventually waits until something is so. It does not ask so often that a
// controller minds.
func (*team) eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// tokenAnswer is an answer that has a token.
type tokenAnswer struct {
	Data struct {
		Token string `json:"token"`
	} `json:"data"`
}

// start starts the process, for the first time or again, and waits until it
// answers an admin.
func (n *node) start(t *testing.T, more ...string) {
	t.Helper()
	more = append(more, n.flags...)
	n.cmd = exec.Command(n.binary, append([]string{"run", "--data", n.data, "--listen", n.listen, "--cluster-listen", n.peers, "--cluster-advertise", n.at, "--store-grace", grace.String(), "--store-refuse", grace.String(), "--snapshots-every", "24h"}, more...)...)
	n.cmd.Env = []string{"HOME=" + os.TempDir(), "NETKEEP_METRICS_LISTEN=off", "NETKEEP_ADMIN_PASSWORD=" + servertest.Password}
	n.cmd.Stdout, n.cmd.Stderr = io.Discard, n.log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.wires.Is(n.cmd.Process.Pid, n.n)
	n.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = cmd.Wait()
	}(n.cmd, n.ended)
	n.eventually(t, fmt.Sprintf("an answer of controller %d", n.n), func() bool {
		select {
		case <-n.ended:
			t.Fatalf("controller %d ended:\n%s", n.n, n.log)
		default:
		}
		return n.connect() == nil
	})
}

// connect gets ready to ask, and logs in if nobody has.
func (n *node) connect() error {
	if n.http == nil {
		root, err := os.ReadFile(filepath.Join(n.data, "pki", "root.crt"))
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(root) {
			return errors.New("there is no root CA")
		}
		n.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 8}, Timeout: 20 * time.Second}
	}
	if n.token != "" {
		if status := n.ask(http.MethodGet, "current-identity", nil, nil); status != http.StatusOK {
			return fmt.Errorf("status %d", status)
		}
		return nil
	}
	var session tokenAnswer
	if status := n.ask(http.MethodPost, "authenticate?method=password", M{"username": "admin", "password": servertest.Password}, &session); status != http.StatusOK {
		return fmt.Errorf("status %d", status)
	}
	n.token = session.Data.Token
	return nil
}

// serves waits until a controller answers the admin.
func (n *node) serves(t *testing.T) {
	t.Helper()
	n.eventually(t, fmt.Sprintf("controller %d to serve", n.n), func() bool { return n.connect() == nil })
}

// ask sends a request and returns the status of the answer, 0 if there is none.
func (n *node) ask(method, path string, body, into any) (status int) {
	status, _ = n.hear(method, path, body, into)
	return status
}

// hear is ask with the answer, or why there is none.
func (n *node) hear(method, path string, body, into any) (status int, text string) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			panic(err)
		}
	}
	req, err := http.NewRequestWithContext(context.Background(), method, "https://"+n.listen+"/edge/management/v1/"+path, bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if n.token != "" {
		req.Header.Set("zt-session", n.token)
	}
	resp, err := n.http.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || into != nil && json.Unmarshal(answer, into) != nil {
		return 0, "the answer breaks off"
	}
	return resp.StatusCode, string(answer)
}

// signal sends a signal to the process.
func (n *node) signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s) }

// kill ends the process at once.
func (n *node) kill() {
	if n.cmd == nil || n.cmd.Process == nil {
		return
	}
	n.signal(syscall.SIGKILL)
	<-n.ended
}

// membership is what a controller says of those that keep the store.
type membership struct {
	Address string `json:"address"`
	Vote    bool   `json:"vote"`
	Leader  bool   `json:"leader"`
}

func (*team) members(by *node) []membership {
	var list struct {
		Data []membership `json:"data"`
	}
	if by.ask(http.MethodGet, "cluster/members", nil, &list) != http.StatusOK {
		return nil
	}
	return list.Data
}

// leader waits until there is one and returns it.
func (c *team) leader(t *testing.T) (leader *node) {
	t.Helper()
	c.eventually(t, "a leader", func() bool {
		for _, by := range c.nodes {
			for _, m := range c.members(by) {
				for _, n := range c.nodes {
					if m.Leader && m.Address == n.at {
						leader = n
						return true
					}
				}
			}
		}
		return false
	})
	return leader
}

// says waits until a controller has logged a text.
func (n *node) says(t *testing.T, text string) {
	t.Helper()
	n.eventually(t, fmt.Sprintf("%q in the log of controller %d", text, n.n), func() bool { return n.log.Has(text) })
}

// leases counts how often a controller was not heard of for so long that it gave its
// id up.
func (n *node) leases() int {
	return n.log.Count("has not heard of this controller for too long")
}

// scheduled counts the snapshots that a controller has taken by itself.
func (n *node) scheduled() int {
	files, _ := filepath.Glob(filepath.Join(n.data, "snapshots", "*"))
	return len(files)
}
