package program_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/test/machine"
)

// TestTunnelStops tells a tunneler to stop: what is connected goes on, until it
// is told a second time.
func TestTunnelStops(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	p := controller(t, data, "--router", "127.0.0.1:0")
	c := p.client(data)
	c.online(t, p, 1)
	c.addEcho(t)
	for _, typ := range []string{"Dial", "Bind"} {
		c.must(t, 201, "POST", "service-policies", M{"name": typ, "type": typ, "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}})
	}
	_, file := c.addTunneler(t, dir, "tunneler")

	port := machine.Port(t)
	tunnel := launch(t, settings{args: []string{"tunnel", "run", "--identity", file, "--drain", "1h", "echo:" + port}})
	conn := dialEcho(t, port)
	defer conn.Close()
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		if !echoes(conn) {
			t.Fatalf("the connection is cut before %v", signal)
		}
		tunnel.signal(signal)
		tunnel.logs("nothing new is taken")
	}
	if code := tunnel.wait(); code != -1 {
		t.Errorf("a second signal ended it with %d, not at once", code)
	}
	p.stop()
}

// addEcho makes a service whose server says everything back.
func (c *client) addEcho(t *testing.T) {
	t.Helper()
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = echo.Close() })
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	config := c.must(t, 201, "POST", "configs", M{"name": "echo", "configTypeId": "NH5p4FpGR", "data": M{ // host.v1
		"protocol": "tcp", "address": "127.0.0.1", "port": echo.Addr().(*net.TCPAddr).Port,
	}}).id()
	c.must(t, 201, "POST", "services", M{"name": "echo", "encryptionRequired": true, "configs": []string{config}})
}

// addTunneler makes an identity and returns its id and its file.
func (c *client) addTunneler(t *testing.T, dir, name string) (id, file string) {
	t.Helper()
	id = c.must(t, 201, "POST", "identities", M{"name": name, "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).id()
	jwt := c.must(t, 200, "GET", "identities/"+id, nil).body["data"].(M)["enrollment"].(M)["ott"].(M)["jwt"].(string)
	file = filepath.Join(dir, name+".json")
	if enrolled := launch(t, settings{args: []string{"enroll", jwt, "-o", file}}); enrolled.wait() != 0 {
		t.Fatal("it cannot enroll")
	}
	return id, file
}

// dialEcho connects to a local port as soon as it leads to the server.
func dialEcho(t *testing.T, port string) net.Conn {
	t.Helper()
	for deadline := time.Now().Add(waitTime); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		if echoes(conn) {
			return conn
		}
		_ = conn.Close()
	}
	t.Fatalf("port %s leads nowhere", port)
	return nil
}

// echoes reports whether what is said to a connection comes back.
func echoes(conn net.Conn) bool {
	_ = conn.SetDeadline(time.Now().Add(waitTime))
	if _, err := io.WriteString(conn, "?"); err != nil {
		return false
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err == nil
}
