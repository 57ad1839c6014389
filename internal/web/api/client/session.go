package client

import (
	"net/http"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/grant"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// sessionIn asks for a session.
type sessionIn struct {
	ServiceID string    `json:"serviceId" kind:"required" doc:"Id of the service to dial or host."`
	Type      string    `json:"type" kind:"enum=Dial|Bind,default=Dial" doc:"What for: Dial is to use the service, Bind to host it; Dial if not given."`
	Tags      kind.Tags `json:"tags" doc:"Marks of your own by name, each a text, a boolean or null."`
}

// mountSessions offers the caller's own sessions to dial and host.
func mountSessions(a *rest.API, s *api.Service) {
	op := func(method, path, name, doc string) rest.Op {
		return rest.Op{Method: method, Path: "/sessions" + path, Name: name, Tag: "sessions", Doc: doc, Auth: rest.Full}
	}
	view := a.View("session", model.Sessions.Def, api.SessionColumns(s)...)
	view.Ask(api.SessionTokens(s))
	rest.ShowList(a, op(http.MethodGet, "", "listSessions", "List one's own sessions."), view,
		func(c *rest.Call) (rest.Records, error) { return ownSessions(s, c), nil })
	rest.Show(a, op(http.MethodGet, "/{id}", "detailSession", "Get one of one's own sessions."), view,
		func(c *rest.Call, _ rest.None) (kind.Record, error) { return ownSession(s, c) })
	rest.Handle(a, op(http.MethodDelete, "/{id}", "deleteSession", "Give one of one's own sessions back."),
		func(c *rest.Call, _ rest.None) (rest.Empty, error) {
			own, err := ownSession(s, c)
			if err != nil {
				return rest.Empty{}, err
			}
			return rest.Empty{}, c.State.Delete(c.Context(), c.Author(), model.Sessions.Def, own.ID)
		})
	create := op(http.MethodPost, "", "createSession", "Get the permission to dial or host a service.")
	create.Status = http.StatusCreated
	rest.Show(a, create, view, func(c *rest.Call, in sessionIn) (kind.Record, error) {
		made, err := s.Grants.Create(c.Context(), c.Author(), api.Caller(c), grant.Request{ServiceID: in.ServiceID, Type: in.Type, Tags: in.Tags})
		c.Snap = c.Latest() // it shows what was made
		api.NoteSession(s.Recorder, c.Snap, c.Author(), in.ServiceID, in.Type, err)
		return made, err
	})
}

// ownSessions yields the caller's sessions, from whichever API session. One
// that has lost what it rests on is as good as removed.
func ownSessions(s *api.Service, c *rest.Call) rest.Records {
	return func(yield func(kind.Record) bool) {
		for own := range model.Sessions.Select(c.Snap, "identityId", api.Caller(c).Identity().ID) {
			if s.Grants.Live(c.Snap, own) && !yield(own) {
				return
			}
		}
	}
}

func ownSession(s *api.Service, c *rest.Call) (*model.Session, error) {
	id := c.Param("id")
	own, ok := model.Sessions.Get(c.Snap, id)
	if !ok || own.IdentityID != api.Caller(c).Identity().ID || !s.Grants.Live(c.Snap, own) {
		return nil, fault.NotFound("session", id)
	}
	return own, nil
}

// updatesOut says when what the caller sees last changed.
type updatesOut struct {
	LastChangeAt string `json:"lastChangeAt" doc:"When the services of the caller, or how it may use them, last changed."`
}

func mountUpdates(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/current-api-session/service-updates", Name: "listServiceUpdates", Tag: "current-api-session",
		Doc: "Get a time that is another one whenever the caller's services have changed.", Auth: rest.Full, Polled: true,
	}, func(c *rest.Call, _ rest.None) (updatesOut, error) {
		who := api.Caller(c)
		return updatesOut{lastChange(s, c.Snap, who.Identity().ID, who.Session().CreatedAt.Time())}, nil
	})
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/current-api-session/service-updates/stream", Name: "streamServiceUpdates", Tag: "current-api-session",
		Doc:  "Be told that time at once, and again whenever it is another one: as server-sent events, until the session ends.",
		Auth: rest.Full, Polled: true, Params: []rest.Parameter{rest.LastEvent},
	}, func(c *rest.Call, _ rest.None) (rest.Stream, error) {
		who := api.Caller(c)
		id, begun, told := who.Identity().ID, who.Session().CreatedAt.Time(), rest.LastEvent.Of(c)
		watcher, st := s.Grants.Changes.Watch(id), c.State
		return rest.Stream{Wake: watcher.C, Over: watcher.Close, Take: func(dst []byte) ([]byte, error) {
			last := lastChange(s, st.Snapshot(), id, begun)
			if last == told {
				return dst, nil
			}
			told = last
			return rest.AppendEvent(dst, "service-updates", last, func(dst []byte) []byte {
				return append(kind.AppendText(append(dst, `{"lastChangeAt":`...), last), '}')
			}), nil
		}}, nil
	})
}

// lastChange is when what a caller sees last changed, which is not before its
// session began.
func lastChange(s *api.Service, snap *state.Snapshot, identityID string, begun time.Time) string {
	last := s.Grants.Changes.Of(snap, identityID)
	if begun.After(last) {
		last = begun
	}
	return last.Format(time.RFC3339Nano)
}
