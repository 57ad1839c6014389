package api

import (
	"netkeep/internal/data/state/cow"
	"netkeep/internal/fabric/edge"
	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
	"netkeep/internal/web/rest"
)

// Schemas of what is said of routers.
var (
	TextMap       = kind.Schema{"type": "object", "additionalProperties": Text}
	versionOutput = kind.NewOutput[edge.Version]()
)

// RouterColumns are what answers show of an edge router because of its
// connection.
func RouterColumns(s *Service) []rest.Derived {
	column := func(name string, schema kind.Schema, show func(dst []byte, r *edge.Router, online bool) []byte) rest.Derived {
		return rest.Derived{Name: name, Schema: schema, Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
			r, online := s.Routers.Connected(rec.Base().ID)
			return show(dst, &r, online)
		}}
	}
	return []rest.Derived{
		column("hostname", Text, func(dst []byte, r *edge.Router, _ bool) []byte { return kind.AppendText(dst, r.Hostname) }),
		column("isOnline", Boolean, func(dst []byte, _ *edge.Router, online bool) []byte { return kind.AppendAny(dst, online) }),
		column("syncStatus", Text, func(dst []byte, r *edge.Router, online bool) []byte {
			return kind.AppendText(dst, string(syncStatus(r, online)))
		}),
		column("supportedProtocols", TextMap, func(dst []byte, r *edge.Router, _ bool) []byte {
			return kind.AppendAny(dst, r.Listeners)
		}),
		column("versionInfo", versionOutput.Schema(), func(dst []byte, r *edge.Router, _ bool) []byte {
			return versionOutput.Append(dst, &r.Version)
		}),
	}
}

func syncStatus(r *edge.Router, online bool) edge.SyncStatus {
	if !online || r.Sync == "" {
		return edge.SyncUnknown
	}
	return r.Sync
}

// sessionRouter is an edge router through which a session may be used. Older
// clients look for its addresses in urls.
type sessionRouter struct {
	Name               string            `json:"name"`
	Hostname           string            `json:"hostname"`
	IsOnline           bool              `json:"isOnline"`
	SyncStatus         string            `json:"syncStatus"`
	SupportedProtocols map[string]string `json:"supportedProtocols"`
	URLs               map[string]string `json:"urls"`
	Cost               int               `json:"cost"`
	NoTraversal        bool              `json:"noTraversal"`
	Disabled           bool              `json:"disabled"`
}

var sessionRouterOutput = kind.NewOutput[sessionRouter]()

// appendSessionRouters adds the edge routers of a set.
func (s *Service) appendSessionRouters(dst []byte, c *rest.Call, set *cow.Bitmap) []byte {
	dst = append(dst, '[')
	for rec := range c.Snap.Within(model.EdgeRouters.Def, set) {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		e := rec.(*model.EdgeRouter)
		r, online := s.Routers.Connected(e.ID)
		dst = sessionRouterOutput.Append(dst, &sessionRouter{
			Name: e.Name, Hostname: r.Hostname, IsOnline: online, SyncStatus: string(syncStatus(&r, online)),
			SupportedProtocols: r.Listeners, URLs: r.Listeners, Cost: e.Cost, NoTraversal: e.NoTraversal, Disabled: e.Disabled,
		})
	}
	return append(dst, ']')
}
