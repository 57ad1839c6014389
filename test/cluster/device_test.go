package cluster_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/servertest"
)

// guarded makes a service for devices in a Windows domain, and somebody who may
// use it.
func guarded(t *testing.T, s *servertest.Server) (user servertest.User, service, check string) {
	t.Helper()
	admin, all := s.Admin(t), []string{"#all"}
	user = s.AddUser(t, false)
	service = admin.Post("services", M{"name": servertest.Unique("service"), "encryptionRequired": true}).Want(201).ID()
	check = admin.Post("posture-checks", M{"name": servertest.Unique("check"), "typeId": "DOMAIN", "domains": []string{"corp"}, "roleAttributes": []string{"guard"}}).Want(201).ID()
	admin.Post("edge-routers", M{"name": servertest.Unique("router")}).Want(201)
	admin.Post("edge-router-policies", M{"name": "a", "semantic": "AnyOf", "edgeRouterRoles": all, "identityRoles": all}).Want(201)
	admin.Post("service-edge-router-policies", M{"name": "b", "semantic": "AnyOf", "edgeRouterRoles": all, "serviceRoles": all}).Want(201)
	admin.Post("service-policies", M{
		"name": "c", "type": "Dial", "semantic": "AnyOf", "identityRoles": all, "serviceRoles": all, "postureCheckRoles": []string{"#guard"},
	}).Want(201)
	return user, service, check
}

// TestDevicesOfTwoControllers reports on a device to one controller: another one
// knows the same, so that it neither refuses nor takes away.
func TestDevicesOfTwoControllers(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a := servertest.Start(t, use)
	b := closing(t, second(t, a, use))
	user, service, check := guarded(t, a)
	here := a.Login(t, user.Username, user.Password)
	there := as(t, b, here)
	eventually(t, there, client+"services/"+service, http.StatusOK)
	here.Post(client+"posture-response", M{"id": check, "typeId": "DOMAIN", "domain": "corp"}).Want(201)
	session := here.Post(client+"sessions", M{"serviceId": service, "type": "Dial"}).Want(201).ID()
	eventually(t, there, client+"sessions/"+session, http.StatusOK)
	there.Post(client+"sessions", M{"serviceId": service, "type": "Dial"}).Want(201)

	// Something that has both look at the sessions of everybody.
	a.Admin(t).Post("service-policies", M{"name": "d", "type": "Bind", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}}).Want(201)
	for range 300 {
		here.Get(client + "sessions/" + session).Want(http.StatusOK)
		there.Get(client + "sessions/" + session).Want(http.StatusOK)
	}
	// Reports to both at once: none is lost.
	var reports sync.WaitGroup
	for i := range 8 {
		at := []*servertest.Client{here, there}[i%2]
		reports.Go(func() {
			at.Post(client+"posture-response", M{"id": fmt.Sprint("other", i), "typeId": "PROCESS", "path": "/a", "isRunning": true, "hash": "h"})
		})
	}
	reports.Wait()
	servertest.Eventually(t, 30*time.Second, "all reports at both", func() bool {
		known := func(s *servertest.Server) int {
			return len(as(t, s, a.Admin(t)).Get("identities/" + user.ID + "/posture-data").Want(200).Data()["processes"].([]any))
		}
		return known(a) == 8 && known(b) == 8
	})
	// What ends it at one ends it at both.
	there.Post(client+"posture-response", M{"id": check, "typeId": "DOMAIN", "domain": "home"}).Want(201)
	eventually(t, here, client+"sessions/"+session, http.StatusNotFound)
	here.Post(client+"sessions", M{"serviceId": service, "type": "Dial"}).Want(http.StatusConflict)
}

// TestDevicesAfterARestart restarts a controller: what devices have reported is
// known, and their sessions are there.
func TestDevicesAfterARestart(t *testing.T) {
	beside(t)
	dir := t.TempDir()
	open := func() *servertest.Server {
		t.Helper()
		s, err := servertest.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := open()
	user, service, check := guarded(t, before)
	c := before.Login(t, user.Username, user.Password)
	c.Post(client+"posture-response", M{"id": check, "typeId": "DOMAIN", "domain": "corp"}).Want(201)
	session := c.Post(client+"sessions", M{"serviceId": service, "type": "Dial"}).Want(201).ID()
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	after := closing(t, open())
	c = as(t, after, c)
	c.Get(client + "sessions/" + session).Want(http.StatusOK)
	c.Post(client+"sessions", M{"serviceId": service, "type": "Dial"}).Want(201)
}
