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
	MAC       macData        `json:"mac"`
	Domain    domainData     `json:"domain"`
	OS        osData         `json:"os"`
	Processes []processData  `json:"processes"`
	Sessions  jsontext.Value `json:"apiSessionPostureData"` // sessionData by id
}

// reportData is what every report has.
type reportData struct {
	CheckID       string    `json:"postureCheckId"`
	TimedOut      bool      `json:"timedOut"` // no report does
	LastUpdatedAt time.Time `json:"lastUpdatedAt"`
}

type macData struct {
	reportData
	Addresses []string `json:"addresses"`
}

type domainData struct {
	reportData
	Domain string `json:"domain"`
}

type osData struct {
	reportData
	Type    string `json:"type"`
	Version string `json:"version"`
	Build   string `json:"build"`
}

type processData struct {
	reportData
	IsRunning          bool     `json:"isRunning"`
	BinaryHash         string   `json:"binaryHash"`
	SignerFingerprints []string `json:"signerFingerprints"`
}

// sessionData is what is known of an API session.
type sessionData struct {
	MFA      mfaData       `json:"mfa"`
	Endpoint *endpointData `json:"endpointState" kind:"omit"`
	SDK      model.SDKInfo `json:"sdkInfo" kind:"omit"`
}

// mfaData says whether a check that asks for a code at every occasion would
// pass.
type mfaData struct {
	APISessionID   string    `json:"apiSessionId"`
	PassedMFA      bool      `json:"passedMfa"`
	PassedAt       time.Time `json:"passedAt"`
	PassedOnWake   bool      `json:"passedOnWake"`
	PassedOnUnlock bool      `json:"passedOnUnlock"`
}

type endpointData struct {
	WokenAt    time.Time `json:"wokenAt"`
	UnlockedAt time.Time `json:"unlockedAt"`
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
