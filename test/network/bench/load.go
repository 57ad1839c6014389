package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// pair is somebody who dials, and the routers between it and who hosts.
type pair struct {
	dial    func() (net.Conn, error)
	routers []*process
}

// serve hosts: whoever dials says how many bytes it wants and gets them.
func serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go give(conn)
	}
}

func give(conn net.Conn) {
	defer conn.Close()
	piece := make([]byte, 32<<10)
	for {
		var want [8]byte
		if _, err := io.ReadFull(conn, want[:]); err != nil {
			return
		}
		for left := int64(binary.BigEndian.Uint64(want[:])); left > 0; {
			n, err := conn.Write(piece[:min(left, int64(len(piece)))])
			if err != nil {
				return
			}
			left -= int64(n)
		}
	}
}

// get dials and takes so many bytes.
func (p *pair) get(bytes int64) (net.Conn, error) {
	conn, err := p.dial()
	if err != nil {
		return nil, err
	}
	if _, err = conn.Write(binary.BigEndian.AppendUint64(nil, uint64(bytes))); err == nil {
		_, err = io.CopyN(io.Discard, conn, bytes)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// transfer takes bytes over some connections at once.
func (p *pair) transfer(conns int, bytes int64) (time.Duration, error) {
	began := time.Now()
	err := each(conns, conns, func() error {
		conn, err := p.get(bytes / int64(conns))
		if err != nil {
			return err
		}
		return conn.Close()
	})
	return time.Since(began), err
}

// each does something a number of times, some at once.
func each(times, atOnce int, do func() error) error {
	work := make(chan struct{}, times)
	for range times {
		work <- struct{}{}
	}
	close(work)
	errs := make([]error, atOnce)
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			for range work {
				if errs[i] = do(); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// dials dials so often, some at once, and returns how long each took until the
// first byte.
func (p *pair) dials(times, atOnce int) ([]time.Duration, error) {
	var mu sync.Mutex
	var took []time.Duration
	err := each(times, atOnce, func() error {
		began := time.Now()
		conn, err := p.get(1)
		if err != nil {
			return err
		}
		mu.Lock()
		took = append(took, time.Since(began))
		mu.Unlock()
		return conn.Close()
	})
	return took, err
}

// hold makes connections that do nothing, until released.
func (p *pair) hold(count int) (release func(), err error) {
	var mu sync.Mutex
	var held []net.Conn
	err = each(count, 32, func() error {
		conn, err := p.get(1)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		held = append(held, conn)
		return nil
	})
	return func() {
		for _, conn := range held {
			_ = conn.Close()
		}
	}, err
}

// cpu is what the routers have used.
func (p *pair) cpu() time.Duration {
	var all time.Duration
	for _, r := range p.routers {
		all += r.cpu()
	}
	return all
}

// memory is what the routers have, in bytes.
func (p *pair) memory() int64 {
	var all int64
	for _, r := range p.routers {
		all += r.memory()
	}
	return all
}

// tick is what /proc counts in.
const tick = 10 * time.Millisecond

func (p *process) cpu() time.Duration {
	fields := p.stat("stat")
	// What comes before may hold blanks: the program's name in brackets.
	_, rest, _ := strings.Cut(fields, ") ")
	parts := strings.Fields(rest)
	if len(parts) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(parts[11])
	system, _ := strconv.Atoi(parts[12])
	return time.Duration(user+system) * tick
}

func (p *process) memory() int64 {
	for line := range strings.Lines(p.stat("status")) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

func (p *process) stat(name string) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, name))
	return string(data)
}
