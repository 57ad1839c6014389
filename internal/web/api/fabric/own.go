package fabric

import (
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// ownValue is what this controller knows under a name.
func ownValue(c *rest.Call, s *api.Service, name string) (string, bool) {
	var value any
	switch name {
	case "connected-routers":
		list := []routerValue{}
		for r := range model.Routers.All(c.Snap) {
			if info, online := s.Routers.Connected(r.ID); online {
				list = append(list, routerValue{r.ID, r.Name, info.Version.Version, info.CreatedAt.Time().Format(time.RFC3339)})
			}
		}
		value = list
	case "links":
		list := []linkValue{}
		for l := range model.Links.All(s.Fabric) {
			list = append(list, linkValue{l.ID, l.SourceID, l.DestID, l.DialAddress, l.Cost, l.Down})
		}
		value = list
	case "terminator-costs":
		list := []costValue{}
		for t := range model.Terminators.All(c.Snap) {
			if more := s.Routers.DynamicCost(t); more > 0 {
				list = append(list, costValue{t.ID, more, t.Cost + more})
			}
		}
		value = map[string]any{"terminators": list}
	case "data-model-index", "router-data-model-index":
		index, timeline := s.Fabric.ModelIndex()
		value = indexValue{index, timeline}
	case "identity-connection-statuses":
		all := map[string]carriedValue{}
		for id, routers := range s.Fabric.Carried() {
			one := carriedValue{State: "online", Routers: map[string]carrierValue{}}
			for _, router := range routers {
				one.Routers[router] = carrierValue{ID: router}
			}
			all[id] = one
		}
		value = map[string]any{"connections": all}
	case "metrics":
		value = figureEvents(s, s.ControllerID, s.Sessions.Now(), s.Figures())
	case "stackdump":
		stacks := make([]byte, maxStacks)
		return string(stacks[:runtime.Stack(stacks, true)]), true
	case "config":
		return s.Settings(), true
	case "router-data-model":
		value = wholeModel
	default:
		id, is := strings.CutPrefix(name, "circuit:")
		circuit, known := model.Circuits.Get(s.Fabric, id)
		if !is || !known {
			return "", false
		}
		return string(model.Circuits.AppendOpen(nil, circuit)), true
	}
	text, err := json.Marshal(value)
	return string(text), err == nil
}

// wholeModel is why this controller shows none.
const wholeModel = "a router is told of the data model what it needs itself, and no two the same: the controller keeps none beside the records"

// maxStacks is how much of what all goroutines do is told.
const maxStacks = 1 << 20

// routerValue, linkValue, costValue and the others are what this controller says of them.
type (
	routerValue struct {
		ID      string `json:"Id"`
		Name    string `json:"Name"`
		Version string `json:"Version"`
		Since   string `json:"ConnectTime"`
	}
	linkValue struct {
		ID      string `json:"id"`
		Source  string `json:"source"`
		Dest    string `json:"dest"`
		Address string `json:"dialAddress"`
		Cost    int64  `json:"cost"`
		Down    bool   `json:"down"`
	}
	costValue struct {
		ID      string `json:"terminatorId"`
		Failure int    `json:"failureCost"`
		Now     int    `json:"currentCost"`
	}
	indexValue struct {
		Index    uint64 `json:"index"`
		Timeline string `json:"timeline"`
	}
	carriedValue struct {
		State   string                  `json:"last_reported_state"`
		Routers map[string]carrierValue `json:"connected_routers"`
	}
	carrierValue struct {
		ID     string `json:"router_id"`
		Closed bool   `json:"closed"`
	}
)
