package posture

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
)

// Data is what is known of the devices of an identity, in an answer. What was
// never reported is empty, and its time is zero.
type Data struct {
	MAC       macData        `json:"mac" doc:"Report on hardware addresses."`
	Domain    domainData     `json:"domain" doc:"Report on the Windows domain."`
	OS        osData         `json:"os" doc:"Report on the operating system."`
	Processes []processData  `json:"processes" doc:"Reports on programs."`
	Sessions  jsontext.Value `json:"apiSessionPostureData" doc:"What is known of each API session, by its id."` // sessionData by id
}

// reportData is what every report has.
type reportData struct {
	CheckID       string    `json:"postureCheckId" doc:"Id of the posture check that asked for the report; empty without one."`
	TimedOut      bool      `json:"timedOut" doc:"Always false, as reports do not time out."` // no report does
	LastUpdatedAt time.Time `json:"lastUpdatedAt" doc:"When the report was made; the year 1 without one."`
}

type macData struct {
	reportData
	Addresses []string `json:"addresses" doc:"Hardware addresses of the device, in hexadecimal."`
}

type domainData struct {
	reportData
	Domain string `json:"domain" doc:"Windows domain that the device belongs to."`
}

type osData struct {
	reportData
	Type    string `json:"type" doc:"Operating system of the device."`
	Version string `json:"version" doc:"Version of the operating system."`
	Build   string `json:"build" doc:"Build of the operating system."`
}

type processData struct {
	reportData
	IsRunning          bool     `json:"isRunning" doc:"Whether the program runs."`
	BinaryHash         string   `json:"binaryHash" doc:"Hash of the program's file, in hexadecimal."`
	SignerFingerprints []string `json:"signerFingerprints" doc:"Fingerprints of the certificates that have signed the program."`
}

// sessionData is what is known of an API session.
type sessionData struct {
	MFA      mfaData       `json:"mfa" doc:"Whether a second factor was shown."`
	Endpoint *endpointData `json:"endpointState" kind:"omit" doc:"When the device was woken and unlocked; left out if it never said so."`
	SDK      model.SDKInfo `json:"sdkInfo" kind:"omit" doc:"What the client said of itself; left out if it said nothing."`
}

// mfaData says whether a check that asks for a code at every occasion would
// pass.
type mfaData struct {
	APISessionID   string    `json:"apiSessionId" doc:"Id of the API session."`
	PassedMFA      bool      `json:"passedMfa" doc:"Whether a code was shown."`
	PassedAt       time.Time `json:"passedAt" doc:"When a code was last shown; the year 1 if none was."`
	PassedOnWake   bool      `json:"passedOnWake" doc:"Whether no new code is due because the device was woken."`
	PassedOnUnlock bool      `json:"passedOnUnlock" doc:"Whether no new code is due because the device was unlocked."`
}

type endpointData struct {
	WokenAt    time.Time `json:"wokenAt" doc:"When the device was last woken; the year 1 if it never was."`
	UnlockedAt time.Time `json:"unlockedAt" doc:"When the device was last unlocked; the year 1 if it never was."`
}

// DataOf returns what is known of an identity, and of these API sessions of
// it.
func DataOf(f *Facts, sessions []Session, now time.Time) Data {
	d := Data{Processes: processesOf(f), Sessions: appendSessions(nil, f, sessions, now)}
	if f.mac != nil {
		d.MAC = macData{f.mac.data(), f.mac.addresses}
	}
	if f.domain != nil {
		d.Domain = domainData{f.domain.data(), f.domain.domain}
	}
	if f.os != nil {
		d.OS = osData{f.os.data(), f.os.typ, f.os.version, f.os.build}
	}
	return d
}

func (s stamp) data() reportData { return reportData{CheckID: s.checkID, LastUpdatedAt: s.at} }

// processesOf lists the reports on programs, each once, by check.
func processesOf(f *Facts) []processData {
	type entry struct {
		path   string
		report *processReport
	}
	var all []entry
	for _, p := range f.processes {
		all = append(all, entry{"", p})
	}
	for path, p := range f.paths {
		if f.processes[p.checkID] != p {
			all = append(all, entry{path, p})
		}
	}
	for _, u := range f.unasked {
		all = append(all, entry{u.path, u.processReport})
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.report.checkID, b.report.checkID), cmp.Compare(a.path, b.path))
	})
	var data []processData
	for _, e := range all {
		data = append(data, processData{e.report.data(), e.report.running, e.report.hash, e.report.signers})
	}
	return data
}

var sessionOutput = kind.NewOutput[sessionData]()

// appendSessions adds an object with a member for each API session.
func appendSessions(dst []byte, f *Facts, sessions []Session, now time.Time) []byte {
	dst = append(dst, '{')
	for _, s := range sessions {
		data := sessionDataOf(f, s, now)
		dst = kind.AppendMember(dst, s.ID, func(dst []byte) []byte { return sessionOutput.Append(dst, data) })
	}
	return append(dst, '}')
}

// promptsAlways is a check that asks for a code at every occasion.
var promptsAlways = &model.PostureCheck{TypeID: typeMFA, TimeoutSeconds: model.NoTimeout, PromptOnWake: true, PromptOnUnlock: true}

func sessionDataOf(f *Facts, s Session, now time.Time) *sessionData {
	e := NewEvaluator(f, s, now)
	factor := e.secondFactor(promptsAlways)
	d := &sessionData{SDK: s.SDK, MFA: mfaData{
		APISessionID: s.ID, PassedMFA: factor.passed, PassedOnWake: factor.onWake, PassedOnUnlock: factor.onUnlock,
	}}
	if s.MFAPassedAt != nil {
		d.MFA.PassedAt = *s.MFAPassedAt
	}
	if seen, ok := f.endpoints[s.ID]; ok {
		d.Endpoint = &endpointData{seen.woken.last, seen.unlocked.last}
	}
	return d
}
