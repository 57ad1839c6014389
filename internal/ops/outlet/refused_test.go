package outlet_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	collected "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/protobuf/proto"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/egress"
	"netkeep.internal/internal/ops/outlet"
	"netkeep.internal/test/journal"
)

// writeLarge makes a change whose entry is larger than so many bytes.
func writeLarge(t *testing.T, s *state.State, size int) {
	t.Helper()
	must(t, s.Update(t.Context(), state.Program("tester"), func(tx *state.Tx) error {
		return model.Services.Edit(tx, "web", func(v *model.Service) error {
			v.Tags = kind.Tags{"note": strings.Repeat("x", size)}
			return nil
		})
	}))
}

// TestTooLarge has an entry that the other end refuses for ever as too large: it is
// passed by with a word, alone, and all others come.
func TestTooLarge(t *testing.T) {
	const most = 50 << 10
	for name, to := range map[string]func(url string) outlet.Outlet{
		"web": func(url string) outlet.Outlet { return &outlet.Web{URL: url, Client: egress.New(egress.Options{})} },
		"otlp": func(url string) outlet.Outlet {
			return &outlet.OTLP{URL: url, Network: "net", Client: egress.New(egress.Options{}), Log: slog.New(slog.DiscardHandler)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			var g got
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || len(body) > most {
					w.WriteHeader(http.StatusRequestEntityTooLarge)
					return
				}
				if name == "otlp" {
					var sent collected.ExportLogsServiceRequest
					if err := proto.Unmarshal(body, &sent); err != nil {
						t.Error(err)
						return
					}
					for _, rec := range sent.ResourceLogs[0].ScopeLogs[0].LogRecords {
						g.take(t, []byte(rec.Body.GetStringValue()))
					}
					return
				}
				for _, line := range bytes.Split(bytes.TrimSpace(body), []byte("\n")) {
					g.take(t, line)
				}
			}))
			defer srv.Close()
			write(t, s, 150)
			writeLarge(t, s, most)
			write(t, s, 150)
			var said journal.Journal
			f := &outlet.Follower{
				Name: "test", Log: &audit.Log{State: s}, Outlet: to(srv.URL), At: outlet.Shared{State: s, ID: "x"},
				Again: time.Millisecond, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelError})),
			}
			stop := run(t, f)
			eventually(t, "all others came", func() bool { return g.all(301) && f.Figures().Behind == 0 })
			stop()
			g.whole(t, 301)
			if len(g.missing) != 1 || g.missing[0] != "entries 000000000151 to 000000000151" {
				t.Errorf("%q are missing", g.missing)
			}
			if is := f.Figures(); is.Refused != 1 || is.Missed != 0 || is.Failing != 0 {
				t.Errorf("it is %+v", is)
			}
			if text := said.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "number=151") {
				t.Errorf("it says %s", text)
			}
		})
	}
}

// TestNothingTaken has somebody who says of everything that it is too large: that is no
// reason to pass all by.
func TestNothingTaken(t *testing.T) {
	s := open(t)
	var g got
	var takes atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !takes.Load() {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		for _, line := range bytes.Split(bytes.TrimSpace(body), []byte("\n")) {
			g.take(t, line)
		}
	}))
	defer srv.Close()
	write(t, s, 60)
	f, stop := follow(t, s, &outlet.Web{URL: srv.URL, Client: egress.New(egress.Options{})}, outlet.Shared{State: s, ID: "x"})
	eventually(t, "it fails", func() bool { return f.Figures().Failing > 0 })
	if is := f.Figures(); is.Refused != 3 || is.Behind != 57 {
		t.Errorf("it is %+v", is)
	}
	takes.Store(true)
	eventually(t, "the others come", func() bool { return g.all(60) && f.Figures().Failing == 0 })
	stop()
	if len(g.times) != 57 {
		t.Errorf("%d came", len(g.times))
	}
}

// TestTrickle has somebody who answers one byte after the other and comes to no end,
// and one who does not even read: neither has anybody wait for long, both are told of,
// and others get what they should.
func TestTrickle(t *testing.T) {
	s := open(t)
	slow := func(answer func(net.Conn)) (url string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() { defer conn.Close(); answer(conn) }()
			}
		}()
		return "http://" + l.Addr().String()
	}
	over := make(chan struct{})
	defer close(over)
	trickling := slow(func(conn net.Conn) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Filler: ")
		for err == nil {
			<-tick.C
			_, err = conn.Write([]byte{'x'})
		}
	})
	deaf := slow(func(net.Conn) { <-over })
	write(t, s, 20)
	for range 8 { // more than fits between the two
		writeLarge(t, s, 200<<10)
		writeLarge(t, s, 0)
	}
	write(t, s, 1)
	var fails []*outlet.Follower
	var stops []func()
	for name, url := range map[string]string{"trickling": trickling, "deaf": deaf} {
		f, stop := follow(t, s, &outlet.Web{URL: url, Client: egress.New(egress.Options{Timeout: 100 * time.Millisecond})}, outlet.Shared{State: s, ID: name})
		fails, stops = append(fails, f), append(stops, stop)
	}
	dir := t.TempDir()
	_, stop := follow(t, s, &outlet.File{Path: filepath.Join(dir, "all")}, outlet.Here(filepath.Join(dir, "at")))
	for _, f := range fails {
		eventually(t, "it is told", func() bool { is := f.Figures(); return is.Failing > 0 && is.Behind > 0 })
	}
	last := audit.Head(s.Snapshot()).Last
	write(t, s, 100)
	var text []byte
	eventually(t, "others go on", func() bool { // one that has not begun is not behind
		var err error
		text, err = os.ReadFile(filepath.Join(dir, "all"))
		return err == nil && int64(bytes.Count(text, []byte("\n"))) >= last+100
	})
	stop()
	var g got
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		g.take(t, line)
	}
	g.whole(t, last+100)
	for _, stop := range stops {
		stop()
	}
}

// TestPartlyTaken has a collector take a part of what is sent, and say so: the rest is
// counted, and not sent again.
func TestPartlyTaken(t *testing.T) {
	s := open(t)
	var g got
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collected.ExportLogsServiceRequest
		if err != nil || proto.Unmarshal(body, &sent) != nil {
			t.Errorf("it cannot be read: %v", err)
			return
		}
		said := &collected.ExportLogsPartialSuccess{}
		for _, rec := range sent.ResourceLogs[0].ScopeLogs[0].LogRecords {
			g.take(t, []byte(rec.Body.GetStringValue()))
			for _, a := range rec.Attributes {
				if a.Key == "netkeep.audit.number" && a.Value.GetIntValue() == 7 {
					said.RejectedLogRecords++
				}
			}
		}
		answer, err := proto.Marshal(&collected.ExportLogsServiceResponse{PartialSuccess: said})
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(answer)
	}))
	defer srv.Close()
	write(t, s, 20)
	var said journal.Journal
	log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelError}))
	f, stop := follow(t, s, &outlet.OTLP{URL: srv.URL, Network: "net", Client: egress.New(egress.Options{}), Log: log}, outlet.Shared{State: s, ID: "x"})
	eventually(t, "one is refused", func() bool { return g.all(20) && f.Figures().Refused > 0 })
	stop()
	g.whole(t, 20)
	if is := f.Figures(); is.Refused != 1 || is.Missed != 0 || is.Failing != 0 {
		t.Errorf("it is %+v", is)
	}
	if text := said.String(); !strings.Contains(text, "refused=1 ") {
		t.Errorf("it says %s", text)
	}
}
