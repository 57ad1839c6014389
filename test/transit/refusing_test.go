package transit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
)

// TestLogOfHost has somebody who may use a service ask its host for ever other places
// that it does not lead to: the log of the machine that hosts it is not filled.
func TestLogOfHost(t *testing.T) {
	const dialers, each, aMinute = 8, 25, 60
	n := networktest.New(t, shared)
	n.AddRouter("router")
	host, user := n.AddIdentity("host", n.Word+"host"), n.AddIdentity("user", n.Word+"user")
	port := portOf(page(t, "open").Listener.Addr())
	leading(n, "any", M{
		"protocol": "tcp", "forwardAddress": true, "allowedAddresses": []string{"127.0.0.1", "*.localhost"}, "port": port,
	})
	c := tunnels(t, "host", "--identity", host.File)
	client := n.Client(user)
	dial := func(data M) error {
		text, _ := json.Marshal(data)
		conn, err := client.Dial(within(t, networktest.Soon), n.Word+"any", sdk.DialOptions{Data: text})
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	n.Eventually("it is hosted", func() bool {
		return dial(M{"dst_protocol": "tcp", "dst_ip": "127.0.0.1", "dst_port": fmt.Sprint(port)}) == nil
	})
	began := time.Now()
	var all sync.WaitGroup
	for d := range dialers {
		all.Go(func() {
			for i := range each {
				name := fmt.Sprintf("%d-%d%s.example.org", d, i, strings.Repeat("x", 2000))
				err := dial(M{"dst_protocol": "tcp", "dst_hostname": name, "dst_port": fmt.Sprint(port)})
				if !errors.Is(err, sdk.ErrRefused) {
					t.Errorf("where the service does not lead to: %v", err)
				}
			}
		})
	}
	all.Wait()
	most := aMinute * (2 + int(time.Since(began)/time.Minute))
	lines := 0
	for line := range strings.Lines(c.String()) {
		if strings.Contains(line, "a dial was refused") {
			lines++
		}
		if len(line) > 1000 {
			t.Errorf("a line has %d letters: %.200s", len(line), line)
		}
	}
	if lines == 0 || lines > most {
		t.Errorf("%d dials that were refused made %d lines, want at most %d", dialers*each, lines, most)
	}
}
