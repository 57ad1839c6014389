package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/tool/screen"
)

// addTraffic gives the demo of a network that one looks at a second one that
// carries something: it needs nothing that runs already.
func addTraffic(root *cobra.Command, env Env) {
	demo, _, err := root.Find([]string{"demo"})
	if err != nil {
		return // there is no demo
	}
	look := demo.RunE
	traffic := demo.Flags().Bool("traffic", false, "Start a network of its own on this machine, with a web page behind it, until you stop it.")
	port := demo.Flags().Uint16("port", 8080, "With --traffic: port of this machine that leads to the web page; another if it is taken.")
	demo.RunE = func(cmd *cobra.Command, args []string) error {
		if !*traffic {
			return look(cmd, args)
		}
		return showTraffic(cmd.Context(), env, *port)
	}
}

// stage is where the demo takes place: commands of this program, as somebody
// would give them, in a directory that goes with it.
type stage struct {
	env   Env
	dir   string
	out   io.Writer
	width int            // of the terminal, 0 if it goes elsewhere
	runs  sync.WaitGroup // commands that go on
	end   context.CancelCauseFunc
}

// showTraffic makes a network step by step, and keeps it until it is told to
// stop.
func showTraffic(ctx context.Context, env Env, port uint16) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "netkeep-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, end := context.WithCancelCause(ctx)
	s := &stage{env: env, dir: dir, out: env.Stdout, width: env.Screen().Width, end: end}
	s.env.Environ = append([]string{"XDG_CONFIG_HOME=" + dir, "NETKEEP_PASSWORD=" + rand.Text()}, env.Environ...)
	defer s.runs.Wait()
	defer end(nil)
	if err := s.play(ctx, port); err != nil {
		if cause := context.Cause(ctx); ctx.Err() != nil && !errors.Is(cause, context.Canceled) {
			return cause
		}
		return err
	}
	<-ctx.Done()
	fmt.Fprintln(s.out, "\nThat was it; everything is taken away again.")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// play is the demo itself.
func (s *stage) play(ctx context.Context, port uint16) error {
	web, err := s.serveWeb(ctx)
	if err != nil {
		return err
	}
	places, err := free(2)
	if err != nil {
		return err
	}
	address, err := preferred(port)
	if err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(s.dir, name) }
	_, webPort, _ := net.SplitHostPort(web)
	_, localPort, _ := net.SplitHostPort(address)
	s.say("A web server runs on this machine at %s. Say it is one that nobody outside may reach.", web)
	s.env.Environ = append(s.env.Environ, "NETKEEP_ADMIN_PASSWORD="+s.env.Getenv("NETKEEP_PASSWORD"))
	steps := []struct {
		why  string
		wait string // what the command says when it is there; it goes on then
		args []string
	}{
		{"First a controller, which knows who may do what, and a router, which carries what they do.", "netkeep is ready",
			[]string{"run", "--data", at("data"), "--listen", places[0], "--router", places[1], "--metrics-listen", "off", "--log-level", "warn"}},
		{"The admin logs in.", "", []string{"login", "--data", at("data"), "--username", "admin"}},
		{"The web server becomes a service with a name. Whoever hosts it finds it by this config.", "",
			[]string{"create", "config", "where hello is", "--config-type", "host.v1", "--data", `{"protocol":"tcp","address":"127.0.0.1","port":` + webPort + `}`}},
		{"", "", []string{"create", "service", "hello", "--roles", "web", "--configs", "where hello is"}},
		{"Two machines join the network, each with a key of its own: a server and a laptop.", "",
			[]string{"invite", "server", "--roles", "servers", "--save", at("server.jwt")}},
		{"", "", []string{"enroll", at("server.jwt"), "-o", at("server.json")}},
		{"", "", []string{"invite", "laptop", "--roles", "staff", "--save", at("laptop.jwt")}},
		{"", "", []string{"enroll", at("laptop.jwt"), "-o", at("laptop.json")}},
		{"Nobody may do anything yet. Servers may host what is on the web, and staff may use it.", "",
			[]string{"create", "service-policy", "servers host", "--type", "Bind", "--identity-roles", "#servers", "--service-roles", "#web"}},
		{"", "", []string{"create", "service-policy", "staff dials", "--type", "Dial", "--identity-roles", "#staff", "--service-roles", "#web"}},
		{"On the server, this hosts what it may host.", "hosted", []string{"tunnel", "host", "--identity", at("server.json")}},
		{"On the laptop, a port leads to the service.", "leads", []string{"tunnel", "proxy", "--identity", at("laptop.json"), "hello:" + localPort}},
	}
	for _, step := range steps {
		if step.why != "" {
			s.say("%s", step.why)
		}
		do := s.do
		if step.wait != "" {
			do = func(ctx context.Context, args ...string) error { return s.keep(ctx, step.wait, args...) }
		}
		if err := do(ctx, step.args...); err != nil {
			return err
		}
	}
	return s.look(ctx, "http://"+address+"/")
}

