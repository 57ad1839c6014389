package api_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

// TestOutlets has a controller tell a file and an endpoint of what happens, as the list
// of entries has it.
func TestOutlets(t *testing.T) {
	var mu sync.Mutex
	came := map[string]M{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			var e M
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Error(err)
				return
			}
			came[e["id"].(string)] = e
		}
		if lines.Err() != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	// After the controller, which says what goes on until it ends.
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	s := servertest.Start(t, func(c *config.Config) { c.Audit.HTTP, c.Audit.File = srv.URL, file })
	admin := s.Admin(t)
	id := admin.Post("services", M{"name": "payroll", "encryptionRequired": true}).Want(201).ID()
	entry := admin.Get("audit-entries?filter=" + "targetId%3D%22" + id + "%22").Want(200).List()[0]
	servertest.Eventually(t, time.Minute, "the entry goes out", func() bool {
		text, _ := os.ReadFile(file)
		mu.Lock()
		defer mu.Unlock()
		return came[entry["id"].(string)] != nil && strings.Contains(string(text), id)
	})
	mu.Lock()
	defer mu.Unlock()
	got := came[entry["id"].(string)]
	for member, want := range entry {
		is, _ := json.Marshal(got[member])
		if wanted, _ := json.Marshal(want); member != "_links" && string(is) != string(wanted) {
			t.Errorf("%s is %s, want %s", member, is, wanted)
		}
	}
}
