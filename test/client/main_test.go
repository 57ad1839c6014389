// Package client_test uses the network as its clients do: it lists services,
// asks for sessions, reports on devices, and looks at what is taken away when
// something changes.
package client_test

import (
	"testing"
	"time"

	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

type M = servertest.M

var shared *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, &shared) }

const root = "/edge/client/v1/"

// soon is how long what happens by itself may take.
const soon = time.Minute

// scene is a person with a role attribute of its own, and an admin who changes
// what that person may do.
type scene struct {
	*testing.T
	admin *servertest.Client
	me    *servertest.Client
	user  servertest.User
	role  string // #attribute that everything in the scene shares
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, admin: shared.Admin(t), user: shared.AddUser(t, false), role: servertest.Unique("scene")}
	s.admin.Patch("identities/"+s.user.ID, M{"roleAttributes": []string{s.role}}).Want(200)
	s.me = s.login()
	return s
}

// login opens another API session of the person.
func (s *scene) login(configTypes ...string) *servertest.Client {
	s.Helper()
	c := shared.Nobody(s.T)
	body := M{"username": s.user.Username, "password": s.user.Password, "configTypes": configTypes}
	c.Token = c.Post(root+"authenticate?method=password", body).Want(200).Data()["token"].(string)
	return c
}

// add creates a record with a name of its own and returns its id.
func (s *scene) add(path string, body M) string {
	s.Helper()
	if body["name"] == nil {
		body["name"] = servertest.Unique(path)
	}
	return s.admin.Post(path, body).Want(201).ID()
}

func (s *scene) service(more ...M) string {
	s.Helper()
	body := M{"encryptionRequired": true, "roleAttributes": []string{s.role}}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	return s.add("services", body)
}

// policy gives the person every service of the scene, or those of the roles.
func (s *scene) policy(typ string, more ...M) string {
	s.Helper()
	body := M{"type": typ, "semantic": "AnyOf", "identityRoles": []string{"#" + s.role}, "serviceRoles": []string{"#" + s.role}}
	for _, m := range more {
		for k, v := range m {
			body[k] = v
		}
	}
	return s.add("service-policies", body)
}

// routers lets the person use every service of the scene through one router.
func (s *scene) routers() (router string) {
	s.Helper()
	router = s.add("edge-routers", M{"roleAttributes": []string{s.role}})
	mine := []string{"#" + s.role}
	s.add("edge-router-policies", M{"semantic": "AnyOf", "edgeRouterRoles": mine, "identityRoles": mine})
	s.add("service-edge-router-policies", M{"semantic": "AnyOf", "edgeRouterRoles": mine, "serviceRoles": mine})
	return router
}

// dial asks for a session.
func (s *scene) dial(service string) *servertest.Answer {
	s.Helper()
	return s.me.Post(root+"sessions", M{"serviceId": service, "type": "Dial"})
}

// removed waits until an admin no longer finds a session.
func (s *scene) removed(session, why string) {
	s.Helper()
	servertest.Eventually(s.T, soon, why, func() bool { return s.admin.Get("sessions/"+session).Status == 404 })
}

// updated returns the time that tells clients to look again.
func (s *scene) updated() any {
	s.Helper()
	return s.me.Get(root + "current-api-session/service-updates").Want(200).Data()["lastChangeAt"]
}

// ids are those of a list.
func ids(list []M) []string {
	out := []string{}
	for _, e := range list {
		out = append(out, e["id"].(string))
	}
	return out
}

// connect enrolls a router and has it connect; clients reach it at a host.
func connect(t *testing.T, id, host string) *scripted.Router {
	t.Helper()
	return shared.EnrollRouter(t, id).Connect(t, func(o *scripted.Options) { o.Grouped, o.Edge = true, host+":3022" })
}
