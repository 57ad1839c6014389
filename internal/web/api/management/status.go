package management

import (
	"net/http"
	"slices"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/policy/validity"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// statusOut is how a controller is, on one screen.
type statusOut struct {
	Version      string           `json:"version" doc:"Version of the controller."`
	Revision     string           `json:"revision" doc:"Commit that it was built from."`
	StartedAt    time.Time        `json:"startedAt" doc:"When it was started."`
	Uptime       int64            `json:"uptimeSeconds" doc:"For how many seconds it has been running."`
	Health       string           `json:"health" kind:"enum=ok|warning|unavailable" doc:"What all checks together say."`
	Checks       []checkOut       `json:"checks" doc:"What it takes to serve, and whether it is so."`
	Store        storeOut         `json:"store" doc:"Where records are kept."`
	Certificates []certificateOut `json:"certificates" doc:"Certificates of the controller."`
	Counts       countedOut       `json:"counts" doc:"How many there are of what people decide on."`
	Routers      routersOut       `json:"routers" doc:"The routers of the network."`
	Fabric       fabricOut        `json:"fabric" doc:"What the routers that are connected to this controller make between them."`
	Sessions     sessionsOut      `json:"sessions" doc:"Who is there."`
	TokensEnding []endingTokenOut `json:"tokensEnding" doc:"Tokens of machines that end within two weeks, the next to end first; ten of them at most."`
	LastSnapshot *snapshotEntry   `json:"lastSnapshot" doc:"The latest copy of the store on the controller's disk; null if there is none."`
}

type checkOut struct {
	Name    string `json:"name" doc:"What is looked at."`
	OK      bool   `json:"ok" doc:"Whether it is as it should be."`
	Warning bool   `json:"warning" doc:"Whether the controller can serve although it is not."`
	Reason  string `json:"reason" kind:"nullable" doc:"What is wrong; null if nothing is."`
}

type storeOut struct {
	Revision int64 `json:"revision" doc:"Revision of the store that the controller's memory has."`
	Size     int64 `json:"sizeBytes" kind:"nullable" doc:"How large the store is; null if it is not inside of this controller."`
	DiskFree int64 `json:"diskFreeBytes" kind:"nullable" doc:"Space that is left on the disk of the data directory, at least 1; null if nobody can tell."`
}

// sizeOf is a size, and 0 alone if it is not known.
func sizeOf(known func() (int64, bool)) int64 {
	if n, ok := known(); ok {
		return max(1, n)
	}
	return 0
}

type certificateOut struct {
	Name     string    `json:"name" doc:"Which certificate: root, intermediate or server."`
	Subject  string    `json:"subject" doc:"Whom it is made out to."`
	NotAfter time.Time `json:"notAfter" doc:"When it expires."`
	DaysLeft int       `json:"daysLeft" doc:"How many whole days are left until then; negative once it has."`
}

type countedOut struct {
	Identities      int `json:"identities" doc:"How many identities there are."`
	Services        int `json:"services" doc:"How many services there are."`
	ServicePolicies int `json:"servicePolicies" doc:"How many service policies there are."`
	Configs         int `json:"configs" doc:"How many configs there are."`
	PostureChecks   int `json:"postureChecks" doc:"How many posture checks there are."`
	Terminators     int `json:"terminators" doc:"How many terminators there are."`
	Enrollments     int `json:"enrollments" doc:"How many outstanding enrollments there are."`
	Ending          int `json:"endingWithinDay" doc:"How many policies and grants that count end by themselves within a day."`
}

type routersOut struct {
	Total  int `json:"total" doc:"How many routers there are, edge routers among them."`
	Online int `json:"online" doc:"How many of them are connected to this controller."`
}

type fabricOut struct {
	Links    int `json:"links" doc:"How many links between routers there are."`
	Circuits int `json:"circuits" doc:"How many circuits there are."`
}

type endingTokenOut struct {
	Name      string    `json:"name" doc:"What people call the token."`
	ExpiresAt time.Time `json:"expiresAt" doc:"When it ends."`
}

// maxEnding is how many tokens are named that end soon.
const maxEnding = 10

// tokensEnding are the tokens that end soon, the next first.
func tokensEnding(snap kind.Reader, now time.Time) []endingTokenOut {
	list := []endingTokenOut{}
	for t := range model.Tokens.All(snap) {
		if t.Ending(now) {
			list = append(list, endingTokenOut{t.Name, t.ExpiresAt})
		}
	}
	slices.SortFunc(list, func(a, b endingTokenOut) int { return a.ExpiresAt.Compare(b.ExpiresAt) })
	return list[:min(len(list), maxEnding)]
}

type sessionsOut struct {
	API      int `json:"apiSessions" doc:"How many API sessions there are."`
	Services int `json:"sessions" doc:"How many sessions to dial or host a service there are."`
}

// mountStatus offers to tell how the controller is.
func mountStatus(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/status", Name: "detailStatus", Tag: "informational",
		Doc: "Tell how this controller is: health, store, certificates, routers, sessions and the last snapshot.", Auth: rest.Admin, Need: "status:read",
	}, func(c *rest.Call, _ rest.None) (statusOut, error) { return statusOf(c, s), nil })
}

func statusOf(c *rest.Call, s *api.Service) statusOut {
	n, now, info, health := c.Snap.Len, s.Sessions.Now(), build.Read(), s.Health.Answer()
	out := statusOut{
		Version: info.Version, Revision: info.Revision, StartedAt: s.Started, Uptime: int64(now.Sub(s.Started).Seconds()),
		Health: health.Status,
		Store:  storeOut{Revision: int64(c.Snap.Rev), Size: sizeOf(s.StoreSize), DiskFree: sizeOf(s.DiskFree)},
		Counts: countedOut{
			Identities: n(model.Identities.Def), Services: n(model.Services.Def), ServicePolicies: n(model.ServicePolicies.Def),
			Configs: n(model.Configs.Def), PostureChecks: n(model.PostureChecks.Def), Terminators: n(model.Terminators.Def),
			Enrollments: n(model.Enrollments.Def),
		},
		Routers:  routersOut{Total: n(model.Routers.Def)},
		Sessions: sessionsOut{n(model.APISessions.Def), n(model.Sessions.Def)},

		TokensEnding: tokensEnding(c.Snap, now),
	}
	for _, d := range validity.Kinds {
		out.Counts.Ending += validity.Ending(c.Snap, d, now.Add(24*time.Hour))
	}
	out.Fabric.Links, out.Fabric.Circuits = s.Fabric.Len(model.Links.Def), s.Fabric.Len(model.Circuits.Def)
	for _, check := range health.Checks {
		out.Checks = append(out.Checks, checkOut{check.Name, check.OK, check.Warning, check.Reason})
	}
	for _, item := range s.Certificates() {
		left := int(item.NotAfter.Sub(now) / (24 * time.Hour))
		if now.After(item.NotAfter) {
			left-- // the day that has begun is over
		}
		out.Certificates = append(out.Certificates, certificateOut{item.Name, item.Subject, item.NotAfter, left})
	}
	for router := range model.Routers.All(c.Snap) {
		if _, online := s.Routers.Connected(router.ID); online {
			out.Routers.Online++
		}
	}
	if last, ok := s.Snapshots.Last(); ok {
		entry := snapshotEntryOf(last)
		out.LastSnapshot = &entry
	}
	return out
}
