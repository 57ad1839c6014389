package posture

import (
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
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
	LastUpdatedAt time.Time `json:"lastUpdatedAt" doc:"When the report was made, or the first that said the same up to ten minutes before; the year 1 without one."`
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

// DataOf returns what is known of the devices of an identity: the latest of
// each report, whichever device made it, and each for itself what belongs to
// API sessions.
func DataOf(devices []*Evaluator) Data {
	var mac *model.MACReport
	var domain *model.DomainReport
	var os *model.OSReport
	for _, e := range devices {
		if f := e.facts; f.mac != nil && (mac == nil || f.mac.At.After(mac.At)) {
			mac = f.mac
		}
		if f := e.facts; f.domain != nil && (domain == nil || f.domain.At.After(domain.At)) {
			domain = f.domain
		}
		if f := e.facts; f.os != nil && (os == nil || f.os.At.After(os.At)) {
			os = f.os
		}
	}
	d := Data{Processes: processesOf(devices), Sessions: appendSessions(nil, devices)}
	if mac != nil {
		d.MAC = macData{dataOf(mac.Stamp), mac.Addresses}
	}
	if domain != nil {
		d.Domain = domainData{dataOf(domain.Stamp), domain.Domain}
	}
	if os != nil {
		d.OS = osData{dataOf(os.Stamp), os.Type, os.Version, os.Build}
	}
	return d
}

func dataOf(s model.Stamp) reportData { return reportData{CheckID: s.CheckID, LastUpdatedAt: s.At} }

// processesOf lists the reports on programs, by check.
func processesOf(devices []*Evaluator) []processData {
	latest := map[[2]string]*model.ProgramReport{}
	for _, e := range devices {
		for _, p := range e.facts.programs() {
			key := [2]string{p.CheckID, p.Path}
			if old := latest[key]; old == nil || p.At.After(old.At) {
				latest[key] = p
			}
		}
	}
	var data []processData
	for _, p := range slices.SortedFunc(maps.Values(latest), byCheck) {
		data = append(data, processData{dataOf(p.Stamp), p.Running, p.Hash, p.Signers})
	}
	return data
}

// programs lists the reports of a device on programs. One for a check on one
// program is also that on the path that the check names, and listed once.
func (f *Facts) programs() []*model.ProgramReport {
	all := slices.Collect(maps.Values(f.processes))
	for _, p := range f.paths {
		if as := f.processes[p.CheckID]; as == nil || !as.At.Equal(p.At) || !equal(as, p) {
			all = append(all, p)
		}
	}
	return append(all, f.unasked...)
}

var sessionOutput = kind.NewOutput[sessionData]()

// appendSessions adds an object with a member for each API session.
func appendSessions(dst []byte, devices []*Evaluator) []byte {
	dst = append(dst, '{')
	for _, e := range devices {
		data := e.sessionData()
		dst = kind.AppendMember(dst, e.session.ID, func(dst []byte) []byte { return sessionOutput.Append(dst, data) })
	}
	return append(dst, '}')
}

// promptsAlways is a check that asks for a code at every occasion.
var promptsAlways = &model.PostureCheck{TypeID: TypeMFA, TimeoutSeconds: model.NoTimeout, PromptOnWake: true, PromptOnUnlock: true}

func (e *Evaluator) sessionData() *sessionData {
	s, factor := e.session, e.secondFactor(promptsAlways)
	d := &sessionData{SDK: s.SDK, MFA: mfaData{
		APISessionID: s.ID, PassedMFA: factor.passed, PassedOnWake: factor.onWake, PassedOnUnlock: factor.onUnlock,
	}}
	if s.MFAPassedAt != nil {
		d.MFA.PassedAt = *s.MFAPassedAt
	}
	if f := e.facts; !f.woken.Last.IsZero() || !f.unlocked.Last.IsZero() {
		d.Endpoint = &endpointData{f.woken.Last, f.unlocked.Last}
	}
	return d
}
