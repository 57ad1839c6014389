// Package alert tells people what they should know at once: that a router is offline, a
// certificate about to end, a disk nearly full. What is told is in the audit log: Watch
// looks at how the network is and adds an entry when that changes, and a Receiver is an
// outlet of the log that posts the entries of some events, signed, to a URL. So the log is
// the queue, the place in it and what was told last are in the store, and of several
// controllers one tells and one sends. It imports model, data/state, ops/audit, ops/outlet
// and ops/egress, and knows nothing of routers, duties or settings.
package alert

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// Usual are the events that are alerts unless settings say which.
func Usual() []string {
	var names []string
	for _, e := range []*audit.Event{
		audit.RouterOffline, audit.RouterOnline, audit.ControllerGone, audit.ControllerBack, audit.EndingSoon,
		audit.LockedOut, audit.SnapshotFailed, audit.DiskLow, audit.DiskEnough,
	} {
		names = append(names, e.Name)
	}
	return append(names, assertionRefused)
}

// assertionRefused is what entries call a change that an assertion refused.
const assertionRefused = "assertion-refused"

// Known reports whether there may be alerts of an event, and otherwise names all.
func Known(event string) (all []string, ok bool) {
	all = append(all, assertionRefused)
	for _, e := range audit.Events() {
		if e.Name != assertionRefused {
			all = append(all, e.Name)
		}
	}
	for _, name := range all {
		ok = ok || name == event
	}
	return all, ok
}

// Test is the event of an alert that somebody asked for to see whether it comes.
const Test = "test"

// Alert is what a receiver is sent. Text alone is what chats show.
type Alert struct {
	ID         string    `json:"id"`
	Event      string    `json:"event"`
	At         time.Time `json:"at"`
	Text       string    `json:"text"`
	Outcome    string    `json:"outcome,omitzero"`
	Reason     string    `json:"reason,omitzero"`
	TargetKind string    `json:"targetKind,omitzero"`
	TargetID   string    `json:"targetId,omitzero"`
	TargetName string    `json:"targetName,omitzero"`
	Actor      string    `json:"actor,omitzero"`
	Address    string    `json:"address,omitzero"`
	Count      int64     `json:"count,omitzero"`
	Controller string    `json:"controllerId,omitzero"`
	Network    string    `json:"network"`
	Dropped    int64     `json:"dropped,omitzero"`
}

// of is the alert that an entry is.
func of(e *model.AuditEntry, network string) Alert {
	a := Alert{
		ID: network + "-" + e.ID, Event: e.Event, At: e.CreatedAt.Time(), Outcome: e.Outcome, Reason: e.Reason,
		TargetKind: e.TargetKind, TargetID: e.TargetID, TargetName: e.TargetName,
		Address: e.Address, Count: e.Count, Controller: e.ControllerID, Network: network,
	}
	if e.ActorKind != "program" {
		a.Actor = e.ActorName
	}
	a.Text = sentence(a)
	return a
}

// sentence is an alert in a line.
func sentence(a Alert) string {
	var b strings.Builder
	b.WriteString("netkeep: " + strings.ReplaceAll(a.Event, "-", " "))
	if a.TargetName != "" {
		b.WriteString(": " + a.TargetKind + " " + a.TargetName)
	}
	if a.Reason != "" {
		b.WriteString(" (" + a.Reason + ")")
	}
	if a.Count > 1 {
		b.WriteString(", " + strconv.FormatInt(a.Count, 10) + " times")
	}
	return b.String()
}

// The headers of a request.
const (
	IDHeader        = "Netkeep-Id"
	TimestampHeader = "Netkeep-Timestamp"
	SignatureHeader = "Netkeep-Signature"
	version         = "v1="
)

// request is an alert as it is posted at a moment.
func (a Alert) request(secret string, now time.Time) (http.Header, []byte, error) {
	body, err := json.Marshal(a)
	if err != nil {
		return nil, nil, err
	}
	at := strconv.FormatInt(now.Unix(), 10)
	return http.Header{
		"Content-Type": {"application/json"}, IDHeader: {a.ID}, TimestampHeader: {at}, SignatureHeader: {version + sign(secret, at, body)},
	}, body, nil
}

// sign is the HMAC-SHA256 of a time and a body with a dot between them, in hexadecimal.
func sign(secret, at string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
