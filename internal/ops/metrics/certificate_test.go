package metrics_test

import (
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/metrics"
	"netkeep.internal/internal/pki"
)

// TestCertificates counts what expires, and by when.
func TestCertificates(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	err = st.Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		for i, days := range []int{-1, 3, 20, 400} {
			name := string(rune('a' + i))
			who := &model.Identity{Name: name, Type: "User"}
			if err := model.Identities.Create(tx, who); err != nil {
				return err
			}
			err := model.Authenticators.Create(tx, &model.Authenticator{
				IdentityID: who.ID, Method: model.MethodCert, Fingerprint: name, NotAfter: kind.MomentOf(now.AddDate(0, 0, days)),
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
	m := metrics.New(time.Now)
	m.Watch(metrics.Source{
		State:     st,
		Inventory: func() []pki.Item { return []pki.Item{{Name: "root", NotAfter: now.AddDate(0, 0, 10)}} },
		Ready:     func() bool { return true },
		Now:       func() time.Time { return now },
		StoreSize: func() (int64, bool) { return 0, false },
		DiskFree:  func() (int64, bool) { return 0, false },

		LastSnapshot: func() (int64, bool) { return 0, false },
		Controllers:  func() (all, online int) { return 1, 1 },
		Votes:        func() (int64, bool) { return 0, false },
		StoreAge:     func() time.Duration { return 0 },
		Refusing:     func() bool { return false },
	})
	got := scrape(t, m)
	for _, line := range []string{
		`netkeep_certificate_remaining_seconds{kind="controller",name="root"} 864000`,
		`netkeep_client_certificates_expiring{days="0"} 1`,
		`netkeep_client_certificates_expiring{days="7"} 2`,
		`netkeep_client_certificates_expiring{days="30"} 3`,
		`netkeep_client_certificates_expiring{days="90"} 3`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
}
