package circuit

import (
	"context"
	"encoding/json"
	"time"

	"netkeep/internal/fabric/control"
	"netkeep/internal/fabric/message"
)

// learnWait is how long a router has to say which circuits it carries.
const learnWait = 20 * time.Second

// Learn asks a router which circuits it carries. Those that are older than this
// controller are taken on, or ended if what they rest on is gone: else nobody
// could take them away any more.
func (c *Circuits) Learn(r *control.Router) {
	r.Go(func(ctx context.Context) {
		ids, err := carried(ctx, r)
		if err != nil {
			if ctx.Err() == nil {
				c.Log.Warn("a router does not say which circuits it carries", "router", r.ID, "error", err)
			}
			return
		}
		for _, id := range ids {
			if _, known := c.table.get(id); !known && !c.adopt(r, id) {
				unroute(r, id, true)
			}
		}
	})
}

// carried returns the ids of a router's circuits.
func carried(ctx context.Context, r *control.Router) ([]string, error) {
	const name = "router-circuits"
	ctx, cancel := context.WithTimeout(ctx, learnWait)
	defer cancel()
	reply, err := r.Request(ctx, control.Message(message.TypeInspectRequest, &message.InspectRequest{Names: []string{name}}))
	if err != nil {
		return nil, err
	}
	answer, err := message.Unmarshal[message.InspectResponse](reply.Body)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, v := range answer.Values {
		var said struct {
			Circuits map[string]struct{} `json:"circuits"`
		}
		if v.Name != name {
			continue
		}
		if err := json.Unmarshal([]byte(v.Value), &said); err != nil {
			return nil, err
		}
		for id := range said.Circuits {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
