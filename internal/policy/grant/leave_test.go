package grant_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
)

// TestLeftToAnother takes what sessions rest on, where it is another controller that
// has to remove them, and that does not.
func TestLeftToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, storetest.NewMemory())
		write := func(fn func(tx *state.Tx) error) {
			t.Helper()
			if err := c.st.Update(t.Context(), state.Program("test"), fn); err != nil {
				t.Fatal(err)
			}
		}
		write(func(tx *state.Tx) error { return model.Seed(tx) })
		r := rand.New(rand.NewPCG(1, 1))
		for len(c.held()) == 0 {
			write(func(tx *state.Tx) error { return change(r, tx) })
			c.hold(t)
		}
		c.sessions.Mine = func() bool { return false }
		go c.sessions.Enforce(t.Context())
		<-time.After(time.Second)
		synctest.Wait()
		had := len(c.held())
		write(func(tx *state.Tx) error {
			for p := range model.ServicePolicies.All(tx) {
				if err := model.ServicePolicies.Delete(tx, p.ID); err != nil {
					return err
				}
			}
			return nil
		})
		synctest.Wait()
		if got := len(c.held()); got != had || had == 0 {
			t.Errorf("of %d sessions %d are left that another should remove", had, got)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if got := len(c.held()); got != 0 {
			t.Errorf("%d sessions are left that nobody removes", got)
		}
	})
}
