package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes returns a client whose connections are pipes to peer, all within the
// bubble of a test, where time passes only while everybody waits.
func pipes(o Options, peer func(net.Conn)) *Client {
	o.Resolver = func(context.Context, string, string) ([]netip.Addr, error) {
		return addresses("203.0.113.1"), nil
	}
	o.DialContext = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go peer(far)
		return near, nil
	}
	return New(o)
}

// silent reads what it is sent and says nothing, until the other end closes.
func silent(conn net.Conn) {
	defer conn.Close()
	io.Copy(io.Discard, conn)
}

// says answers a request with text, and is silent afterwards.
func says(text string) func(net.Conn) {
	return func(conn net.Conn) {
		readRequest(conn)
		io.WriteString(conn, text)
		silent(conn)
	}
}

// slowly answers a request with the texts, the last one over and over, each after a pause,
// until the other end closes.
func slowly(pause time.Duration, texts ...string) func(net.Conn) {
	return func(conn net.Conn) {
		readRequest(conn)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			silent(conn)
		}()
		for i := 0; ; i = min(i+1, len(texts)-1) {
			select {
			case <-closed:
				return
			case <-time.After(pause):
				io.WriteString(conn, texts[i])
			}
		}
	}
}

func readRequest(conn net.Conn) {
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
		panic(err)
	}
}

func TestDeadline(t *testing.T) {
	for name, tt := range map[string]struct {
		url     string
		peer    func(net.Conn)
		timeout time.Duration
		want    time.Duration
	}{
		"silent":           {"http://idp.example/", silent, 0, 5 * time.Second},
		"silent, own time": {"http://idp.example/", silent, time.Minute, time.Minute},
		"silent in TLS":    {"https://idp.example/", silent, 0, 5 * time.Second},
		"half a header":    {"http://idp.example/", says("HTTP/1.1 200 OK\r\nContent-"), 0, 5 * time.Second},
		"no body":          {"http://idp.example/", says("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"), 0, 5 * time.Second},
		"slow body":        {"http://idp.example/", slowly(time.Second, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", "x"), 3500 * time.Millisecond, 3500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				body, _, err := pipes(Options{Timeout: tt.timeout}, tt.peer).Get(t.Context(), tt.url+"?token=hush")
				if !errors.Is(err, context.DeadlineExceeded) || body != nil || time.Since(start) != tt.want {
					t.Errorf("got %q, %v after %s", body, err, time.Since(start))
				}
				if text := err.Error(); !strings.Contains(text, "idp.example") || strings.Contains(text, "hush") {
					t.Errorf("error reads %q", text)
				}
			})
		})
	}
}

// The deadline is for all hops together.
func TestDeadlineSpansRedirects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := slowly(2*time.Second, "HTTP/1.1 302 Found\r\nLocation: /next\r\n\r\n")
		start := time.Now()
		_, _, err := pipes(Options{}, peer).Get(t.Context(), "http://idp.example/")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
}

func TestCallerCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, _, err := pipes(Options{}, silent).Get(ctx, "http://idp.example/")
		if !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
}

// A dead address takes its share of the time, not all of it.
func TestDialsShareTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{
			Resolver: func(context.Context, string, string) ([]netip.Addr, error) {
				return addresses("203.0.113.1", "203.0.113.2"), nil
			},
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				if address == "203.0.113.1:80" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				near, far := net.Pipe()
				go says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")(far)
				return near, nil
			},
		}
		start := time.Now()
		body, _, err := New(o).Get(t.Context(), "http://idp.example/")
		if err != nil || string(body) != "ok" || time.Since(start) != 2500*time.Millisecond {
			t.Errorf("got %q, %v after %s", body, err, time.Since(start))
		}
	})
}

// TestGHSA_whjr_3j94_gw3c: keys were fetched with no time limit and from any
// address that whoever registered the issuer cared to name.
func TestGHSA_whjr_3j94_gw3c(t *testing.T) {
	t.Run("a silent issuer is given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, _, err := pipes(Options{}, silent).Get(t.Context(), "http://idp.example/jwks")
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
				t.Errorf("got %v after %s", err, time.Since(start))
			}
		})
	})
	t.Run("an endless answer is refused", func(t *testing.T) {
		w := newWorld()
		w.serve(t, "idp.example", "203.0.113.1", func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 4096))
			}
		})
		if _, _, err := w.client(Options{}).Get(t.Context(), "http://idp.example/jwks"); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v", err)
		}
	})
	for name, u := range map[string]string{
		"metadata by address":  "http://169.254.169.254/latest/meta-data/iam",
		"metadata by name":     "http://metadata.example/latest/meta-data/iam",
		"metadata by redirect": "http://detour.example/jwks",
		"loopback by redirect": "http://homeward.example/jwks",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.serve(t, "metadata.example", "169.254.169.254", answer("credentials"))
			w.serve(t, "local.example", "127.0.0.1", answer("credentials"))
			w.serve(t, "detour.example", "203.0.113.1", redirect("http://metadata.example/"))
			w.serve(t, "homeward.example", "203.0.113.2", redirect("http://local.example/"))
			body, _, err := w.client(Options{}).Get(t.Context(), u)
			if !errors.Is(err, ErrAddress) || body != nil {
				t.Errorf("got %q, %v", body, err)
			}
		})
	}
}
