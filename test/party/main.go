// Command party is a client of the network that is made with ours, for tests
// beside clients of others. It hosts a service that sends back what it gets, or
// dials one.
//
//	party [-plain] host IDENTITY SERVICE…        one line a connection, until it is ended
//	party [-plain] dial IDENTITY SERVICE BYTES [CONNECTIONS]
//	party [-plain] hold IDENTITY SERVICE         a word every 100 ms, until it fails
//	party [-plain] lead IDENTITY SERVICE         leads connections to a port on to services
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"netkeep.internal/internal/client/sdk"
)

func main() {
	plain := flag.Bool("plain", false, "leave the flow of connections to routers")
	flag.Parse()
	if err := run(flag.Args(), *plain); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func run(args []string, plain bool) error {
	if len(args) < 3 {
		return errors.New("usage: party host|dial|hold|lead IDENTITY SERVICE …")
	}
	ctx := context.Background()
	c, err := sdk.Open(ctx, sdk.Options{
		Identity: args[1], Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Plain: plain, Now: time.Now,
	})
	if err != nil {
		return err
	}
	defer c.Close()
	switch service := args[2]; args[0] {
	case "host":
		return hostAll(ctx, c, args[2:])
	case "dial":
		return dialAll(ctx, c, service, args[3:])
	case "hold":
		return hold(ctx, c, service)
	case "lead":
		return lead(ctx, c)
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// hostAll hosts services until one of them cannot be any more.
func hostAll(ctx context.Context, c *sdk.Client, services []string) error {
	failed := make(chan error, len(services))
	for _, service := range services {
		go func() { failed <- host(ctx, c, service) }()
	}
	return <-failed
}

// host sends back what it gets.
func host(ctx context.Context, c *sdk.Client, service string) error {
	l, err := c.Listen(ctx, service, sdk.ListenOptions{})
	if err != nil {
		return err
	}
	fmt.Println("hosting", service)
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		info := conn.(*sdk.Conn).Info()
		fmt.Printf("accepted caller=%q data=%q\n", info.Caller, info.Data)
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
			_ = conn.(*sdk.Conn).CloseWrite()
		}()
	}
}

func dial(ctx context.Context, c *sdk.Client, service string) (*sdk.Conn, error) {
	return c.Dial(ctx, service, sdk.DialOptions{Data: []byte(`{"say":"hello"}`)})
}

// dialAll sends random bytes over some connections at once and compares what
// comes back.
func dialAll(ctx context.Context, c *sdk.Client, service string, args []string) error {
	numbers := [2]int{1 << 20, 1} // bytes, connections
	for i, arg := range args {
		var err error
		if numbers[i], err = strconv.Atoi(arg); err != nil {
			return err
		}
	}
	size, connections := numbers[0], numbers[1]
	errs := make([]error, connections)
	var done sync.WaitGroup
	began := time.Now()
	for i := range connections {
		done.Go(func() { errs[i] = echo(ctx, c, service, size, uint64(i)) })
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("ok connections=%d bytes=%d took=%v\n", connections, size, time.Since(began).Round(time.Millisecond))
	return nil
}

// echo sends size bytes, closes its half and expects them back, and then the
// end.
func echo(ctx context.Context, c *sdk.Client, service string, size int, seed uint64) error {
	conn, err := dial(ctx, c, service)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	data := make([]byte, size)
	source := rand.NewChaCha8(sha256.Sum256(strconv.AppendUint(nil, seed, 10)))
	_, _ = source.Read(data)
	sent := make(chan error, 1)
	go func() {
		_, err := conn.Write(data)
		sent <- errors.Join(err, conn.CloseWrite())
	}()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	got := sha256.New()
	if _, err := io.Copy(got, conn); err != nil {
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

// hold keeps a connection busy until it fails, and says when it did.
func hold(ctx context.Context, c *sdk.Client, service string) error {
	conn, err := dial(ctx, c, service)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer conn.Close()
	fmt.Println("holding")
	last := time.Now()
	for n := 0; ; n++ {
		word := fmt.Appendf(nil, "%08d", n)
		if _, err := conn.Write(word); err != nil {
			return fmt.Errorf("last word at %d: %w", last.UnixMilli(), err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
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
func lead(ctx context.Context, c *sdk.Client) error {
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
			far, err := dial(ctx, c, strings.TrimSpace(service))
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
