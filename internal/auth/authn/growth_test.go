package authn

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// Sessions and what hangs on them only ever grew in number, of clients that log in
// again and never log out: here a week of them leaves nothing behind. So it was with
// openziti/ziti 3673.
func TestZiti3673(t *testing.T) { growth(t) }

// The database of a CA kept what had expired for ever: a certificate of a session goes
// with it, however long it would be good for. So it was with smallstep/certificates 473.
func TestSmallstep473(t *testing.T) { growth(t) }

func growth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stop := run(func(ctx context.Context) { w.Sweep(ctx, time.Minute) })
		const perHour, week = 6, 7 * 24
		counts := func() (sessions, certificates int) {
			snap := w.State.Snapshot()
			for range model.APISessions.All(snap) {
				sessions++
			}
			for range model.SessionCertificates.All(snap) {
				certificates++
			}
			return sessions, certificates
		}
		for hour := range week {
			for i := range perHour {
				who := w.open(t)
				err := w.State.UpdateSessions(t.Context(), state.Program("test"), func(tx *state.Tx) error {
					for _, c := range []string{"a", "b"} {
						rec := &model.SessionCertificate{
							APISessionID: who.Session().ID, Fingerprint: fmt.Sprint(hour, i, c), ValidFrom: time.Now(), ValidTo: time.Now().AddDate(1, 0, 0),
						}
						if err := model.SessionCertificates.Create(tx, rec); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour / perHour)
			}
			// What lives for half an hour, and until another controller could have spoken for it.
			if sessions, certificates := counts(); sessions > perHour || certificates > 2*perHour {
				t.Fatalf("after %d hours there are %d sessions with %d certificates", hour+1, sessions, certificates)
			}
		}
		time.Sleep(2 * w.Timeout)
		synctest.Wait()
		if sessions, certificates := counts(); sessions+certificates != 0 {
			t.Errorf("%d sessions and %d certificates are left", sessions, certificates)
		}
		kept := 0
		w.active.Range(func(any, any) bool { kept++; return true })
		if kept != 0 {
			t.Errorf("what %d sessions did is kept", kept)
		}
		stop()
	})
}
