package fabric

import (
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// allow makes a policy by which identities may use routers, and returns its id.
func allow(t *testing.T, s *servertest.Server, identities, routers string) string {
	t.Helper()
	return s.Admin(t).Post(management+"edge-router-policies", M{
		"name": servertest.Unique("policy"), "semantic": "AnyOf", "identityRoles": []string{identities}, "edgeRouterRoles": []string{routers},
	}).Want(201).ID()
}

// TestReach tells a router of the sessions of those who may use it, as soon as
// that is so and for as long, whatever makes it so.
func TestReach(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin(t)
	user, other := s.AddUser(t, false), s.AddUser(t, false)
	r := addRouter(t, s)
	allow(t, s, "@"+other.ID, "@"+r.ID)
	id := login(t, s, user).Get(client + "current-api-session").Want(200).ID()
	c := r.Connect(t)
	knows := func(what string, want bool) {
		t.Helper()
		// A session of somebody else is told behind whatever there is to tell.
		marker := login(t, s, other).Get(client + "current-api-session").Want(200).ID()
		await(t, c, what, func(k scripted.Known) bool {
			_, last := k.Sessions[marker]
			_, has := k.Sessions[id]
			if last && has != want {
				t.Errorf("%s: it knows the session: %v", what, has)
			}
			return last
		})
	}
	knows("without a policy", false)

	policy := allow(t, s, "@"+user.ID, "@"+r.ID)
	knows("a policy gives the identity the router", true)
	admin.Delete(management + "edge-router-policies/" + policy).Want(200)
	knows("the policy is gone", false)

	allow(t, s, "#staff", "#near")
	admin.Patch(management+"edge-routers/"+r.ID, M{"roleAttributes": []string{"near"}}).Want(200)
	knows("the identity has no such attribute", false)
	admin.Patch(management+"identities/"+user.ID, M{"roleAttributes": []string{"staff"}}).Want(200)
	knows("the identity gets an attribute", true)
	admin.Patch(management+"edge-routers/"+r.ID, M{"roleAttributes": []string{}}).Want(200)
	knows("the router loses its attribute", false)
	admin.Patch(management+"edge-routers/"+r.ID, M{"roleAttributes": []string{"near"}}).Want(200)
	knows("the router has it again", true)
	admin.Patch(management+"identities/"+user.ID, M{"roleAttributes": []string{}}).Want(200)
	knows("the identity loses its attribute", false)

	second := allow(t, s, "@"+user.ID, "#all")
	c.Close()
	c = r.Connect(t)
	knows("it is told everything", true)
	third := allow(t, s, "#all", "@"+r.ID)
	admin.Delete(management + "edge-router-policies/" + second).Want(200)
	knows("another policy gives the same", true)
	admin.Delete(management + "edge-router-policies/" + third).Want(200)
	knows("the last of its policies is gone", false)
}

// TestReachOfMany lets more in at once than are told of one by one.
func TestReachOfMany(t *testing.T) {
	s := servertest.Start(t)
	user := s.AddUser(t, false)
	must(t, s.State().Update(t.Context(), state.Program("test"), func(tx *state.Tx) error {
		for range 1100 {
			i := model.Identities.New()
			i.Name, i.Type, i.RoleAttributes = servertest.Unique("one"), "Device", []string{"crowd"}
			if err := model.Identities.Create(tx, i); err != nil {
				return err
			}
		}
		return nil
	}))
	s.Admin(t).Patch(management+"identities/"+user.ID, M{"roleAttributes": []string{"crowd"}}).Want(200)
	id := login(t, s, user).Get(client + "current-api-session").Want(200).ID()
	r := addRouter(t, s)
	c := r.Connect(t)
	await(t, c, "all is told", func(k scripted.Known) bool { return k.Synced == 1 })
	policy := allow(t, s, "#crowd", "@"+r.ID)
	await(t, c, "the session is told", func(k scripted.Known) bool { _, has := k.Sessions[id]; return has && k.Synced == 2 })
	s.Admin(t).Delete(management + "edge-router-policies/" + policy).Want(200)
	await(t, c, "the session is gone", func(k scripted.Known) bool { _, has := k.Sessions[id]; return !has && k.Synced == 3 })
}
