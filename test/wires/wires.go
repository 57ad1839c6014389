// Package wires lies between processes of a cluster, for tests that cut some off
// from others. It finds out who connects as Linux tells it, and imports nothing of
// ours.
package wires

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Wires lie between the members of a cluster: each is reached by the others over
// one. Two that are cut off from each other hear nothing of each other, in either
// direction, and nobody is told.
type Wires struct {
	mu      sync.Mutex
	cut     map[int]bool  // members
	changed chan struct{} // closed at the next change
	pids    map[int]int   // of which member a process is
	begin   []net.Listener
	conns   map[net.Conn]bool
	ended   bool
	done    sync.WaitGroup
}

// New returns wires to nobody.
func New() *Wires {
	return &Wires{cut: map[int]bool{}, changed: make(chan struct{}), pids: map[int]int{}, conns: map[net.Conn]bool{}}
}

// Lay lays a wire to a member at an address, and returns where it begins.
func (w *Wires) Lay(to int, address string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	w.mu.Lock()
	w.begin = append(w.begin, l)
	w.mu.Unlock()
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go w.connect(near, to, address)
		}
	}()
	return l.Addr().String(), nil
}

// Is says which member a process is.
func (w *Wires) Is(pid, member int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pids[pid] = member
}

// Isolate cuts a member off from all others, or no more.
func (w *Wires) Isolate(member int, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[member] = cut
	close(w.changed)
	w.changed = make(chan struct{})
}

// whole waits until two are not cut off from each other; it is false in the end.
func (w *Wires) whole(between [2]int) bool {
	for {
		w.mu.Lock()
		cut, changed, ended := w.cut[between[0]] || w.cut[between[1]], w.changed, w.ended
		w.mu.Unlock()
		if ended || !cut {
			return !ended
		}
		<-changed
	}
}

// keep remembers connections to be closed at the end.
func (w *Wires) keep(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.conns[c] = true
		if w.ended {
			_ = c.Close()
		}
	}
}

func (w *Wires) drop(c net.Conn) {
	_ = c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

func (w *Wires) connect(near net.Conn, to int, address string) {
	w.keep(near)
	from, ok := w.whose(near)
	if !ok || !w.whole([2]int{from, to}) {
		w.drop(near)
		return
	}
	far, err := net.Dial("tcp", address)
	if err != nil {
		w.drop(near)
		return
	}
	w.keep(far)
	w.done.Go(func() { w.pass(near, far, [2]int{from, to}) })
	w.done.Go(func() { w.pass(far, near, [2]int{from, to}) })
}

func (w *Wires) pass(from, to net.Conn, between [2]int) {
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

// End cuts all of them for good.
func (w *Wires) End() {
	w.mu.Lock()
	w.ended = true
	for _, l := range w.begin {
		_ = l.Close()
	}
	close(w.changed)
	w.changed = make(chan struct{})
	for c := range w.conns {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.done.Wait()
}

// whose finds out which member has the other end of a connection.
func (w *Wires) whose(c net.Conn) (member int, ok bool) {
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
