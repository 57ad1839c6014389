package fabric

import (
	"strings"
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestLinger takes a session away whose connection a router carries that would keep
// both ends silent if it were told to drop the circuit. It is told first that the
// session is over, with a token that it listens for; a later router, and one beside
// those that read tokens, is told to drop the circuit at once.
func TestLinger(t *testing.T) {
	const early, later = "v1.6.0|abc|2025-05-20 19:41:33|linux|amd64", ""
	for _, test := range []struct {
		name, version string
		grouped       bool // another router reads tokens
		plain         bool
	}{
		{"an early router", early, false, true},
		{"a later router", later, false, false},
		{"an early router beside one that reads tokens", early, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := servertest.Start(t)
			r := addRouter(t, s)
			told := make(chan *wire.Frame, 10)
			c := r.Connect(t, func(o *scripted.Options) {
				o.Version = test.version
				o.Seen = func(f *wire.Frame) {
					if f.Type == message.TypeSessionsRemoved || f.Type == message.TypeUnroute {
						told <- f
					}
				}
			})
			if test.grouped {
				addRouter(t, s).Connect(t, func(o *scripted.Options) { o.Grouped = true })
			}
			n := addNetwork(t, s)
			if plain := !strings.HasPrefix(n.dialing, "ey"); plain != test.plain {
				t.Fatalf("the token is %.20s…", n.dialing)
			}
			n.hostOn(t, c, servertest.Unique("t"))
			id, _, err := n.dialOn(t, c)
			must(t, err)
			take := "sessions/" + s.Admin(t).Get(management + `sessions?filter=type="Dial"`).Want(200).List()[0]["id"].(string)
			if test.plain {
				take = "services/" + n.service // with what it is hosted by
			}
			s.Admin(t).Delete(management + take).Want(200)
			over := map[string]bool{}
			f := <-told
			for ; f.Type == message.TypeSessionsRemoved; f = <-told {
				gone, err := message.Unmarshal[message.Removed](f.Body)
				must(t, err)
				over[gone.Tokens[0]] = true
			}
			if !over[n.dialing] {
				t.Errorf("the circuit is to be dropped when %v is over", over)
			}
			if drop, err := message.Unmarshal[message.Unroute](f.Body); err != nil || drop.CircuitID != id || !drop.Now {
				t.Errorf("the router is told to drop %+v, %v", drop, err)
			}
		})
	}
}
