package transit

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/binary"
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/networktest"
)

// TestSealed looks at what a router hands on of a service that is encrypted:
// nothing of what was said can be read there.
func TestSealed(t *testing.T) {
	n := networktest.New(t, shared)
	router := n.AddRouter("one")
	service := n.AddService("secret", true)
	host := login(t, n, n.AddIdentity("host"))
	conn, err := host.connect(router, host.token)
	must(t, err)
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	must(t, err)
	h := wire.Headers{message.HeaderPublicKey: key.PublicKey().Bytes()}
	h.SetBool(message.HeaderRouterNumbers, true)
	bound(t, conn, 1, 5, host.session(service, "Bind"), "", h)
	user := n.Client(n.AddIdentity("user"))
	words := bytes.Repeat([]byte("words that only two may read "), 100)
	go func() {
		if c, err := user.Dial(t.Context(), service, sdk.DialOptions{}); err == nil {
			_, _ = c.Write(words)
		}
	}()
	dial := next(t, conn)
	id, _ := dial.Headers.Uint32(message.HeaderRouterNumbers)
	if dial.Type != message.TypeDial || id == 0 || len(dial.Headers[message.HeaderPublicKey]) != 32 {
		t.Fatalf("a dial looks like %d %v", dial.Type, dial.Headers)
	}
	reply := &wire.Frame{Type: message.TypeDialSuccess, Seq: 2, Headers: wire.Headers{}, Body: binary.LittleEndian.AppendUint32(nil, id)}
	reply.Headers.SetUint32(message.HeaderReplyFor, uint32(dial.Seq))
	_, err = conn.Write(reply.Append(nil))
	must(t, err)
	var heard []byte
	for len(heard) < len(words) {
		f := next(t, conn)
		if f.Type != message.TypeData {
			t.Fatalf("after a dial came %d %q", f.Type, f.Body)
		}
		heard = append(heard, f.Body...)
	}
	if bytes.Contains(heard, []byte("only two")) {
		t.Fatal("the router hands on what it could read")
	}
}
