package main

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

// What stands beside the two sides: the least that a program in Go pays for what a
// router does, and what people would take instead. Each is this program, in a
// process of its own.
const (
	relayPart     = "relay"
	wireguardPart = "wireguard"
)

// part runs what this program is in a process of its own.
func part(name, with string) error {
	switch name {
	case relayPart:
		return relay(with)
	case wireguardPart:
		return wireguard(with)
	}
	return fmt.Errorf("there is no part %q", name)
}

// self runs a part.
func (n *network) self(name, part, with string) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return n.run(name, nil, program, "-part", part, "-with", with)
}

// relay copies what comes over one TLS connection to another. It is told where it
// listens, where to, and the file with its certificate.
func relay(with string) error {
	words := strings.Fields(with)
	if len(words) != 3 {
		return errors.New("a relay has two addresses and a file")
	}
	config, err := papers(words[2])
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", words[0], config)
	if err != nil {
		return err
	}
	for {
		from, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer from.Close()
			to, err := tls.Dial("tcp", words[1], config)
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}()
			_, _ = io.Copy(from, to)
		}()
	}
}

// identify writes a certificate for this machine with its key.
func identify(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	return os.WriteFile(file, append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...), 0o600)
}

func papers(file string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, RootCAs: roots}, nil
}

// relayed is the way over a relay.
func (n *network) relayed(word string) (p *pair, stop func(), err error) {
	file := filepath.Join(n.dir, word+".pem")
	if err := identify(file); err != nil {
		return nil, nil, err
	}
	config, err := papers(file)
	if err != nil {
		return nil, nil, err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		return nil, nil, err
	}
	go serve(l)
	at, err := free()
	if err != nil {
		return nil, nil, err
	}
	r, err := n.self(word, relayPart, at+" "+l.Addr().String()+" "+file)
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		r.stop()
		_ = l.Close()
	}
	return &pair{func() (net.Conn, error) { return tls.Dial("tcp", at, config) }, []*process{r}}, stop, nil
}

// The two namespaces that WireGuard connects, and their addresses outside of the
// tunnel and in it.
var spaces = [2]struct{ name, device, outside, inside string }{
	{"bench-near", "bench0", "10.203.7.1", "10.203.8.1"}, {"bench-far", "bench1", "10.203.7.2", "10.203.8.2"},
}

const wireguardPort = "51820"

// wireguarded is the way between two namespaces over wireguard-go in each of them.
func (n *network) wireguarded(word string) (p *pair, stop func(), err error) {
	var stops []func()
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	var keys [2]*ecdh.PrivateKey
	for i, s := range spaces {
		if keys[i], err = ecdh.X25519().GenerateKey(rand.Reader); err != nil {
			return nil, stop, err
		}
		if err := ip("netns", "add", s.name); err != nil {
			return nil, stop, err
		}
		stops = append(stops, func() { _ = ip("netns", "del", s.name) })
	}
	near, far := spaces[0], spaces[1]
	if err := ip("link", "add", near.device, "netns", near.name, "type", "veth", "peer", "name", far.device, "netns", far.name); err != nil {
		return nil, stop, err
	}
	p = &pair{dial: func() (c net.Conn, err error) {
		err = within(near.name, func() (err error) {
			c, err = net.DialTimeout("tcp", net.JoinHostPort(far.inside, "7000"), time.Minute)
			return err
		})
		return c, err
	}}
	for i, s := range spaces {
		other := spaces[1-i]
		if err := in(s.name, []string{"address", "add", s.outside + "/24", "dev", s.device}, []string{"link", "set", s.device, "up"}); err != nil {
			return nil, stop, err
		}
		settings := strings.Join([]string{
			"private_key=" + hex.EncodeToString(keys[i].Bytes()), "listen_port=" + wireguardPort,
			"public_key=" + hex.EncodeToString(keys[1-i].PublicKey().Bytes()),
			"endpoint=" + net.JoinHostPort(other.outside, wireguardPort), "allowed_ip=" + other.inside + "/32", "",
		}, "\n")
		file := filepath.Join(n.dir, word+s.name)
		if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
			return nil, stop, err
		}
		program, err := os.Executable()
		if err != nil {
			return nil, stop, err
		}
		// ip becomes the program that it is told to run.
		r, err := n.run(word+s.name+"-run", nil, "ip", "netns", "exec", s.name, program, "-part", wireguardPart, "-with", file)
		if err != nil {
			return nil, stop, err
		}
		stops, p.routers = append(stops, r.stop), append(p.routers, r)
		err = n.eventually("there is a device in "+s.name, func() error {
			return in(s.name, []string{"address", "replace", s.inside + "/24", "dev", tunnelDevice}, []string{"link", "set", tunnelDevice, "up"})
		})
		if err != nil {
			return nil, stop, err
		}
	}
	var l net.Listener
	err = within(far.name, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(far.inside, "7000"))
		return err
	})
	if err != nil {
		return nil, stop, err
	}
	stops = append(stops, func() { _ = l.Close() })
	go serve(l)
	return p, stop, nil
}

const tunnelDevice = "wg0"

// wireguard runs wireguard-go with the settings in a file.
func wireguard(file string) error {
	settings, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	at, err := tun.CreateTUN(tunnelDevice, device.DefaultMTU)
	if err != nil {
		return err
	}
	d := device.NewDevice(at, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, ""))
	if err := d.IpcSet(string(settings)); err != nil {
		return err
	}
	if err := d.Up(); err != nil {
		return err
	}
	<-d.Wait()
	return nil
}

// ip runs the program of that name.
func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// in runs ip in a namespace.
func in(space string, all ...[]string) error {
	for _, args := range all {
		if err := ip(append([]string{"-n", space}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// within does something in a namespace: sockets that are made there stay there.
func within(space string, do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	there, err := os.Open("/run/netns/" + space)
	if err != nil {
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return err
	}
	err = do()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		panic(back) // whatever ran on this thread would be elsewhere
	}
	return err
}
