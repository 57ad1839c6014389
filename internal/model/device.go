package model

import (
	"time"

	"netkeep.internal/internal/lang/kind"
)

// Device is what the device that uses an API session has reported of itself. It
// has the id of the session and ends with it.
type Device struct {
	kind.Meta

	APISessionID string        `json:"apiSessionId" kind:"server,ref=api-session:cascade" doc:"Id of the API session that the device uses."`
	OS           *OSReport     `json:"os" kind:"server" doc:"Last report on the operating system; null without one."`
	Domain       *DomainReport `json:"domain" kind:"server" doc:"Last report on the Windows domain; null without one."`
	MAC          *MACReport    `json:"mac" kind:"server" doc:"Last report on hardware addresses; null without one."`
	// What checks ask for, by check and by path, and what they do not.
	Processes []ProgramReport `json:"processes" kind:"server" doc:"Last report for each check on one program, by check."`
	Paths     []ProgramReport `json:"paths" kind:"server" doc:"Last report on each program that checks name, by path."`
	Unasked   []ProgramReport `json:"unasked" kind:"server" doc:"Last reports on programs that no check looks at."`
	Woken     DeviceEvent     `json:"woken" kind:"server" doc:"When the device was woken."`
	Unlocked  DeviceEvent     `json:"unlocked" kind:"server" doc:"When the device was unlocked."`
}

// Devices is the kind.
var Devices = kind.Define(kind.Spec[Device]{
	Name: "device",
	Path: "devices",
	Doc:  "What devices have reported of themselves.",
	Lane: kind.Session,
})

// Stamp is what every report has.
type Stamp struct {
	CheckID string    `json:"checkId" kind:"server" doc:"Id of the posture check that asked for the report."`
	At      time.Time `json:"at" kind:"server" doc:"When the report was made, or one of the same some minutes before."`
}

// OSReport is the operating system of a device.
type OSReport struct {
	Stamp
	Type    string `json:"type" kind:"server" doc:"Name of the operating system."`
	Version string `json:"version" kind:"server" doc:"Version of the operating system."`
	Build   string `json:"build" kind:"server" doc:"Build of the operating system, which no check looks at."`
}

// DomainReport is the Windows domain of a device.
type DomainReport struct {
	Stamp
	Domain string `json:"domain" kind:"server" doc:"Name of the domain."`
}

// MACReport is the hardware addresses of a device.
type MACReport struct {
	Stamp
	Addresses []string `json:"addresses" kind:"server" doc:"The addresses as lower-case hexadecimal digits, sorted."`
}

// ProgramReport is a program on a device.
type ProgramReport struct {
	Stamp
	Path    string   `json:"path" kind:"server" doc:"Where the program is; empty in a report for a check on one program."`
	Running bool     `json:"running" kind:"server" doc:"Whether the program runs."`
	Hash    string   `json:"hash" kind:"server" doc:"Hash of the program's file."`
	Signers []string `json:"signers" kind:"server" doc:"Fingerprints of the certificates that have signed the program."`
}

// DeviceEvent is something after which checks may ask for a new code.
type DeviceEvent struct {
	Last time.Time `json:"last" kind:"server" doc:"When it happened last; the year 1 if never."`
	// First does not move with Last: another wake does not give more time for
	// the code that the first one asks for.
	First time.Time `json:"first" kind:"server" doc:"When it first happened of those times that no code had answered yet."`
}
