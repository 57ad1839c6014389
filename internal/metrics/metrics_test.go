package metrics_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"netkeep/internal/kind"
	"netkeep/internal/metrics"
	"netkeep/internal/model"
	"netkeep/internal/pki"
	"netkeep/internal/state"
	"netkeep/internal/store/storetest"
)

// TestCertificates counts what expires, and by when.
func TestCertificates(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	err = st.Update(t.Context(), "test", func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		for i, days := range []int{-1, 3, 20, 400} {
			name := string(rune('a' + i))
			who := &model.Identity{Name: name, Type: "User", AuthPolicyID: model.DefaultAuthPolicy}
			if err := model.Identities.Create(tx, who); err != nil {
				return err
			}
			err := model.Authenticators.Create(tx, &model.Authenticator{
				IdentityID: who.ID, Method: model.MethodCert, Fingerprint: name, NotAfter: now.AddDate(0, 0, days),
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	metrics.Handler(metrics.Source{
		Snapshot:  func() kind.Reader { return st.Snapshot() },
		Inventory: func() []pki.Item { return []pki.Item{{Name: "root", NotAfter: now.AddDate(0, 0, 10)}} },
		Now:       func() time.Time { return now },
	}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{
		`netkeep_certificate_remaining{kind="controller",name="root"} 10`,
		`netkeep_client_certificates_expiring{days="0"} 1`,
		`netkeep_client_certificates_expiring{days="7"} 2`,
		`netkeep_client_certificates_expiring{days="30"} 3`,
		`netkeep_client_certificates_expiring{days="90"} 3`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	problems, err := promlint.New(strings.NewReader(w.Body.String())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "netkeep_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}
