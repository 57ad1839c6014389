package edge

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// hearing is a controller that takes note of what it is told, and when.
type hearing struct {
	anybody
	said []string
	at   []time.Time
}

func (h *hearing) Report(_ context.Context, token string, body []byte) error {
	h.said, h.at = append(h.said, token+" "+string(body)), append(h.at, time.Now())
	return nil
}

// TestReportsInTurn passes on what two clients of an identity report: each in
// its order, and no faster than may be.
func TestReportsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hearing{}
		d := New(Options{Controller: h, Mentions: silent, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		var clients []*client
		for i := range 2 {
			c := d.newClient(fmt.Sprint(i), []*x509.Certificate{{Raw: []byte("leaf")}}, &channel.Hello{Headers: wire.Headers{}})
			c.entry = Entry{IdentityID: "i", Leave: func() {}}
			if err := d.add(c); err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
		}
		for n := range maxReports / 2 {
			for _, c := range clients {
				c.report(fmt.Append(nil, n))
			}
		}
		<-time.After(time.Minute)
		if len(h.said) != maxReports || clients[0].of.reports.Load() != 0 {
			t.Fatalf("%d reports were passed on, %d wait", len(h.said), clients[0].of.reports.Load())
		}
		for i := range clients {
			var mine []string
			for _, s := range h.said {
				if s[0] == '0'+byte(i) {
					mine = append(mine, s)
				}
			}
			if !slices.IsSorted(mine) {
				t.Errorf("client %d was heard in the order %v", i, mine)
			}
		}
		for i := range h.at[1:] {
			if gap := h.at[i+1].Sub(h.at[i]); gap < 50*time.Millisecond {
				t.Errorf("report %d came %s after the one before", i+1, gap)
			}
		}
	})
}

// slow is a controller that takes its time to write down what a device reports.
type slow struct {
	anybody
	order   []string
	lacking int // dials that are refused by the device
}

func (s *slow) Report(context.Context, string, []byte) error {
	<-time.After(time.Second)
	s.order = append(s.order, "report")
	return nil
}

func (s *slow) Dial(context.Context, *message.CreateCircuit) (*message.CircuitCreated, error) {
	s.order = append(s.order, "dial")
	if s.lacking > 0 {
		s.lacking--
		return nil, message.Refuse(message.CodePostureFailed, "")
	}
	return nil, errGone
}

// TestDialAfterReport has a client report and dial in one go: it is judged by what it has
// reported, and nobody waits who has reported nothing.
func TestDialAfterReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		d := New(Options{Controller: s, Mentions: silent, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		c := d.newClient("token", []*x509.Certificate{{Raw: []byte("leaf")}}, &channel.Hello{Headers: wire.Headers{}})
		c.entry = Entry{IdentityID: "i", Leave: func() {}}
		if err := d.add(c); err != nil {
			t.Fatal(err)
		}
		dial := func(id uint32) {
			f := &wire.Frame{Type: message.TypeConnect, Headers: wire.Headers{}, Body: []byte("session")}
			f.Headers.SetUint32(message.HeaderConn, id)
			c.handle(nil, f)
			synctest.Wait()
		}
		dial(1)
		for range 2 {
			c.handle(nil, &wire.Frame{Type: message.TypePosture, Body: []byte("report")})
		}
		dial(2)
		<-time.After(time.Minute)
		dial(3)
		heard := func(want ...string) {
			t.Helper()
			synctest.Wait() // whoever was asked has written down what it heard
			if !slices.Equal(s.order, want) {
				t.Errorf("the controller heard %v, not %v", s.order, want)
			}
			s.order = nil
		}
		heard("dial", "report", "report", "dial", "dial")

		// A report that comes right after, over another socket.
		s.lacking = 1
		dial(4)
		c.handle(nil, &wire.Frame{Type: message.TypePosture, Body: []byte("report")})
		<-time.After(time.Minute)
		heard("dial", "report", "dial")
		s.lacking = 3
		dial(5)
		<-time.After(time.Second)
		c.handle(nil, &wire.Frame{Type: message.TypePosture, Body: []byte("report")})
		<-time.After(time.Minute)
		heard("dial", "report")
	})
}
