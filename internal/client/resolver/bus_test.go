package resolver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godbus/dbus/v5"
)

// bus stands for the system's bus with systemd-resolved on it: it notes what it
// is told.
type bus struct {
	address string
	// absent says that nobody has the name, and refuse how calls are refused.
	absent bool
	refuse string
	silent atomic.Bool

	servers []linkServer
	domains []linkDomain

	mu   sync.Mutex
	told []string
}

func newBus(t *testing.T) *bus {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	b := &bus{address: "unix:path=" + path}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				_ = b.serve(conn) // which ends with the client
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return b
}

// serve lets everybody in, and answers.
func (b *bus) serve(conn net.Conn) error {
	in := bufio.NewReader(conn)
	if _, err := in.ReadByte(); err != nil {
		return err
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		answer := "ERROR\r\n"
		switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case word == "BEGIN":
			return b.messages(in, conn)
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			answer = "OK 0123456789abcdef0123456789abcdef\r\n"
		case word == "AUTH":
			answer = "REJECTED EXTERNAL\r\n"
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return err
		}
	}
}

func (b *bus) messages(in *bufio.Reader, conn net.Conn) error {
	for {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return err
		}
		if call.Type != dbus.TypeMethodCall || b.silent.Load() && call.Headers[dbus.FieldDestination].Value() == busName {
			continue
		}
		body, err := b.answer(call)
		reply := *call // with its number: the library gives messages none
		reply.Type, reply.Body = dbus.TypeMethodReply, body
		reply.Headers = map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(call.Serial())}
		if err != nil {
			reply.Type = dbus.TypeError
			reply.Headers[dbus.FieldErrorName] = dbus.MakeVariant(err.Error())
		}
		if len(body) > 0 {
			reply.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
		}
		if err := reply.EncodeTo(conn, binary.LittleEndian); err != nil {
			return err
		}
	}
}

func (b *bus) answer(call *dbus.Message) ([]any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch member := call.Headers[dbus.FieldMember].Value().(string); member {
	case "Hello":
		return []any{":1.1"}, nil
	case "NameHasOwner":
		return []any{!b.absent}, nil
	case "Get":
		switch call.Body[1] {
		case "DNS":
			return []any{dbus.MakeVariant(b.servers)}, nil
		case "Domains":
			return []any{dbus.MakeVariant(b.domains)}, nil
		}
		return nil, errors.New("org.freedesktop.DBus.Error.UnknownProperty")
	default:
		if b.refuse != "" {
			return nil, errors.New(b.refuse)
		}
		b.told = append(b.told, fmt.Sprint(member, call.Body))
		return nil, nil
	}
}

func (b *bus) heard() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := strings.Join(b.told, "\n")
	b.told = nil
	return all
}
