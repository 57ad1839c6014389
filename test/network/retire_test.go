package network

import (
	"fmt"
	"strings"
	"testing"
)

// TestRetire has a router take itself out of use, back in, and out for good, as
// whoever looks after it does with the router's own tool.
func TestRetire(t *testing.T) {
	n := newNetwork(t)
	r := n.addRouter("r1")
	for _, step := range []struct{ verb, want string }{
		{"quiesce", "no new circuits end at the router"}, {"dequiesce", "circuits may end at the router again"}, {"decommission", "router decommissioned"},
	} {
		if out := n.ziti("agent", "router", step.verb, "-p", fmt.Sprint(r.cmd.Process.Pid)); !strings.Contains(out, step.want) {
			t.Fatalf("%s says:\n%s", step.verb, out)
		}
	}
	<-r.done
	if left := n.list("edge-routers"); len(left) > 0 {
		t.Errorf("after it was decommissioned there is %v", left)
	}
}
