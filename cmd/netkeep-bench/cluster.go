package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// group says what is measured of several controllers, and how much of it.
type group struct {
	netkeep    string
	measures   string
	identities int
	routers    int
	turns      int
	writes     int
}

func (g *group) flags(f *flag.FlagSet) {
	f.StringVar(&g.netkeep, "netkeep", "bin/netkeep", "the program to start controllers of")
	f.StringVar(&g.measures, "measure", "writes,routers,join", "what to measure")
	f.IntVar(&g.identities, "identities", 100_000, "how many identities there are when a controller joins")
	f.IntVar(&g.routers, "routers", 1000, "how many routers are connected to every controller")
	f.IntVar(&g.turns, "turns", 15, "how many turns of writes there are, at each controller one after the other")
	f.IntVar(&g.writes, "writes", 400, "how many writes a turn has")
}

// measures are those that there are, each with controllers of its own.
var measures = map[string]func(context.Context, *group, *cluster, io.Writer, io.Writer) error{
	"writes": measureWrites, "routers": measureMembersRouters, "join": measureJoin,
}

func (g *group) check() error {
	for _, n := range []int{g.identities, g.routers, g.turns, g.writes} {
		if n < 1 || n > maxRecords {
			return fmt.Errorf("sizes must be between 1 and %d, not %d", maxRecords, n)
		}
	}
	for _, name := range strings.Split(g.measures, ",") {
		if measures[name] == nil {
			return fmt.Errorf("--measure: there is no %q; there are writes, routers and join", name)
		}
	}
	return nil
}

// clusterCommand measures what it costs that controllers are several. It starts them
// itself, on this machine, and throws away what they kept.
func clusterCommand(ctx context.Context, args []string, out, progress io.Writer) error {
	var g group
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	f.SetOutput(progress)
	g.flags(f)
	if err := parse(f, args); err != nil {
		return err
	}
	if err := g.check(); err != nil {
		return err
	}
	for _, name := range strings.Split(g.measures, ",") {
		err := func() (err error) {
			c, err := newCluster(g.netkeep)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, c.close(err != nil)) }()
			return measures[name](ctx, &g, c, out, progress)
		}()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// cluster is controllers that were started for a measurement.
type cluster struct {
	netkeep, dir, password string
	all                    []*controller
}

// controller is one of them.
type controller struct {
	target
	cmd    *exec.Cmd
	ended  chan struct{}
	client *client
	use    *process
}

func newCluster(netkeep string) (*cluster, error) {
	dir, err := os.MkdirTemp("", "netkeep-bench")
	return &cluster{netkeep: netkeep, dir: dir, password: rand.Text()}, err
}

// close ends all controllers. What they logged stays if something went wrong.
func (c *cluster) close(keep bool) error {
	for _, one := range c.all {
		_ = one.cmd.Process.Kill()
		<-one.ended
	}
	if keep {
		return fmt.Errorf("what the controllers logged is in %s", c.dir)
	}
	return os.RemoveAll(c.dir)
}

// join starts as many controllers of one network as are wanted, and waits until all
// of them decide.
func (c *cluster) join(ctx context.Context, count int) error {
	for range count {
		if _, err := c.grow(ctx); err != nil {
			return err
		}
	}
	return c.votes(ctx, count)
}

// grow starts one more: the first of a network, or one that joins it.
func (c *cluster) grow(ctx context.Context) (*controller, error) {
	more := []string{"--cluster-listen", freeAddress()}
	if len(c.all) > 0 {
		invited, err := fetch[struct {
			Token string `json:"token"`
		}](c.all[0].client, request{method: http.MethodPost, path: managementRoot + "/cluster/invitations"})
		if err != nil {
			return nil, err
		}
		more = append(more, "--join", invited.Data.Token)
	}
	return c.start(ctx, more...)
}

// freeAddress is one of this machine on which nobody listens.
func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0" // which says why
	}
	defer l.Close()
	return l.Addr().String()
}

// startTime is how long a controller may take until it answers.
const startTime = 5 * time.Minute

// start starts a controller and waits until somebody can log in.
func (c *cluster) start(ctx context.Context, more ...string) (*controller, error) {
	data, at := filepath.Join(c.dir, fmt.Sprint("controller", len(c.all))), freeAddress()
	log, err := os.Create(data + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	one := &controller{ended: make(chan struct{}), target: target{
		url: "https://" + at, ca: filepath.Join(data, "pki", "root.crt"), username: "admin", password: c.password,
		header: "net-session", timeout: time.Minute, clients: 16,
	}}
	one.cmd = exec.Command(c.netkeep, append([]string{"run", "--data", data, "--listen", at, "--limits-logins", "0", "--limits-enrollments", "0", "--log-level", "warn"}, more...)...)
	one.cmd.Env = []string{"HOME=" + c.dir, "NETKEEP_METRICS_LISTEN=off", "NETKEEP_ADMIN_PASSWORD=" + c.password}
	one.cmd.Stderr = log
	if err := one.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(one.ended)
		_ = one.cmd.Wait() // how it ends is in its log
	}()
	c.all = append(c.all, one)
	one.pid = one.cmd.Process.Pid
	if one.use, err = openProcess(one.pid); err != nil {
		return nil, err
	}
	return one, one.ready(ctx)
}

// ready waits until the controller lets an admin in.
func (one *controller) ready(ctx context.Context) error {
	for end := time.Now().Add(startTime); ; {
		roots, err := one.roots()
		if err == nil {
			one.client = newClient(&one.target, roots)
			if err = one.client.login(managementRoot, one.username, one.password); err == nil {
				return nil
			}
			one.client.close()
		}
		if time.Now().After(end) {
			return err
		}
		select {
		case <-one.ended:
			return fmt.Errorf("the controller at %s has ended", one.url)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// member is what a controller says of one that keeps the store.
type member struct {
	Vote   bool `json:"vote"`
	Leader bool `json:"leader"`
	Self   bool `json:"self"`
}

func (one *controller) members() ([]member, error) {
	r, err := fetch[[]member](one.client, request{method: http.MethodGet, path: managementRoot + "/cluster/members"})
	return r.Data, err
}

// votes waits until so many controllers decide.
func (c *cluster) votes(ctx context.Context, want int) error {
	for end := time.Now().Add(startTime); ; {
		all, err := c.all[0].members()
		votes := 0
		for _, m := range all {
			if m.Vote {
				votes++
			}
		}
		switch {
		case err == nil && votes == want:
			return nil
		case time.Now().After(end):
			return errors.Join(err, fmt.Errorf("%d controllers have a vote, and not %d", votes, want))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leads finds the one that leads, and one that does not.
func (c *cluster) leads() (leader, follower *controller, err error) {
	for _, one := range c.all {
		all, err := one.members()
		if err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(all, func(m member) bool { return m.Leader && m.Self }) {
			leader = one
		} else {
			follower = one
		}
	}
	if leader == nil || follower == nil {
		return nil, nil, errors.New("nobody leads")
	}
	return leader, follower, nil
}

// loadOf is how busy the machine is, as it says itself.
func loadOf() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	return string(first)
}
