package cluster_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// builtEnv names the program to the part of TestThreeMachines that has a network of
// its own, and exitAlike is how that ends if it cannot have the addresses.
const (
	builtEnv  = "NETKEEP_TEST_BUILT"
	exitAlike = 3
)

// TestThreeMachines pastes what docs/high-availability.md says of three machines, in
// its order: they become one network, a router finds them, one is switched off and
// comes back, two are lost and the third goes on, and a snapshot of one becomes a new
// network. The machines are addresses of a network that nobody else is in, or of
// the loopback where such a network cannot be made.
func TestThreeMachines(t *testing.T) {
	atOnce(t)
	if built := os.Getenv(builtEnv); built != "" {
		if err := addAddresses(net.IPv4(10, 0, 0, 1), net.IPv4(10, 0, 0, 2), net.IPv4(10, 0, 0, 3), net.IPv4(10, 0, 0, 4)); err != nil {
			fmt.Println("the addresses of the machines:", err)
			os.Exit(exitAlike)
		}
		newMachines(t, built, "10.0.0.").live(t)
		return
	}
	built := built(t)
	inside := exec.Command(os.Args[0], "-test.run=^TestThreeMachines$", "-test.v", "-test.timeout=8m")
	inside.Env = append(os.Environ(), builtEnv+"="+built)
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		Pdeathsig: syscall.SIGKILL,
	}
	out, err := inside.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case err == nil:
		t.Logf("10.0.0.1 to 10.0.0.4, in a network of their own:\n%s", out)
	case errors.As(err, &ended) && ended.ExitCode() != exitAlike:
		t.Fatalf("%v\n%s", err, out)
	default:
		t.Logf("127.0.1.1 to 127.0.1.4 stand for the machines, since a network of their own cannot be made here: %v %s", err, out)
		newMachines(t, built, "127.0.1.").live(t)
	}
}

// addAddresses gives addresses to the loopback of this process's network, and turns it
// on.
func addAddresses(all ...net.IP) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	// struct ifinfomsg: family, pad, type, index, flags, change.
	up := binary.NativeEndian.AppendUint32([]byte{unix.AF_UNSPEC, 0, 0, 0}, uint32(lo.Index))
	up = binary.NativeEndian.AppendUint32(up, unix.IFF_UP)
	if err := netlink(s, unix.RTM_NEWLINK, 0, binary.NativeEndian.AppendUint32(up, unix.IFF_UP)); err != nil {
		return err
	}
	for _, ip := range all {
		// struct ifaddrmsg: family, length of the prefix, flags, scope, index; then
		// the address, as an attribute.
		body := binary.NativeEndian.AppendUint32([]byte{unix.AF_INET, 32, 0, 0}, uint32(lo.Index))
		body = binary.NativeEndian.AppendUint16(body, 4+net.IPv4len)
		body = binary.NativeEndian.AppendUint16(body, unix.IFA_LOCAL)
		if err := netlink(s, unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, append(body, ip.To4()...)); err != nil {
			return fmt.Errorf("%v: %w", ip, err)
		}
	}
	return nil
}

