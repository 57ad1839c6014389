package console

import (
	"net/http"
	"testing"

	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/servertest"
)

// TestDay has the overview tell what happened: logins, dials, and what was carried.
func TestDay(t *testing.T) {
	s := servertest.Start(t)
	b := admin(t, s)
	b.get("/console/").is(http.StatusOK).lacks(t, "The last day", "since it started", `aria-label="Logins in the last day: `, "Slowest link: none now")
	open(t, s).login("nobody-like-it", "not the password").is(http.StatusUnauthorized)
	st := setStage(t, s)
	st.tell(0, message.Metrics{Usage: []message.Usage{{Buckets: map[string]message.CircuitUsage{st.circuit: {Bytes: map[string]uint64{"ingress.rx": 2_500_000}}}}}})
	a := b.get("/console/").is(http.StatusOK)
	a.lacks(t, "1 refused", "Carried most", st.service, "2.5 MB", "Slowest link: 300 ms now", "Slowest links now", "Dials in the last day: 1", "Circuits: 1 now")
	day := s.Admin(t).Get("recent?step=60").Want(http.StatusOK)
	steps := day.Data()["steps"].([]any)
	if last := steps[len(steps)-1].(M); len(steps) != 24 || last["bytes"] != 2.5e6 && steps[22].(M)["bytes"] != 2.5e6 {
		t.Errorf("the day is %v", steps)
	}
}
