// Command peer is a client of the network that is made with the public SDK,
// for tests. It hosts a service that sends back what it gets, or dials one.
//
//	peer host IDENTITY SERVICE…        one line a connection, until it is ended
//	peer dial IDENTITY SERVICE BYTES [CONNECTIONS]
//	peer hold IDENTITY SERVICE         a word every 100 ms, until it fails
//	peer lead IDENTITY SERVICE         leads connections to a port on to services
//
// With -flow before that the SDK holds the flow of data, and not its router. The
// same source is built with one version of the SDK and another.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/openziti/sdk-golang/ziti"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

// flow says who holds the flow of data, as options of the SDK have it.
var flow *bool

func run(args []string) error {
	if len(args) > 0 && args[0] == "-flow" {
		flow, args = new(true), args[1:]
	}
	if len(args) < 3 {
		return errors.New("usage: peer [-flow] host|dial|hold|lead IDENTITY SERVICE …")
	}
	client, err := ziti.NewContextFromFile(args[1])
	if err != nil {
		return err
	}
	defer client.Close()
	switch service := args[2]; args[0] {
	case "host":
		return hostAll(client, args[2:])
	case "dial":
		return dialAll(client, service, args[3:])
	case "hold":
		return hold(client, service)
	case "lead":
		return lead(client, service)
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// hostAll hosts services until one of them cannot be any more.
func hostAll(client ziti.Context, services []string) error {
	failed := make(chan error, len(services))
	for _, service := range services {
		go func() { failed <- host(client, service) }()
	}
	return <-failed
}

// host sends back what it gets.
func host(client ziti.Context, service string) error {
	options := ziti.DefaultListenOptions()
	options.WaitForNEstablishedListeners, options.SdkFlowControl = 1, flow
	options.ConnectTimeout = 20 * time.Second
	l, err := client.ListenWithOptions(service, options)
	if err != nil {
		// The SDK misses what its router tells it at once, now and then, and waits in
		// vain for what it has.
		fmt.Println("trying again:", err)
		if l, err = client.ListenWithOptions(service, options); err != nil {
			return err
		}
	}
	fmt.Println("hosting", service)
	for {
		conn, err := l.AcceptEdge()
		if err != nil {
			return err
		}
		fmt.Printf("accepted caller=%q data=%q\n", conn.SourceIdentifier(), conn.GetAppData())
		go func() {
			defer conn.Close()
			n, err := io.Copy(conn, conn)
			fmt.Printf("ended after %d bytes: %v\n", n, err)
			_ = conn.CloseWrite()
		}()
	}
}

func dial(client ziti.Context, service string) (net.Conn, error) {
	// An object: tunnelers that host take nothing else.
	return client.DialWithOptions(service, &ziti.DialOptions{ConnectTimeout: 15 * time.Second, AppData: []byte(`{"say":"hello"}`), SdkFlowControl: flow})
}

// dialAll sends random bytes over some connections at once and compares what
// comes back.
func dialAll(client ziti.Context, service string, args []string) error {
	size, connections := 1<<20, 1
	var err error
	if len(args) > 0 {
		if size, err = strconv.Atoi(args[0]); err != nil {
			return err
		}
	}
	if len(args) > 1 {
		if connections, err = strconv.Atoi(args[1]); err != nil {
			return err
		}
	}
	// The SDK signs in and lists services once for each first dial at the same
	// time, and some of those then miss the service: one goes before them.
	if _, ok := client.GetService(service); !ok {
		return fmt.Errorf("no service %q is offered", service)
	}
	errs := make([]error, connections)
	var done sync.WaitGroup
	began := time.Now()
	for i := range connections {
		done.Go(func() { errs[i] = echo(client, service, size, uint64(i)) })
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("ok connections=%d bytes=%d took=%v\n", connections, size, time.Since(began).Round(time.Millisecond))
	return nil
}

// echo sends size bytes and expects them back.
func echo(client ziti.Context, service string, size int, seed uint64) error {
	conn, err := dial(client, service)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	data := make([]byte, size)
	source := rand.NewChaCha8(sha256.Sum256(strconv.AppendUint(nil, seed, 10)))
	_, _ = source.Read(data)
	sent := make(chan error, 1)
	go func() {
		// Each write is one message, and takes memory of every router on its way.
		var err error
		for part := range slices.Chunk(data, 1<<20) {
			if _, err = conn.Write(part); err != nil {
				break
			}
		}
		sent <- err
	}()
	got := sha256.New()
	var progress io.Writer = io.Discard
	if seed == 0 {
		progress = &eighths{of: int64(size)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.CopyN(io.MultiWriter(got, progress), conn, int64(size)); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if want := sha256.Sum256(data); !bytes.Equal(got.Sum(nil), want[:]) {
		return errors.New("what came back is not what was sent")
	}
	return nil
}

// eighths says how much has come back, in eighths.
type eighths struct{ of, n, said int64 }

func (e *eighths) Write(p []byte) (int, error) {
	e.n += int64(len(p))
	for ; e.said < 8 && e.n*8 >= e.of*(e.said+1); e.said++ {
		fmt.Printf("%d/8 is back\n", e.said+1)
	}
	return len(p), nil
}

// hold keeps a connection busy until it fails, and says when it did.
func hold(client ziti.Context, service string) error {
	conn, err := dial(client, service)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	fmt.Println("holding")
	word := make([]byte, 8)
	last := time.Now()
	for n := 0; ; n++ {
		copy(word, fmt.Sprintf("%08d", n))
		if _, err := conn.Write(word); err != nil {
			return fmt.Errorf("last word at %d: %w", last.UnixMilli(), err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		back := make([]byte, len(word))
		if _, err := io.ReadFull(conn, back); err != nil {
			return fmt.Errorf("last word at %d: %w", last.UnixMilli(), err)
		}
		if !bytes.Equal(back, word) {
			return errors.New("what came back is not what was sent")
		}
		last = time.Now()
		if n%10 == 0 {
			fmt.Println("word", n)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// lead leads whoever connects to a port of this machine on to a service: the first
// line names it, and is answered with a plus, or with a minus and why not.
func lead(client ziti.Context, service string) error {
	if _, ok := client.GetService(service); !ok { // before all others, as with dialAll
		return fmt.Errorf("no service %q is offered", service)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("leading from", l.Addr())
	for {
		near, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer near.Close()
			in := bufio.NewReader(near)
			service, err := in.ReadString('\n')
			if err != nil {
				return
			}
			far, err := dial(client, strings.TrimSpace(service))
			if err != nil {
				fmt.Fprintf(near, "- %.500q\n", err.Error())
				return
			}
			defer far.Close()
			fmt.Fprintln(near, "+")
			go func() {
				_, _ = io.Copy(far, in)
				_ = far.Close()
			}()
			_, _ = io.Copy(near, far)
		}()
	}
}
