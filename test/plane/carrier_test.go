package plane

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/internal/router/home"
	"netkeep.internal/test/certtest"
)

// What a process of its own is told: what it carries with, the directory with what
// it needs, and for a relay where to.
const (
	partVariable    = "PLANE_PART"
	dirVariable     = "PLANE_DIR"
	toVariable      = "PLANE_TO"
	profileVariable = "PLANE_PROFILE" // a directory for profiles; none if empty
)

// carrier is a process that carries, which nothing else runs in: what it has used
// is what carrying costs.
type carrier struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	address string
}

// used is what a carrier has used so far.
type used struct {
	cpu     time.Duration
	objects int64 // allocated
	bytes   int64
}

func (u used) less(v used) used {
	return used{u.cpu - v.cpu, u.objects - v.objects, u.bytes - v.bytes}
}

func (u used) and(v used) used {
	return used{u.cpu + v.cpu, u.objects + v.objects, u.bytes + v.bytes}
}

// start runs a part of this program in a process of its own, until the benchmark
// ends.
func start(b *testing.B, part, dir, to string) *carrier {
	b.Helper()
	c := &carrier{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), partVariable+"="+part, dirVariable+"="+dir, toVariable+"="+to)
	c.cmd.Stderr = os.Stderr
	var err error
	c.in, err = c.cmd.StdinPipe()
	must(b, err)
	out, err := c.cmd.StdoutPipe()
	must(b, err)
	c.out = bufio.NewReader(out)
	must(b, c.cmd.Start())
	b.Cleanup(func() {
		_ = c.in.Close() // it ends with that
		_ = c.cmd.Wait()
	})
	c.address = c.line(b)
	return c
}

func (c *carrier) line(b *testing.B) string {
	b.Helper()
	text, err := c.out.ReadString('\n')
	must(b, err)
	return strings.TrimSpace(text)
}

// used asks what the carrier has used.
func (c *carrier) used(b *testing.B) (u used) {
	b.Helper()
	_, err := io.WriteString(c.in, "used\n")
	must(b, err)
	_, err = fmt.Sscan(c.line(b), &u.cpu, &u.objects, &u.bytes)
	must(b, err)
	return u
}

// part is what runs in a process of its own, until there is nobody who asks.
func part(name string) error {
	if dir := os.Getenv(profileVariable); dir != "" {
		f, err := os.Create(filepath.Join(dir, name+"-"+strconv.Itoa(os.Getpid())+".pprof"))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	begin := map[string]func(dir string) (string, error){"relay": relay, "router": router}[name]
	if begin == nil {
		return fmt.Errorf("there is no part %q", name)
	}
	address, err := begin(os.Getenv(dirVariable))
	if err != nil {
		return err
	}
	fmt.Println(address)
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			return err
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(u.Utime.Nano()+u.Stime.Nano(), m.Mallocs, m.TotalAlloc)
	}
	return nil
}

// router runs the router that lives in a directory.
func router(dir string) (string, error) {
	s, err := home.Open(dir, home.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), Version: "v1.6.20"})
	if err != nil {
		return "", err
	}
	r, err := s.Start()
	if err != nil {
		return "", err
	}
	return r.Listening.String(), nil
}

// relay is the least that a program in Go can do between two TLS connections: it
// copies what comes over the one to the other.
func relay(dir string) (string, error) {
	config, err := papers(dir)
	if err != nil {
		return "", err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		return "", err
	}
	to := os.Getenv(toVariable)
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				next, err := tls.Dial("tcp", to, config)
				if err != nil {
					return
				}
				go func() {
					_, _ = io.Copy(next, from)
					_ = next.Close()
				}()
				_, _ = io.Copy(from, next)
			}()
		}
	}()
	return l.Addr().String(), nil
}

// The files of who is no router.
const (
	certFile = "cert.pem"
	keyFile  = "key.pem"
)

// identify writes a certificate for this machine, and whom to trust.
func identify(b *testing.B) (dir string) {
	b.Helper()
	dir = b.TempDir()
	pair := certtest.New(b, nil, func(c *x509.Certificate) {
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		c.IsCA, c.KeyUsage = true, x509.KeyUsageDigitalSignature|x509.KeyUsageCertSign
	})
	pair.Write(b, filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	return dir
}

// papers are for both ends of a connection.
func papers(dir string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: roots}, nil
}
