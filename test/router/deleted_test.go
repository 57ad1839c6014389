package router

import (
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// TestDeleted has a router say at once that its controller does not know it any
// more, and what to do, also if it was shut out for a while before and came back
// only now.
func TestDeleted(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	p := enroll(t, s)
	admin.Patch(management+"edge-routers/"+p.id, M{"disabled": true}).Want(200)
	out, _ := p.run(t)
	servertest.Eventually(t, soon, "it has tried several times", func() bool {
		refused := 0
		for _, line := range s.Log() {
			if strings.Contains(line, "a router was not let in") {
				refused++
			}
		}
		return refused >= 4
	})
	admin.Patch(management+"edge-routers/"+p.id, M{"disabled": false}).Want(200)
	p.online(t, true)
	admin.Delete(management + "edge-routers/" + p.id).Want(200)
	servertest.Eventually(t, 3*time.Second, "the log says what has become of it", func() bool {
		return strings.Contains(out.String(), "does not know this router any more") && strings.Contains(out.String(), "netkeep reenroll edge-router")
	})
}
