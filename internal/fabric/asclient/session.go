package asclient

import (
	"context"
	"log/slog"
	"strings"

	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// maxConfigTypes is how many config types a router may name.
const maxConfigTypes = 256

// onBegin answers a router that would be a client. It ends if nobody answers,
// and also if it is refused: one that may not be a client gets an answer that
// opens nothing, so that it goes on as a router.
func (t *Tunnels) onBegin(r *control.Router, f *wire.Frame, m *message.CreateTunnelSession) {
	t.work(r, f, func(ctx context.Context) (*wire.Frame, error) {
		if len(m.ConfigTypes) > maxConfigTypes {
			return nil, permit.Refuse(message.CodeInternal, "the router asks for too many config types")
		}
		t.peer(r).said.Store(&Said{
			ConfigTypes: m.ConfigTypes,
			Env: &model.EnvInfo{
				Arch: brief(m.Env.Arch), OS: brief(m.Env.OS), OSRelease: brief(m.Env.OSRelease), OSVersion: brief(m.Env.OSVersion),
				Hostname: brief(m.Env.Hostname), Domain: brief(m.Env.Domain),
			},
			SDK: &model.SDKInfo{
				AppID: brief(m.SDK.AppID), AppVersion: brief(m.SDK.AppVersion), Branch: brief(m.SDK.Branch),
				Revision: brief(m.SDK.Revision), Type: brief(m.SDK.Type), Version: brief(m.SDK.Version),
			},
		})
		who, err := t.enter(ctx, r, r.Author("createTunnelSession", f))
		if refused, ok := permit.AsRefusal(err); ok {
			r.Say(slog.LevelWarn, "a router that may not be a client has a tunnel listener", "name", r.Name, "reason", refused.Text)
			return control.Message(message.TypeTunnelSessionCreated, powerless(r)), nil
		}
		if err != nil {
			return nil, err
		}
		answer := describe(who)
		t.peer(r).knows.Store(&answer.ID)
		return control.Message(message.TypeTunnelSessionCreated, answer), nil
	})
}

// powerless is an API session that is none.
func powerless(r *control.Router) *message.TunnelSession {
	const none = "not-a-client"
	return &message.TunnelSession{ID: none, Token: none, RefreshSeconds: 60, IdentityID: r.ID, IdentityName: r.Name, AppData: "{}"}
}

// maxSaid is how much is kept of one thing that a router says of itself.
const maxSaid = 256

// brief is the beginning of a text, which is kept.
func brief(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxSaid)], "") }

// news is what a router is told of its API session along with something else:
// only what it has not been told yet.
func (t *Tunnels) news(r *control.Router, who Client) *message.TunnelSession {
	id := who.Session().ID
	if known := t.peer(r).knows.Swap(&id); known != nil && *known == id {
		return nil
	}
	return describe(who)
}

// describe is a router's API session and what it should know of its identity.
func describe(who Client) *message.TunnelSession {
	i := who.Identity()
	s := &message.TunnelSession{
		ID: who.Session().ID, Token: who.Token(), RefreshSeconds: uint32(who.Lasts().Seconds() / 2),
		IdentityID: i.ID, IdentityName: i.Name, AppData: string(i.AppData),
		DefaultPrecedence: message.PrecedenceOf(i.DefaultHostingPrecedence), DefaultCost: uint32(i.DefaultHostingCost),
		Precedences: map[string]message.Precedence{}, Costs: map[string]uint32{},
	}
	for service, p := range i.ServiceHostingPrecedences {
		s.Precedences[service] = message.PrecedenceOf(p)
	}
	for service, cost := range i.ServiceHostingCosts {
		s.Costs[service] = uint32(cost)
	}
	return s
}