// netlink has the kernel do something, and says how that went.
func netlink(socket int, what, flags uint16, body []byte) error {
	m := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	m = binary.NativeEndian.AppendUint16(m, what)
	m = binary.NativeEndian.AppendUint16(m, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	m = append(m, make([]byte, 8)...) // number and sender
	if err := unix.Sendto(socket, append(m, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(socket, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel gives no answer that is one")
	}
	if code := int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}

// machines follow the page.
type machines struct {
	page           string
	dir            string
	net            string // what their addresses begin with
	password       string
	token          string // of the last invitation
	snapshot       string // the last one's file
	said           string // by the last command
	controllers    map[int]*program
	path, home, at string // at is where commands are run
}

// program is one that a page leaves running.
type program struct {
	cmd         *exec.Cmd
	out, errors string // files
	ended       chan struct{}
}

// contents is what a file holds.
func contents(file string) string {
	all, _ := os.ReadFile(file)
	return string(all)
}

func newMachines(t *testing.T, built, net string) *machines {
	t.Helper()
	page, err := os.ReadFile("../../docs/high-availability.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m := &machines{page: string(page), dir: dir, net: net, controllers: map[int]*program{}, path: filepath.Dir(built), home: filepath.Join(dir, "home"), at: filepath.Join(dir, "at")}
	for _, dir := range []string{m.home, m.at} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// pasted is commands of the page, and what it says of where to paste them.
type pasted struct{ where, commands string }

// blocks are the commands under a heading.
func (m *machines) blocks(t *testing.T, heading string) (all []pasted) {
	t.Helper()
	_, part, found := strings.Cut(m.page, "\n## "+heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, b := range regexp.MustCompile("(?s)```sh\n# ([^\n]*)\n(.*?)```").FindAllStringSubmatch(part, -1) {
		all = append(all, pasted{b[1], b[2]})
	}
	if !found || len(all) == 0 {
		t.Fatalf("the page has nothing to paste under %q", heading)
	}
	return all
}

var (
	whichMachine = regexp.MustCompile(`^machine (\d)`)
	machinesOff  = regexp.MustCompile(`while machine (\d)(?: and machine (\d))? (?:is|are) off`)
	theirs       = regexp.MustCompile(`with the password (\S+)`)
)

// paste does what the page says in one block.
func (m *machines) paste(t *testing.T, b pasted) {
	t.Helper()
	n := 0
	if which := whichMachine.FindStringSubmatch(b.where); which != nil {
		n, _ = strconv.Atoi(which[1])
	}
	if off := machinesOff.FindStringSubmatch(b.where); off != nil {
		for _, number := range off[1:] {
			if number != "" {
				n, _ := strconv.Atoi(number)
				m.end(t, n, syscall.SIGKILL)
			}
		}
	}
	for line := range strings.Lines(b.commands) {
		line = strings.NewReplacer("/var/lib/", filepath.Join(m.dir, fmt.Sprint("machine", n))+"/", "10.0.0.", m.net, "TOKEN", m.token, "SNAPSHOT", m.snapshot).Replace(strings.TrimSpace(line))
		switch {
		case strings.HasPrefix(line, "netkeep run "):
			m.run(t, n, line)
		case strings.HasPrefix(line, "netkeep router run "):
			m.launch(t, line)
		default:
			m.do(t, line)
		}
	}
}

// run starts a controller and waits until it is ready.
func (m *machines) run(t *testing.T, n int, line string) {
	t.Helper()
	p := m.launch(t, line, fmt.Sprintf("NETKEEP_METRICS_LISTEN=%s%d:1281", m.net, n), "NETKEEP_STORE_GRACE="+grace.String(), "NETKEEP_STORE_REFUSE="+grace.String())
	m.controllers[n] = p
	m.eventually(t, line, func() bool {
		select {
		case <-p.ended:
			t.Fatalf("%s ended: %s", line, contents(p.errors))
		default:
		}
		return strings.Contains(contents(p.out), "netkeep is ready at")
	})
	if printed := theirs.FindStringSubmatch(contents(p.out)); printed != nil {
		m.password = printed[1]
	}
}

// launch starts a command that stays.
func (m *machines) launch(t *testing.T, line string, env ...string) *program {
	t.Helper()
	files, err := os.MkdirTemp(m.dir, "said")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{out: filepath.Join(files, "out"), errors: filepath.Join(files, "errors"), ended: make(chan struct{})}
	p.cmd = m.shell(fmt.Sprintf("exec %s > %s 2> %s", line, p.out, p.errors))
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if log := contents(p.errors); t.Failed() {
			t.Logf("%s logged:\n%s", line, log[max(0, len(log)-4000):])
		}
	})
	return p
}

func (m *machines) shell(line string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = m.at
	cmd.Env = []string{"HOME=" + m.home, "PATH=" + m.path + ":" + os.Getenv("PATH"), "NETKEEP_PASSWORD=" + m.password, "NETKEEP_METRICS_LISTEN=off"}
	return cmd
}

// end ends the controller of a machine, if it runs.
func (m *machines) end(t *testing.T, n int, how syscall.Signal) {
	t.Helper()
	p := m.controllers[n]
	if p == nil {
		return
	}
	delete(m.controllers, n)
	_ = p.cmd.Process.Signal(how)
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("machine %d does not stop", n)
	}
}

// do runs a command that has to work. What a machine cut short that went away is said
// again, and may have been done.
func (m *machines) do(t *testing.T, line string) {
	t.Helper()
	var errs string
	m.eventually(t, line, func() bool {
		out, said, err := m.try(line)
		if err != nil && said != errs {
			t.Logf("%s: %v: %s", line, err, said)
		}
		m.said, errs = out, said
		return err == nil || strings.Contains(line, " create ") && strings.Contains(errs, "unique")
	})
	first, _, _ := strings.Cut(m.said, "\n")
	switch {
	case strings.HasSuffix(line, "cluster invite"):
		m.token = first
	case strings.HasSuffix(line, "snapshot save"):
		files, err := filepath.Glob(filepath.Join(m.dir, "machine*", "netkeep", "snapshots", first))
		if err != nil || len(files) != 1 {
			t.Fatalf("the snapshot %s is in %v: %v", first, files, err)
		}
		m.snapshot = files[0]
		if !strings.Contains(errs, m.snapshot) || !strings.Contains(errs, "https://"+m.net) {
			t.Errorf("of the snapshot it is said: %s", errs)
		}
	}
}

func (m *machines) try(line string) (out, said string, err error) {
	cmd := m.shell(line)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

func (m *machines) eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	(*team)(nil).eventually(t, what, is)
}

// says waits until a command says so many times what is looked for.
func (m *machines) says(t *testing.T, line, what string, times int) {
	t.Helper()
	looked := regexp.MustCompile(what)
	m.eventually(t, fmt.Sprintf("%d times %s by %s", times, what, line), func() bool {
		out, _, err := m.try(line)
		return err == nil && len(looked.FindAllString(out, -1)) == times
	})
}

const (
	listMembers = "netkeep cluster members -o json"
	listRouters = "netkeep list edge-routers -o json"
	isVoter     = `"vote": ?true`
	isOnline    = `"isOnline": ?true`
)

// live goes through the page.
func (m *machines) live(t *testing.T) {
	for _, b := range m.blocks(t, "Three machines") {
		if machinesOff.MatchString(b.where) {
			// As the page says, each has a vote within seconds.
			m.says(t, listMembers, isVoter, 3)
			m.says(t, listRouters, isOnline, 1)
		}
		m.paste(t, b)
	}
	m.says(t, listMembers, isOnline, 3)
	m.says(t, listRouters, isOnline, 1)
	m.lost(t)
	m.restored(t)
}

// lost has two of three machines be lost, and goes on with the third.
func (m *machines) lost(t *testing.T) {
	blocks := m.blocks(t, "When most are lost")
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	m.paste(t, blocks[0])
	left := m.controllers[3]
	m.eventually(t, "the one that is left to send everybody away", func() bool { return strings.Contains(contents(left.errors), "takes no more connections") })
	for said, in := range map[string]string{contents(left.errors): "the log", m.asked(t, "netkeep status --data "+filepath.Join(m.dir, "machine3", "netkeep")): "the status"} {
		if !strings.Contains(said, "of the 3 controllers that keep it together, 2 must run") || !strings.Contains(said, "netkeep cluster recover") {
			t.Errorf("%s says nothing of what to do: %s", in, said)
		}
	}
	if _, said, err := m.try("netkeep status"); err == nil || !strings.Contains(said, "netkeep status --data") {
		t.Errorf("somebody who is sent away hears %v: %s", err, said)
	}
	m.end(t, 3, syscall.SIGTERM)
	m.paste(t, blocks[1])
	m.says(t, "netkeep list services -o name", "wiki", 1)
	m.do(t, "netkeep create service alone")
	m.says(t, listRouters, isOnline, 1)
}

// asked is what a command says on a line, however wide the screen is.
func (m *machines) asked(t *testing.T, line string) string {
	t.Helper()
	m.do(t, line)
	return strings.Join(strings.Fields(m.said), " ")
}

// restored makes a network of a snapshot that a controller took while another was
// off: what was created after it is gone, and others join.
func (m *machines) restored(t *testing.T) {
	m.end(t, 3, syscall.SIGTERM)
	for _, b := range m.blocks(t, "Snapshots") {
		m.paste(t, b)
	}
	m.says(t, "netkeep list services -o name", "wiki|alone", 1)
	m.do(t, "netkeep cluster invite")
	second := strings.ReplaceAll(m.blocks(t, "Three machines")[2].commands, "/var/lib/netkeep", "/var/lib/netkeep-new")
	m.paste(t, pasted{"machine 2", second})
	m.says(t, listMembers, isVoter, 2)
	m.says(t, "netkeep list controllers -o json", isOnline, 2)
}
