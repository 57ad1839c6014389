package transit

import (
	"io"
	"testing"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/test/networktest"
)

// TestBrief has one end say what it has to say and close, at once: the other end
// gets it, whichever of them is faster.
func TestBrief(t *testing.T) {
	n := networktest.New(t, shared)
	n.AddRouter("one")
	user, host := n.AddIdentity("user"), n.AddIdentity("host")
	for name, mode := range modes {
		for _, encrypted := range []bool{true, false} {
			service := n.AddService("brief "+name+map[bool]string{true: " sealed", false: " open"}[encrypted], encrypted)
			t.Run(service, func(t *testing.T) {
				c := n.Client(user, mode)
				l, err := n.Client(host, mode).Listen(within(t, networktest.Soon), service, sdk.ListenOptions{})
				must(t, err)
				defer l.Close()
				for i := range 20 {
					hostSpeaks := i%2 == 0
					heard := make(chan string, 1)
					go func() {
						conn, err := l.Accept()
						if err != nil {
							heard <- err.Error()
							return
						}
						defer conn.Close()
						if hostSpeaks {
							if _, err := io.WriteString(conn, "brief"); err != nil {
								t.Error(err)
							}
							return
						}
						got, err := io.ReadAll(conn)
						if err != nil {
							t.Errorf("the host read %q, and %v", got, err)
						}
						heard <- string(got)
					}()
					conn, err := c.Dial(within(t, networktest.Soon), service, sdk.DialOptions{})
					must(t, err)
					if hostSpeaks {
						if got, err := io.ReadAll(conn); string(got) != "brief" || err != nil {
							t.Fatalf("the dialer read %q, and %v", got, err)
						}
						must(t, conn.Close())
						continue
					}
					_, err = io.WriteString(conn, "brief")
					must(t, err)
					must(t, conn.Close())
					if got := <-heard; got != "brief" {
						t.Fatalf("the host heard %q", got)
					}
				}
			})
		}
	}
}
