package program_test

import (
	"path/filepath"
	"strings"
	"testing"

	"netkeep.internal/test/etcdtest"
)

// TestUnreachableCluster starts controllers on clusters that they cannot use.
// Each says so while it tries, and why in the end.
func TestUnreachableCluster(t *testing.T) {
	etcd := etcdtest.Start(t)
	secure := []string{"--store-endpoints", "https://" + etcd.Address, "--store-cert", etcd.Cert, "--store-key", etcd.Key, "--store-prefix", etcdtest.Prefix}
	right := append([]string{"--store-ca", etcd.CA}, secure...)
	for name, test := range map[string]struct {
		args  []string
		logs  []string // lines of the log hold these
		says  []string
		tries bool
	}{
		"nobody there": {
			args: []string{"--store-endpoints", "http://127.0.0.1:1", "--store-wait", "4s"}, tries: true,
			says: []string{"the store at http://127.0.0.1:1 could not be reached within 4s", "connection refused"},
		},
		"no TLS": {
			args: []string{"--store-endpoints", "http://192.0.2.1:2379", "--store-wait", "1s"},
			logs: []string{"the store is reached without TLS"}, says: []string{"192.0.2.1:2379 could not be reached within 1s"},
		},
		"unknown CA": {
			args: append(secure, "--store-wait", "2s"), says: []string{"could not be reached within 2s", "certificate signed by unknown authority"},
		},
		"no user":        {args: right, says: []string{"does not let this controller in", "permission denied", "store.username"}},
		"wrong password": {args: append(right, "--store-username", etcdtest.Username, "--store-password-file", write(t, "wrong", "a wrong one\n")), says: []string{"does not let this controller in", "invalid user ID or password"}},
		"wrong prefix": {
			args: append(right, "--store-username", etcdtest.Username, "--store-password-file", write(t, "right", etcdtest.Password), "--store-prefix", "theirs"),
			says: []string{"does not let this controller in", "permission denied"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, settings{args: append([]string{"run", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0"}, test.args...)})
			if code := p.wait(); code != 1 || p.stdout.String() != "" {
				t.Errorf("exit code %d, output %q", code, p.stdout.String())
			}
			log := p.stderr.String()
			p.complains(complaints(log), test.says...)
			for _, text := range append(test.logs, map[bool][]string{true: {"the store cannot be reached; trying again"}}[test.tries]...) {
				if !strings.Contains(log, text) {
					t.Errorf("the log lacks %q", text)
				}
			}
			for _, secret := range []string{"a wrong one", etcdtest.Password} {
				if strings.Contains(log, secret) {
					t.Errorf("it shows the password:\n%s", log)
				}
			}
		})
	}
}
