package fabric

import (
	"crypto/rand"
	"strings"
	"time"

	"netkeep.internal/internal/fabric/herald"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
)

// measure tells again and again what was measured here.
func (t *talk) measure(want wanted) {
	again := time.NewTicker(want.every)
	defer again.Stop()
	for {
		if want.source == nil || want.source.MatchString(t.s.ControllerID) {
			t.tellFigures(want, t.s.ControllerID, t.s.Sessions.Now(), t.s.Figures())
		}
		select {
		case <-t.ctx.Done():
			return
		case <-again.C:
		}
	}
}

// tellFigures tells what somebody has measured.
func (t *talk) tellFigures(want wanted, source string, at time.Time, some []herald.Figure) {
	if want.source != nil && !want.source.MatchString(source) {
		return
	}
	together := rand.Text()
	for _, f := range some {
		values := map[string]any{}
		for key, value := range f.Values {
			name := key
			if key == "value" {
				name = "" // as the public filter has it
			}
			if want.figure == nil || want.figure.MatchString(f.Name+"."+name) {
				values[key] = value
			}
		}
		if len(values) == 0 {
			continue
		}
		t.tell(want, at, figureEvent(t.s, source, together, f, values))
	}
}

// figureEvent says what somebody has measured of a figure.
func figureEvent(s *api.Service, source, together string, f herald.Figure, values map[string]any) map[string]any {
	event := map[string]any{"version": 3, "source_event_id": together, "source_id": source, "metric": f.Name, "metric_type": f.Type, "metrics": values}
	if tags := nameFigure(s, event, f); len(tags) > 0 {
		event["tags"] = tags
	}
	return event
}

// nameFigure tells a figure's name from what it is of, for those of links and control
// connections, and returns its tags.
func nameFigure(s *api.Service, event map[string]any, f herald.Figure) map[string]string {
	prefix, rest, _ := strings.Cut(f.Name, ".")
	if prefix != "link" && prefix != "ctrl" {
		return f.Tags
	}
	name, id, apart := strings.Cut(f.Name, ":")
	if !apart && prefix == "link" {
		id, name, apart = cutLink(rest)
	}
	if !apart {
		return f.Tags
	}
	event["metric"], event["source_entity_id"] = name, id
	link, known := model.Links.Get(s.Fabric, id)
	if !known || prefix != "link" {
		return f.Tags
	}
	tags := map[string]string{"sourceRouterId": link.SourceID, "targetRouterId": link.DestID}
	for name, value := range f.Tags {
		if _, taken := tags[name]; !taken {
			tags[name] = value
		}
	}
	return tags
}

// cutLink tells the id of a link from what was measured of it: link.ID.latency has one
// word after it, and link.ID.tx.bytesrate has two.
func cutLink(text string) (id, name string, ok bool) {
	words := 2
	if strings.HasSuffix(text, "latency") || strings.HasSuffix(text, "queue_time") {
		words = 1
	}
	parts := strings.Split(text, ".")
	if len(parts) <= words {
		return "", "", false
	}
	at := len(parts) - words
	return strings.Join(parts[:at], "."), "link." + strings.Join(parts[at:], "."), true
}
