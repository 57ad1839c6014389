package model

import (
	"time"

	"netkeep.internal/internal/lang/kind"
)

// AlertState is a condition that was told of: that a router is offline, that a disk is
// nearly full. Whoever tells of a change of it changes the record in the same write, so
// that of several controllers one does.
type AlertState struct {
	kind.Meta

	Raised bool      `json:"raised" kind:"server" doc:"Whether it was last told that it began, and not that it is over."`
	Since  time.Time `json:"since" kind:"server" doc:"When it was last told that it began."`
}

// AlertStates is the kind.
var AlertStates = kind.Define(kind.Spec[AlertState]{
	Name: "alert-state",
	Path: "alert-states",
	Doc:  "What was told of what is the matter with the network.",
	Lane: kind.Session,
})

// AlertReceiver is how it stands with somebody who is sent alerts. Which one it is its id
// tells.
type AlertReceiver struct {
	kind.Meta

	Sent        int64      `json:"sent" kind:"server" doc:"Number of the last entry of the audit log that was looked at."`
	Delivered   int64      `json:"delivered" kind:"server" doc:"How many alerts were taken."`
	DeliveredAt *time.Time `json:"deliveredAt" kind:"server" doc:"When the last one was; null if none was."`
	Dropped     int64      `json:"dropped" kind:"server" doc:"How many were given up."`
	FailedAt    *time.Time `json:"failedAt" kind:"server" doc:"When one was last not taken; null if all were."`
	Error       string     `json:"error" kind:"server" doc:"Why that was; empty since one was taken again."`
}

// AlertReceivers is the kind.
var AlertReceivers = kind.Define(kind.Spec[AlertReceiver]{
	Name: "alert-receiver",
	Path: "alert-receivers",
	Doc:  "How it stands with those who are sent alerts.",
	Lane: kind.Session,
})