// look fetches the page, and shows which way it came.
func (s *stage) look(ctx context.Context, url string) error {
	s.say("Now the laptop fetches %s", url)
	got, err := fetch(ctx, url)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "    %s\n", got)
	s.say("It came from the server through the router, encrypted from end to end. Why that may be, and which way it takes:")
	if err := s.do(ctx, "explain", "laptop", "hello"); err != nil {
		return err
	}
	if err := s.do(ctx, "trace-path", "laptop", "hello"); err != nil {
		return err
	}
	s.say("Open %s in a browser. Ctrl-C ends it all.", url)
	return nil
}

// say explains what comes.
func (s *stage) say(format string, args ...any) {
	fmt.Fprintf(s.out, "\n%s\n", screen.Flow(fmt.Sprintf(format, args...), 0, s.width))
}

// show prints a command as somebody would type it, over several lines if it is
// long.
func (s *stage) show(args []string) {
	const begin, further = "  $ netkeep", "      "
	line := begin
	for _, a := range args {
		word := quote(a)
		if s.width > 0 && len(line)+len(word)+len("  \\") > s.width && strings.TrimSpace(line) != "" {
			fmt.Fprintln(s.out, line+" \\")
			line = further + word
			continue
		}
		line += " " + word
	}
	fmt.Fprintln(s.out, line)
}

// do runs a command, and shows what it says.
func (s *stage) do(ctx context.Context, args ...string) error {
	s.show(args)
	var said bytes.Buffer
	env := s.env
	env.Args, env.Stdin, env.Stdout, env.Stderr = args, strings.NewReader(""), &said, &said
	env.Columns = max(0, s.width-len("    "))
	err := Root(env).ExecuteContext(ctx)
	for line := range strings.Lines(said.String()) {
		fmt.Fprint(s.out, "    "+line)
	}
	return err
}

// keep starts a command that goes on, and returns when it has said something.
// Should it end, so does the demo.
func (s *stage) keep(ctx context.Context, until string, args ...string) error {
	s.show(args)
	heard := &listener{until: until, heard: make(chan struct{})}
	env := s.env
	env.Args, env.Stdin, env.Stdout, env.Stderr = args, strings.NewReader(""), heard, heard
	s.runs.Go(func() {
		if err := Root(env).ExecuteContext(ctx); err != nil {
			s.end(err)
			return
		}
		s.end(fmt.Errorf("%s has ended by itself", args[0]))
	})
	select {
	case <-heard.heard:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listener waits for a word in what a command says.
type listener struct {
	until string
	heard chan struct{}

	mu   sync.Mutex
	said []byte
}

// mostSaid is how much of what a command says is kept.
const mostSaid = 64 << 10

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == "" {
		return len(p), nil
	}
	if l.said = append(l.said, p...); bytes.Contains(l.said, []byte(l.until)) {
		l.until, l.said = "", nil
		close(l.heard)
	}
	if len(l.said) > mostSaid {
		l.said = l.said[len(l.said)-mostSaid:]
	}
	return len(p), nil
}

const page = `<!doctype html><meta charset="utf-8"><title>netkeep</title>
<style>body{font:1.2rem/1.6 system-ui;max-width:34rem;margin:18vh auto;padding:0 1rem}</style>
<h1>Hello from the other side</h1>
<p>This page came through an overlay network: from a server that nobody can reach, through a
router that cannot read it, to you, because a policy says that you may.</p>
`

// serveWeb is the web server that the network leads to.
func (s *stage) serveWeb(ctx context.Context) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	})}
	s.runs.Go(func() { _ = web.Serve(l) })
	context.AfterFunc(ctx, func() { _ = web.Close() })
	return l.Addr().String(), nil
}

// free are addresses of this machine that nobody listens at.
func free(n int) ([]string, error) {
	var all []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // after all are known, so that they differ
		all = append(all, l.Addr().String())
	}
	return all, nil
}

// preferred is a port if nobody has it, and else another.
func preferred(port uint16) (string, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		defer l.Close()
		return l.Addr().String(), nil
	}
	other, err := free(1)
	if err != nil {
		return "", err
	}
	return other[0], nil
}

// Times of the first look at the page: hosts and routers have to find each
// other.
const (
	fetchTime  = 30 * time.Second
	fetchPause = 200 * time.Millisecond
)

// fetch gets the title of a page, as soon as there is one.
func fetch(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	pause := time.NewTicker(fetchPause)
	defer pause.Stop()
	for {
		text, err := fetchOnce(ctx, url)
		if err == nil {
			return text, nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return "", fmt.Errorf("the page did not come through the network: %w", err)
		}
	}
}

func fetchOnce(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := (&http.Client{Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(body), "<h1>")
	title, _, ok := strings.Cut(rest, "</h1>")
	if !ok {
		return "", fmt.Errorf("%s is another page", url)
	}
	return answer.Status + ": " + title, nil
}
