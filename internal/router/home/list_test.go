package home

import (
	"bytes"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"netkeep.internal/internal/router/uplink"
)

// TestKnown keeps the list of controllers beside the identity, for as long as
// that names the same addresses, and does without it when it is damaged.
func TestKnown(t *testing.T) {
	var log bytes.Buffer
	s := &Station{dir: t.TempDir(), opt: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	from := []string{"tls:a:1280"}
	if got := s.known(from); got != nil {
		t.Errorf("a router that was told nothing knows %v", got)
	}
	for _, list := range [][]uplink.Controller{
		{{ID: "a", Addresses: []string{"tls:a:1280"}}, {ID: "b", Addresses: []string{"tls:b:1280", "tls:c:1280"}}},
		{{Addresses: []string{"tls:d:1280"}}},
	} {
		s.keepList(from, list)
		if got := s.known(from); !reflect.DeepEqual(got, list) {
			t.Errorf("it knows %v, and was told %v", got, list)
		}
	}
	if info, err := os.Stat(s.path(listFile)); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read it: %v, %v", info, err)
	}
	if got := s.known([]string{"tls:other:1280"}); got != nil {
		t.Errorf("with other addresses in its identity it knows %v", got)
	}
	if log.Len() > 0 {
		t.Errorf("it says %s", &log)
	}
	for name, text := range map[string]string{"nothing": "", "no JSON": "{", "another form": `{"controllers": 3}`} {
		log.Reset()
		if err := os.WriteFile(s.path(listFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := s.known(from); got != nil || !strings.Contains(log.String(), "the addresses of the identity are tried") {
			t.Errorf("%s: it knows %v and says %s", name, got, &log)
		}
	}
	text := `{"from": ["tls:a:1280"], "controllers": [{"id": "x", "addresses": ["nowhere", "tls:a"]}, {"id": "y", "addresses": ["tls:y:1280"]}]}`
	if err := os.WriteFile(s.path(listFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.known(from); len(got) != 1 || got[0].ID != "y" {
		t.Errorf("of what cannot be reached it knows %v", got)
	}
}
