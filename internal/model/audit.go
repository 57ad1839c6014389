package model

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
)

// AuditEntry is something that happened in the network, and who is behind it. An
// entry of a change is stored with the change. Its id is its number, in a form
// whose order is that of numbers; it was created when it happened.
type AuditEntry struct {
	kind.Meta

	Number       int64          `json:"number" kind:"server" doc:"Place of the entry among all entries, from 1 on and without gaps."`
	Event        string         `json:"event" kind:"server,index" doc:"What happened: created, updated or deleted for a change of a record, and other words for what is none, such as login-refused."`
	Outcome      string         `json:"outcome" kind:"server,index,enum=done|refused|failed,default=done" doc:"Whether it was done, refused to who asked for it, or failed."`
	Reason       string         `json:"reason" kind:"server,omit" doc:"Why it was refused or failed, or what else there is to say; left out if there is nothing."`
	Count        int64          `json:"count" kind:"server,default=1" doc:"How often it happened: those that are alike within a while have one entry."`
	FirstAt      *time.Time     `json:"firstAt" kind:"server,omit" doc:"When the first of them happened; left out for a change, which happened when the entry was made."`
	LastAt       *time.Time     `json:"lastAt" kind:"server,omit" doc:"When the last of them happened; left out where firstAt is."`
	ControllerID string         `json:"controllerId" kind:"server,index,omit" doc:"Controller where it happened; left out for a change."`
	ActorKind    string         `json:"actorKind" kind:"server,index" doc:"Kind of who was behind it: identity, router, program for the controller itself, or anonymous."`
	ActorID      string         `json:"actorId" kind:"server,index,alias=actor" doc:"Id of who was behind it; empty for the controller itself."`
	ActorName    string         `json:"actorName" kind:"server" doc:"What that one was called then; for the controller itself, the part of it."`
	APISessionID string         `json:"apiSessionId" kind:"server,index" doc:"Id of the API session that was used; empty if there was none."`
	Factors      string         `json:"factors" kind:"server" doc:"What the caller had shown, with commas between: password, certificate, token, secret of a machine or router, and code for a second factor; empty if there was no API session."`
	Address      string         `json:"address" kind:"server,index" doc:"Address that the request came from; empty if there was none."`
	Operation    string         `json:"operation" kind:"server,index" doc:"Operation of an API, as the specification calls it; empty if there was no request."`
	RequestID    string         `json:"requestId" kind:"server,index" doc:"Id of the request, which is also in the log and in errors; empty if there was none."`
	TargetKind   string         `json:"targetKind" kind:"server,index" doc:"Kind of the record that it happened to."`
	TargetID     string         `json:"targetId" kind:"server,index,alias=target" doc:"Id of the record that it happened to."`
	TargetName   string         `json:"targetName" kind:"server" doc:"What the record is called, or was."`
	Before       jsontext.Value `json:"before" kind:"server,nofilter" doc:"Members of the record that differ, as they were stored before; empty if the record was not there."`
	After        jsontext.Value `json:"after" kind:"server,nofilter" doc:"The same members as they are stored since; empty if the record is gone."`
	Withheld     []string       `json:"withheld" kind:"server,nofilter" doc:"Fields that differ too and are not shown: secrets, and what is too large for an entry."`
	Previous     string         `json:"previous" kind:"server,nofilter" doc:"SHA-256 of the entry before, in base64; empty for the first."`
}

// What an entry tells of if it is of a change. Package audit has the other words.
const (
	AuditCreated = "created"
	AuditUpdated = "updated"
	AuditDeleted = "deleted"
)

// How what an entry tells of came out.
const (
	AuditDone    = "done"
	AuditRefused = "refused"
	AuditFailed  = "failed"
)

// AuditEntries is the kind. The store holds entries in blocks.
var AuditEntries = kind.Define(kind.Spec[AuditEntry]{
	Name:    "audit-entry",
	Path:    "audit-entries",
	Doc:     "What happened in the network, and who is behind it.",
	Verbs:   kind.Lists | kind.Gets,
	Columns: []string{"createdAt as when", "actorName as who", "event as what", "targetKind as kind", "targetName as name", "address as from", "number"},
	Lane:    kind.Log,
})

// AuditBlock is some entries, one after the other, as the store holds them. Its id
// is that of the first.
type AuditBlock struct {
	kind.Meta

	Last     int64  `json:"last" kind:"server" doc:"Number of the last entry."`
	Lines    []byte `json:"lines" kind:"server,nofilter" doc:"The entries in their stored form, one a line."`
	Deflated []byte `json:"deflated" kind:"server,nofilter" doc:"The lines in DEFLATE, where they are many; empty if they are as they are."`
	Filed    []byte `json:"filed" kind:"server,nofilter" doc:"What filters can ask of the entries, so that nobody has to read them to find some; empty if it is not told."`
}

// AuditBlocks is the kind.
var AuditBlocks = kind.Define(kind.Spec[AuditBlock]{
	Name: "audit-block",
	Path: "audit-blocks",
	Doc:  "Entries of the audit log as they are stored.",
	Lane: kind.Log,
})

// AuditChain says where the audit log begins, and where it ended before commits said
// that themselves. There is one record, which package audit fills in with what they say.
type AuditChain struct {
	kind.Meta

	Last     int64     `json:"last" kind:"server" doc:"Number of the last entry; 0 if there is none."`
	Digest   []byte    `json:"digest" kind:"server,nofilter" doc:"SHA-256 of the last entry."`
	At       time.Time `json:"at" kind:"server" doc:"When the last entry was made."`
	First    int64     `json:"first" kind:"server" doc:"Number of the first entry that is kept; 0 for 1."`
	Before   []byte    `json:"before" kind:"server,nofilter" doc:"SHA-256 of the entry before that."`
	Unpacked int64     `json:"unpacked" kind:"server" doc:"Number of the first entry that is not among many others in its block; 0 for 1."`
	Bytes    int64     `json:"bytes" kind:"server" doc:"How many bytes the blocks have that hold many entries."`
	Told     bool      `json:"told" kind:"server" doc:"Whether commits say where the log ends, and not the record."`
}

// AuditChains is the kind. It is of the session lane: until commits say where the log
// ends, every batch that has an entry changes the record, whatever else it changes, and
// is guarded by it.
var AuditChains = kind.Define(kind.Spec[AuditChain]{
	Name: "audit-chain",
	Path: "audit-chains",
	Doc:  "Where the audit log begins and ends.",
	Lane: kind.Session,
})

// AuditChainID is the id of the record.
const AuditChainID = "audit"

// AuditOutlet says how far the audit log has gone out to somebody. Which outlet it is
// its id tells.
type AuditOutlet struct {
	kind.Meta

	Sent int64 `json:"sent" kind:"server" doc:"Number of the last entry that was sent."`
}

// AuditOutlets is the kind.
var AuditOutlets = kind.Define(kind.Spec[AuditOutlet]{
	Name: "audit-outlet",
	Path: "audit-outlets",
	Doc:  "How far the audit log has gone out to others.",
	Lane: kind.Session,
})
