//go:build linux

package netns

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// soon bounds what a program on a machine waits for.
const soon = 30 * time.Second

// play does what one program on one of the machines does.
func play(role string, args []string) int {
	do := map[string]func([]string) error{
		"machine": beMachine, "serve": serve, "get": get, "line": line, "datagram": datagram, "resolve": resolve, "carry": carry, "many": many, "seen": seen,
	}[role]
	if err := do(args); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// beMachine holds namespaces until nobody needs them. It has a directory of settings
// of its own, with what is given as resolv.conf.
func beMachine(args []string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	cache, _ := os.ReadFile("/etc/ld.so.cache") // without it programs look for theirs
	for _, dir := range []string{"/etc", "/run"} {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"resolv.conf": args[0], "hosts": "127.0.0.1 localhost\n", "nsswitch.conf": "hosts: files dns\n", "ld.so.cache": string(cache),
		"passwd": "root:x:0:0::/root:/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join("/etc", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// serve is all servers at once: pages, lines that tell the port, what says everything
// back.
func serve([]string) error {
	for _, port := range []string{"9001", "9002", "9003"} {
		if err := accept(port, func(conn net.Conn) {
			_, _ = fmt.Fprintf(conn, "at %s\n", conn.LocalAddr())
		}); err != nil {
			return err
		}
	}
	if err := accept("9004", func(conn net.Conn) {
		_, _ = fmt.Fprintf(conn, "from %s\n", conn.RemoteAddr())
	}); err != nil {
		return err
	}
	if err := accept("9100", func(conn net.Conn) { _, _ = io.Copy(conn, conn) }); err != nil {
		return err
	}
	datagrams, err := net.ListenPacket("udp", ":7777")
	if err != nil {
		return err
	}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := datagrams.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = datagrams.WriteTo(append([]byte("back "), buf[:n]...), from)
		}
	}()
	pages, err := net.Listen("tcp", ":8080")
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return http.Serve(pages, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "page of %s\n", r.Host)
	}))
}

func accept(port string, do func(net.Conn)) error {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				do(conn)
			}()
		}
	}()
	return nil
}

// get prints a page.
func get(args []string) error {
	client := &http.Client{Timeout: soon, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(args[0])
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(os.Stdout, resp.Body)
	return err
}

// line prints what a server says.
func line(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], soon)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(soon))
	text, err := io.ReadAll(conn)
	fmt.Printf("%s", text)
	return err
}

// seen prints whether a server sees a connection come from where it does.
func seen(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], soon)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(soon))
	text, err := io.ReadAll(conn)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("from %s\n", conn.LocalAddr()); string(text) != want {
		return fmt.Errorf("%q is seen as %q", want, text)
	}
	fmt.Println("as it is")
	return nil
}

// many has so many be connected at once, however often each has to try, and to hear
// what they say.
func many(args []string) error {
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			for echoed(args[0]) != nil {
			}
		})
	}
	fmt.Println("begun")
	all.Wait()
	fmt.Println("all")
	return nil
}

func echoed(at string) error {
	conn, err := net.DialTimeout("tcp", at, soon)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(soon))
	if _, err := io.WriteString(conn, "?"); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return err
}

// datagram sends some, each of another length, and prints what comes back to the last.
func datagram(args []string) error {
	conn, err := net.Dial("udp", args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(soon))
	buf := make([]byte, 64<<10)
	for _, size := range []int{1, 512, 1200} {
		text := strings.Repeat("x", size)
		if _, err := io.WriteString(conn, text); err != nil {
			return err
		}
		n, err := conn.Read(buf)
		if err != nil {
			return err
		}
		if string(buf[:n]) != "back "+text {
			return fmt.Errorf("of %d bytes %d come back", size, n)
		}
	}
	fmt.Println("back")
	return nil
}

// resolve prints the addresses of a name, asked for over udp or tcp.
func resolve(args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, args[1], address)
	}}
	all, err := r.LookupHost(ctx, args[0])
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(all, " "))
	return nil
}

// carry says something over a connection whenever it is told to, and whether it came
// back, until the connection has ended.
func carry(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], soon)
	if err != nil {
		return err
	}
	defer conn.Close()
	ended := make(chan error, 1)
	came := make(chan byte)
	go func() {
		r := bufio.NewReader(conn)
		for {
			b, err := r.ReadByte()
			if err != nil {
				ended <- err
				return
			}
			came <- b
		}
	}()
	told := make(chan struct{})
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			if _, err := in.ReadByte(); err != nil {
				return
			}
			told <- struct{}{}
		}
	}()
	fmt.Println("connected")
	for {
		select {
		case <-told:
			if _, err := io.WriteString(conn, "?"); err != nil {
				fmt.Println("ended")
				return nil
			}
		case <-came:
			fmt.Println("carried")
		case <-ended:
			fmt.Println("ended")
			return nil
		}
	}
}

// carries has a program that carries say something.
func (p *process) carries() {
	p.t.Helper()
	if _, err := p.in.Write([]byte("\n")); err != nil {
		p.t.Fatal(err)
	}
	p.says("carried")
}
