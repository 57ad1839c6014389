package api

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/web/rest"
)

// RouterColumns are what answers show of an edge router because of its
// connection: all that its presence says but where other routers reach it and what its machine
// has, which is nothing for clients.
func RouterColumns(s *Service) (columns []rest.Derived) {
	for _, f := range model.Presences.Fields {
		if !f.Hidden && f.Name != "listenerAddresses" && f.Name != "interfaces" && !slices.ContainsFunc(model.EdgeRouters.Fields, func(own *kind.Field) bool { return own.Name == f.Name }) {
			columns = append(columns, PresenceColumn(s, f.Name))
		}
	}
	return columns
}

// PresenceColumn shows a field of a router's presence in an answer about the
// router.
func PresenceColumn(s *Service, name string) rest.Derived {
	columns := model.All.Columns(model.Presences.Def)
	col := columns[slices.IndexFunc(columns, func(c kind.Column) bool { return c.Name == name })]
	return rest.Derived{Name: name, Schema: col.Schema, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
		if c.Past() { // which has none
			return col.Append(dst, c.Snap, model.PresenceOf(c.Snap, rec.Base().ID))
		}
		return col.Append(dst, c.Snap, model.PresenceOf(s.Fabric, rec.Base().ID))
	}}
}

// sessionRouter is an edge router through which a session may be used. Older
// clients look for its addresses in urls.
type sessionRouter struct {
	Name               string            `json:"name" doc:"What people call the router."`
	Hostname           string            `json:"hostname" doc:"Name of the machine that the router runs on; empty while it is not connected."`
	IsOnline           bool              `json:"isOnline" doc:"Whether the router is connected to the controller."`
	SyncStatus         string            `json:"syncStatus" doc:"Whether the router knows all that it needs to know: SYNC_DONE if so, SYNC_UNKNOWN while it is not connected."`
	SupportedProtocols map[string]string `json:"supportedProtocols" doc:"Where clients reach the router, by protocol, such as tls; empty while it is not connected."`
	URLs               map[string]string `json:"urls" doc:"The same under the name that older clients know."`
	Cost               int               `json:"cost" doc:"What it costs to send traffic through the router, compared with other ways."`
	NoTraversal        bool              `json:"noTraversal" doc:"Whether the router carries only traffic that enters or leaves the network at it."`
	Disabled           bool              `json:"disabled" doc:"Whether the router is shut out of the network."`
	AppData            jsontext.Value    `json:"appData" doc:"What applications keep with the router; the controller gives it no meaning."`
}

var sessionRouterOutput = kind.NewOutput[sessionRouter]()

// appendSessionRouters adds the edge routers of a set.
func (s *Service) appendSessionRouters(dst []byte, c *rest.Call, set *cow.Bitmap) []byte {
	dst = append(dst, '[')
	for _, r := range s.sessionRouters(c, set) {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = sessionRouterOutput.Append(dst, &r)
	}
	return append(dst, ']')
}

// sessionRouters are the edge routers of a set.
func (s *Service) sessionRouters(c *rest.Call, set *cow.Bitmap) []sessionRouter {
	routers := []sessionRouter{}
	others := s.stays(c.Snap, set)
	for rec := range c.Snap.Within(model.EdgeRouters.Def, set) {
		e := rec.(*model.EdgeRouter)
		r := model.PresenceOf(s.Fabric, e.ID)
		if others && model.Leaving(c.Snap, e.ID) {
			continue
		}
		routers = append(routers, sessionRouter{
			Name: e.Name, Hostname: r.Hostname, IsOnline: r.Online, SyncStatus: r.Sync,
			SupportedProtocols: r.Listeners, URLs: r.Listeners, Cost: e.Cost, NoTraversal: e.NoTraversal, Disabled: e.Disabled,
			AppData: e.AppData,
		})
	}
	return routers
}

// stays reports whether a router of a set is online that has not asked to be left
// alone: then nobody is sent to those that have. Who is connected there goes on.
func (s *Service) stays(snap *state.Snapshot, set *cow.Bitmap) bool {
	for rec := range snap.Within(model.EdgeRouters.Def, set) {
		id := rec.Base().ID
		if _, online := s.Routers.Connected(id); online && !model.Leaving(snap, id) {
			return true
		}
	}
	return false
}

// ServiceRouters is the edge routers through which the caller may use a
// service.
type ServiceRouters struct {
	EdgeRouters []sessionRouter `json:"edgeRouters" doc:"The edge routers through which the caller may use the service."`
}

// RoutersOf returns the edge routers through which the caller may use a
// service.
func (s *Service) RoutersOf(c *rest.Call, serviceID string) ServiceRouters {
	return ServiceRouters{s.sessionRouters(c, access.CommonRouters(c.Snap, Caller(c).Identity().ID, serviceID))}
}
