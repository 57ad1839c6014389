package fabric

import (
	"maps"
	"slices"
	"time"

	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/model"
)

// listen tells of what happens among routers.
func (t *talk) listen(from *herald.Listener, wake <-chan struct{}, want map[string]wanted) {
	dials := newDials(want[ofDials])
	defer dials.stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-dials.due():
			dials.tell(t)
		case <-wake:
		}
		for {
			e, missed, ok := from.Take()
			if missed > 0 {
				t.missed(missed)
			}
			if !ok {
				break
			}
			if done, is := e.Detail.(herald.Dial); is {
				dials.add(&e, done)
			} else {
				t.tellLive(&e, want)
			}
		}
	}
}

// missed tells how many events there were that are not told.
func (t *talk) missed(count uint64) {
	t.tell(wanted{namespace: "missed"}, t.s.Sessions.Now(), map[string]any{"event_type": "missed", "count": count})
}

func (t *talk) tellLive(e *herald.Event, want map[string]wanted) {
	switch e.Ref.Def {
	case model.Presences.Def:
		online := e.Verb == "connected"
		verb := map[bool]string{true: "router-online", false: "router-offline"}[online]
		t.tell(want[ofRouters], e.At, map[string]any{"event_type": verb, "router_id": e.Ref.ID, "router_online": online})
	case model.Links.Def:
		if l, ok := e.Record.(*model.Link); ok {
			verb := map[string]string{"up": "routerLinkNew"}[e.Verb]
			if verb == "" {
				verb = "fault"
			}
			conns := []map[string]string{}
			for _, c := range l.Conns {
				conns = append(conns, map[string]string{"id": c.Type, "local_addr": c.Source, "remote_addr": c.Dest})
			}
			t.tell(want[ofLinks], e.At, map[string]any{
				"event_type": verb, "link_id": l.ID, "src_router_id": l.SourceID, "dst_router_id": l.DestID, "protocol": l.Protocol,
				"dial_address": l.DialAddress, "cost": l.Cost, "connections": conns,
			})
		}
	case model.Circuits.Def:
		t.tell(want[ofCircuits], e.At, circuitEvent(e))
	case herald.Clients:
		t.tell(want[ofClients], e.At, map[string]any{"event_type": map[string]string{"online": "sdk-online", "offline": "sdk-offline", "unknown": "sdk-status-unknown"}[e.Verb], "identity_id": e.Ref.ID})
	}
	switch detail := e.Detail.(type) {
	case herald.Carried:
		t.tellUsage(want[ofUsage], e, detail)
	case herald.Connection:
		t.tellConnection(want[ofConnections], detail)
	case herald.Measured:
		t.tellFigures(want[ofFigures], detail.RouterID, detail.At, detail.Figures)
	case herald.Login:
		t.tellLogin(want[ofLogins], e.At, detail)
	}
}

// tellConnection tells who has connected to whom.
func (t *talk) tellConnection(want wanted, made herald.Connection) {
	kinds := map[string]string{herald.Identity: "identity", herald.Router: "router", herald.Controller: "ctrl"}
	t.tell(want, made.At, map[string]any{
		"src_type": kinds[made.From.Kind], "src_id": made.From.ID, "src_addr": made.From.Address,
		"dst_type": kinds[made.To.Kind], "dst_id": made.To.ID, "dst_addr": made.To.Address,
	})
}

// The words for what becomes of an attempt to authenticate.
const (
	loginSuccess = "success"
	loginFail    = "fail"
)

// tellLogin tells of an attempt to authenticate.
func (t *talk) tellLogin(want wanted, at time.Time, login herald.Login) {
	typ := loginSuccess
	if login.Reason != "" {
		typ = loginFail
	}
	if len(want.include) > 0 && !slices.Contains(want.include, typ) {
		return
	}
	t.tell(want, at, map[string]any{
		"event_type": typ, "type": login.Method, "authenticator_id": login.AuthenticatorID, "external_jwt_signer_id": login.SignerID, "identity_id": login.IdentityID,
		"auth_policy_id": login.PolicyID, "remote_address": login.Address, "success": typ == loginSuccess, "reason": login.Reason,
	})
}

// circuitEvent tells of a circuit, also of one that never was.
func circuitEvent(e *herald.Event) map[string]any {
	c, _ := e.Record.(*model.Circuit)
	if c == nil {
		c = &model.Circuit{IdentityID: e.By.ID}
	}
	event := map[string]any{
		"version": 2, "event_type": map[string]string{"created": "created", "ended": "deleted", "refused": "failed"}[e.Verb], "circuit_id": c.ID,
		"client_id": c.IdentityID, "service_id": c.ServiceID, "terminator_id": c.TerminatorID, "instance_id": "",
		"path":       map[string]any{"nodes": slices.Clone(c.Path), "links": slices.Clone(c.Links), "ingress_id": "", "egress_id": ""},
		"link_count": len(c.Links), "path_cost": c.Cost, "tags": map[string]string{"clientId": c.IdentityID, "hostId": c.HostID, "serviceId": c.ServiceID},
	}
	if took, is := e.Detail.(time.Duration); is {
		event["creation_timespan"] = took.Nanoseconds()
	}
	switch e.Verb {
	case "ended":
		event["duration"] = e.At.Sub(c.CreatedAt.Time()).Nanoseconds()
	case "refused":
		event["failure_cause"] = e.Reason
	}
	return event
}

// tellUsage tells what a circuit carried: in the second version one event for each
// direction.
func (t *talk) tellUsage(want wanted, e *herald.Event, carried herald.Carried) {
	event := func() map[string]any {
		return map[string]any{
			"version": want.version, "source_id": carried.RouterID, "circuit_id": e.Ref.ID, "interval_start_utc": carried.Start, "interval_length": carried.Length, "tags": carried.Tags,
		}
	}
	if want.version == 3 {
		all := event()
		all["usage"] = carried.Bytes
		t.tell(want, e.At, all)
		return
	}
	for _, direction := range slices.Sorted(maps.Keys(carried.Bytes)) {
		one := event()
		one["event_type"], one["usage"] = "usage."+direction, carried.Bytes[direction]
		t.tell(want, e.At, one)
	}
}
