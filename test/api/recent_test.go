package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"netkeep.internal/test/servertest"
)

// sum adds a figure over the steps of a day.
func sum(day M, name string) (all float64) {
	for _, step := range day["steps"].([]any) {
		all += step.(M)[name].(float64)
	}
	return all
}

// TestRecent logs in and fails to: the last day tells of both, in steps of any size that
// is offered.
func TestRecent(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	before := c.Get("recent").Want(http.StatusOK).Data()
	user := s.AddUser(t, false)
	s.Login(t, user.Username, user.Password)
	for range 3 {
		s.Nobody(t).Post("authenticate?method=password", M{"username": user.Username, "password": "not the password"}).Want(http.StatusUnauthorized)
	}
	after := c.Get("recent").Want(http.StatusOK).Data()
	if good, bad := sum(after, "logins")-sum(before, "logins"), sum(after, "loginsRefused")-sum(before, "loginsRefused"); good != 1 || bad != 3 {
		t.Errorf("%v logins were good and %v refused", good, bad)
	}
	if len(after["services"].([]any)) != 0 || sum(after, "bytes")+sum(after, "dials")+sum(after, "circuits")+sum(after, "slowestLink") != 0 {
		t.Errorf("a network without routers has a day of %v", after)
	}
	for _, step := range []int{1, 2, 5, 10, 15, 20, 30, 60} {
		day := c.Get(fmt.Sprintf("recent?step=%d", step)).Want(http.StatusOK).Data()
		if n := len(day["steps"].([]any)); n != 24*60/step || day["stepSeconds"] != float64(60*step) || sum(day, "loginsRefused") != 3 {
			t.Errorf("steps of %d minutes: %d of them, %v", step, n, day["stepSeconds"])
		}
	}
	for _, step := range []string{"0", "-1", "3", "7", "61", "1440", "99999999999999999999", "x", "1.5"} {
		c.Get("recent?step="+step).Fails(http.StatusBadRequest, "COULD_NOT_VALIDATE", "step")
	}
}
