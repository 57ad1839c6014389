package api_test

import (
	"net/http"
	"strings"
	"testing"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

// walk calls every operation of both APIs. What needs an id gets one that
// does not exist, so that nothing changes that others need.
func walk(t *testing.T, c *servertest.Client, judge func(t *testing.T, access string, a *servertest.Answer)) {
	for _, root := range []string{api.ClientRoot, api.ManagementRoot} {
		operations := shared.Operations(root)
		if len(operations) < 8 {
			t.Errorf("%s has only %d operations", root, len(operations))
		}
		for name, op := range operations {
			t.Run(op.OperationID, func(t *testing.T) {
				method, path, _ := strings.Cut(name, " ")
				path = strings.NewReplacer("{", "no-", "}", "").Replace(path)
				var body any
				if op.RequestBody != nil {
					body = M{}
				}
				access, _ := op.Extensions["x-access"].(string)
				secured := op.Security != nil && len(*op.Security) > 0
				if secured != (access != "anonymous") {
					t.Errorf("access is %q, and the security %v", access, op.Security)
				}
				judge(t, access, c.For(t).Do(method, path, body))
			})
		}
	}
}

// TestAnonymous checks that nobody gets through where somebody is needed.
func TestAnonymous(t *testing.T) {
	walk(t, shared.Nobody(t), func(t *testing.T, access string, a *servertest.Answer) {
		switch {
		case access != "anonymous":
			a.Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
		case a.Status == http.StatusUnauthorized && a.At("error.code") == "UNAUTHORIZED":
			t.Errorf("an operation for everybody asks for a session: %s", a.Raw)
		}
	})
}

// TestNotAdmin checks that operations for admins are for admins.
func TestNotAdmin(t *testing.T) {
	user := shared.AddUser(t, false)
	walk(t, shared.Login(t, user.Username, user.Password), func(_ *testing.T, access string, a *servertest.Answer) {
		if access == "admin" {
			a.Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
		}
	})
}

// TestManagementIsForAdmins checks that no operation was opened by mistake.
func TestManagementIsForAdmins(t *testing.T) {
	open := map[string]bool{"informational": true, "authenticate": true, "current-api-session": true, "current-identity": true}
	for name, op := range shared.Operations(api.ManagementRoot) {
		if access := op.Extensions["x-access"]; access != "admin" && !open[op.Tags[0]] {
			t.Errorf("%s is for %v", name, access)
		}
	}
}
