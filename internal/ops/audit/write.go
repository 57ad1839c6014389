package audit

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// appendEntry adds the stored form of an entry to a text: the very one that its kind
// gives it, in a fraction of the time that it takes to look at what the kind is. Every
// change waits for it.
func appendEntry(dst []byte, e *model.AuditEntry) ([]byte, error) {
	w := writer{dst: append(dst, '{')}
	w.text(`"id":`, e.ID)
	w.moment(`"createdAt":`, e.CreatedAt)
	w.moment(`"updatedAt":`, e.UpdatedAt)
	w.number(`"number":`, e.Number)
	w.text(`"event":`, e.Event)
	w.quote(`"outcome":`, e.Outcome)
	w.text(`"reason":`, e.Reason)
	w.name(`"count":`)
	w.dst = strconv.AppendInt(w.dst, e.Count, 10)
	w.optional(`"firstAt":`, e.FirstAt)
	w.optional(`"lastAt":`, e.LastAt)
	w.text(`"controllerId":`, e.ControllerID)
	w.text(`"actorKind":`, e.ActorKind)
	w.text(`"actorId":`, e.ActorID)
	w.text(`"actorName":`, e.ActorName)
	w.text(`"apiSessionId":`, e.APISessionID)
	w.text(`"factors":`, e.Factors)
	w.text(`"address":`, e.Address)
	w.text(`"operation":`, e.Operation)
	w.text(`"requestId":`, e.RequestID)
	w.text(`"targetKind":`, e.TargetKind)
	w.text(`"targetId":`, e.TargetID)
	w.text(`"targetName":`, e.TargetName)
	w.object(`"before":`, e.Before)
	w.object(`"after":`, e.After)
	w.texts(`"withheld":`, e.Withheld)
	w.text(`"previous":`, e.Previous)
	if w.odd || len(e.Tags) > 0 || e.System || e.Unknown != nil {
		text, err := model.AuditEntries.EncodeOwn(e)
		return append(dst, text...), err
	}
	return append(w.dst, '}'), nil
}

// writer writes the members of an entry, leaving out what is empty.
type writer struct {
	dst []byte
	odd bool // whether there is something that only the kind knows to write, or to refuse
}

// name writes a name, with the comma that it needs.
func (w *writer) name(name string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, name...)
}

func (w *writer) text(name, text string) {
	if text != "" {
		w.quote(name, text)
	}
}

// quote writes a text also if it is empty.
func (w *writer) quote(name, text string) {
	w.name(name)
	w.quoted(text)
}

func (w *writer) quoted(text string) {
	dst, err := jsontext.AppendQuote(w.dst, text)
	w.dst, w.odd = dst, w.odd || err != nil
}

func (w *writer) texts(name string, all []string) {
	if len(all) == 0 {
		return
	}
	w.name(name)
	sign := byte('[')
	for _, text := range all {
		w.dst = append(w.dst, sign)
		w.quoted(text)
		sign = ','
	}
	w.dst = append(w.dst, ']')
}

func (w *writer) number(name string, n int64) {
	if n != 0 {
		w.name(name)
		w.dst = strconv.AppendInt(w.dst, n, 10)
	}
}

func (w *writer) moment(name string, at kind.Moment) {
	if !at.IsZero() {
		w.time(name, at.Time())
	}
}

func (w *writer) optional(name string, at *time.Time) {
	if at != nil {
		w.time(name, *at)
	}
}

func (w *writer) time(name string, at time.Time) {
	w.name(name)
	dst, err := at.AppendText(append(w.dst, '"'))
	w.dst, w.odd = append(dst, '"'), w.odd || err != nil
}

func (w *writer) object(name string, object jsontext.Value) {
	if len(object) > 0 {
		w.name(name)
		w.dst = append(w.dst, object...)
	}
}
