package cluster_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// wires lie between the members of a cluster: each is reached by the others over
// one. Two that are cut off from each other hear nothing of each other, in either
// direction, and nobody is told.
type wires struct {
	mu      sync.Mutex
	cut     map[[2]int]bool
	changed chan struct{} // closed at the next change
	pids    map[int]int   // of which member a process is
	conns   map[net.Conn]bool
	ended   bool
	done    sync.WaitGroup
}

func newWires(t *testing.T) *wires {
	w := &wires{cut: map[[2]int]bool{}, changed: make(chan struct{}), pids: map[int]int{}, conns: map[net.Conn]bool{}}
	t.Cleanup(w.end)
	return w
}

// lay lays a wire to a member at an address, and returns where it begins.
func (w *wires) lay(t *testing.T, to int, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go w.connect(near, to, address)
		}
	}()
	return l.Addr().String()
}

// is says which member a process is.
func (w *wires) is(pid, member int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pids[pid] = member
}

// isolate cuts a member off from all others, or no more.
func (w *wires) isolate(member, of int, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for other := range of {
		if other != member {
			w.cut[pair(member, other)] = cut
		}
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func pair(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

// whole waits until two are not cut off from each other; it is false at the end of
// the test.
func (w *wires) whole(between [2]int) bool {
	for {
		w.mu.Lock()
		cut, changed, ended := w.cut[between], w.changed, w.ended
		w.mu.Unlock()
		if ended || !cut {
			return !ended
		}
		<-changed
	}
}

// keep remembers connections to be closed at the end.
func (w *wires) keep(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.conns[c] = true
		if w.ended {
			_ = c.Close()
		}
	}
}

func (w *wires) drop(c net.Conn) {
	_ = c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

func (w *wires) connect(near net.Conn, to int, address string) {
	w.keep(near)
	from, ok := w.whose(near)
	if !ok || !w.whole(pair(from, to)) {
		w.drop(near)
		return
	}
	far, err := net.Dial("tcp", address)
	if err != nil {
		w.drop(near)
		return
	}
	w.keep(far)
	w.done.Go(func() { w.pass(near, far, pair(from, to)) })
	w.done.Go(func() { w.pass(far, near, pair(from, to)) })
}

func (w *wires) pass(from, to net.Conn, between [2]int) {
	defer w.drop(to)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !w.whole(between) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *wires) end() {
	w.mu.Lock()
	w.ended = true
	close(w.changed)
	w.changed = make(chan struct{})
	for c := range w.conns {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.done.Wait()
}

// whose finds out which member has the other end of a connection.
func (w *wires) whose(c net.Conn) (member int, ok bool) {
	far, near := c.RemoteAddr().(*net.TCPAddr).Port, c.LocalAddr().(*net.TCPAddr).Port
	inode, ok := socketOf(far, near)
	if !ok {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for pid, member := range w.pids {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, file := range files {
			if to, err := os.Readlink(file); err == nil && to == "socket:["+inode+"]" {
				return member, true
			}
		}
	}
	return 0, false
}

// socketOf is the inode of the socket between two ports of this machine.
func socketOf(local, remote int) (inode string, ok bool) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", local)) && strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", remote)) {
			return fields[9], true
		}
	}
	return "", false
}
