package cluster_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/servertest"
)

// TestDeadline has the time of requests end while the store has their writes, and
// before it has: what was stored is never called refused, whatever the operation,
// and what is called refused was not stored.
func TestDeadline(t *testing.T) {
	beside(t)
	const short = 500 * time.Millisecond
	etcd := etcdtest.Start(t)
	line := etcd.NewLine(t)
	a := servertest.Start(t, func(c *config.Config) { etcd.Settings(c) })
	sound := a.Admin(t)
	hasty := as(t, stopping(t, second(t, a, func(c *config.Config) {
		etcd.Settings(c, line)
		c.Timeouts.Request = short
	})), sound)
	eventually(t, hasty, "identities", http.StatusOK)
	hasty.Outage = true

	service := func(name string) M { return M{"name": name, "encryptionRequired": true} }
	old := sound.Post("services", service("old")).Want(http.StatusCreated).At("data.id").(string)
	eventually(t, hasty, "services/"+old, http.StatusOK)
	calls := map[string]func(name string) *servertest.Answer{
		"post": func(name string) *servertest.Answer { return hasty.Post("services", service(name)) },
		"list": func(name string) *servertest.Answer {
			return hasty.Post("changes", M{"changes": []M{{"op": "create", "kind": "service", "body": service(name)}}})
		},
		"patch": func(name string) *servertest.Answer { return hasty.Patch("services/"+old, M{"name": name}) },
	}
	said := map[string]*servertest.Answer{}
	for what, call := range calls {
		line.Cut()                                     // what is written now is not stored within the time of a request
		first, second := what+" first", what+" second" // which has to wait for its turn
		answers := map[string]chan *servertest.Answer{first: make(chan *servertest.Answer, 1), second: make(chan *servertest.Answer, 1)}
		for _, name := range []string{first, second} {
			go func() { answers[name] <- call(name) }()
			select { // whatever is answered now does not wait for the store
			case said[name] = <-answers[name]:
			case <-time.After(2 * short):
			}
		}
		line.Mend()
		for name, answer := range answers {
			if said[name] == nil {
				said[name] = <-answer
			}
		}
	}
	// Who has written has in memory what was written before.
	sound.Post("services", service("last")).Want(http.StatusCreated)
	renamed := sound.Get("services/" + old).At("data.name")
	for name, answer := range said {
		made := sound.Get("services?filter="+url.QueryEscape(fmt.Sprintf("name=%q", name))).Total() == 1
		if name == "patch first" && renamed == "patch second" {
			made = true
		}
		open := strings.Contains(string(answer.Raw), "it is not known whether") // if the machine stood still
		if (answer.Status/100 == 2) != made && !open {
			t.Errorf("%s is answered %d, and it was made: %t\n%s", name, answer.Status, made, answer.Raw)
		}
	}
}
