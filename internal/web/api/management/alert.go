package management

import (
	"net/http"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/alert"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// receiverOut is somebody who is sent alerts. Of the URL only the host is shown: the rest
// of it lets whoever knows it send.
type receiverOut struct {
	Name        string     `json:"name" doc:"What settings call the receiver."`
	Host        string     `json:"host" doc:"Where alerts are sent."`
	Events      []string   `json:"events" doc:"Events of which it is sent alerts."`
	Delivered   int64      `json:"delivered" doc:"How many alerts it has taken."`
	DeliveredAt *time.Time `json:"deliveredAt" kind:"nullable" doc:"When it took the last one; null if it has taken none."`
	Dropped     int64      `json:"dropped" doc:"How many alerts were given up: too many at once, older than a day, or not understood."`
	FailedAt    *time.Time `json:"failedAt" kind:"nullable" doc:"When one was last not taken; null if all were."`
	Error       string     `json:"error" doc:"Why nothing can be sent at present; empty if it can."`
	Behind      int64      `json:"behind" doc:"How many entries of the audit log have yet to be looked at; those that wait are among them."`
}

// triedOut is what came of a test.
type triedOut struct {
	Name   string        `json:"name" doc:"What settings call the receiver."`
	Taken  bool          `json:"taken" doc:"Whether the receiver took the alert."`
	Answer string        `json:"answer" doc:"What the receiver said if it took it, 200 bytes at most."`
	Error  string        `json:"error" doc:"Why it did not; empty if it did."`
	Took   time.Duration `json:"took" doc:"How many nanoseconds it took."`
}

var receiverOutput = kind.NewOutput[receiverOut]()

// mountAlerts tells of those who are sent alerts.
func mountAlerts(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/alerts", Name: "listAlertReceivers", Tag: "informational",
		Doc:  "List those who are sent alerts as the settings of this controller say, with how it stands with each, whichever controller sends.",
		Auth: rest.Admin, Need: "alert:read", Entries: receiverOutput.Schema(),
	}, func(c *rest.Call, _ rest.None) (rest.List, error) {
		var all []receiverOut
		for _, r := range s.Alerts {
			all = append(all, receiverOf(c, r))
		}
		return rest.List{
			Page: filter.Page{Limit: int64(len(all))}, Total: int64(len(all)), Fields: []string{}, Len: len(all),
			Append: func(dst []byte, i int) []byte { return receiverOutput.Append(dst, &all[i]) },
		}, nil
	})
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/alerts/{id}/test", Name: "testAlertReceiver", Tag: "informational",
		Doc:  "Send a test alert from this controller to one of its receivers, by name, and tell what came of it.",
		Auth: rest.Admin, Need: "alert:test",
	}, func(c *rest.Call, _ rest.None) (triedOut, error) {
		for _, r := range s.Alerts {
			if r.Name == c.Param("id") {
				tried := r.Test(c.Context(), c.Author().Name)
				out := triedOut{Name: r.Name, Taken: tried.Err == nil, Answer: tried.Answer, Took: tried.Took}
				if tried.Err != nil {
					out.Error = tried.Err.Error()
				}
				return out, nil
			}
		}
		return triedOut{}, fault.NotFound("receiver of alerts", c.Param("id"))
	})
}

func receiverOf(c *rest.Call, r *alert.Receiver) receiverOut {
	out := receiverOut{Name: r.Name, Host: r.Host(), Events: r.On}
	if rec, ok := model.AlertReceivers.Get(c.Snap, r.ID); ok {
		out.Delivered, out.DeliveredAt, out.Dropped = rec.Delivered, rec.DeliveredAt, rec.Dropped
		out.FailedAt, out.Error, out.Behind = rec.FailedAt, rec.Error, max(0, audit.Head(c.Snap).Last-rec.Sent)
	}
	return out
}
