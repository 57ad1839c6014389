package posture

import (
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// PolicyFailure is the checks of a policy that a device failed.
type PolicyFailure struct {
	PolicyID, PolicyName string
	Checks               []CheckFailure
}

// CheckFailure is what a check expected and what it found, as both were when
// it failed.
type CheckFailure interface {
	append(dst []byte) []byte
	check() (of failedCheck, typ string)
}

// Failure says which of a policy's checks fail, and on what. It refers to the
// checks and copies nothing of them.
func (e *Evaluator) Failure(policy *model.ServicePolicy, checks []*model.PostureCheck) PolicyFailure {
	p := PolicyFailure{PolicyID: policy.ID, PolicyName: policy.Name}
	for _, c := range checks {
		f := e.find(c)
		if !f.failed() {
			continue
		}
		if f.failure == nil {
			f.failure = e.failureOf(c)
		}
		p.Checks = append(p.Checks, f.failure)
	}
	return p
}

// failedCheck is what every failure has.
type failedCheck struct {
	ID   string `json:"postureCheckId" doc:"Id of the posture check that failed."`
	Name string `json:"postureCheckName" doc:"What people call the posture check."`
	Mode string `json:"mode" kind:"omit,enum=report" doc:"What the check does with those who fail it, as it was then: report if it only told; left out if it refused."`
}

func failedCheckOf(c *model.PostureCheck) failedCheck {
	is := failedCheck{ID: c.ID, Name: c.Name}
	if c.OnlyTells() {
		is.Mode = model.Report
	}
	return is
}

type domainFailure struct {
	failedCheck
	Type     string   `json:"postureCheckType" kind:"required,enum=DOMAIN" doc:"Type of the posture check."`
	Expected []string `json:"expectedValue" doc:"Windows domains of which the device had to belong to one."`
	Actual   string   `json:"actualValue" doc:"Windows domain that the device reported; empty without a report."`
}

type macFailure struct {
	failedCheck
	Type     string   `json:"postureCheckType" kind:"required,enum=MAC" doc:"Type of the posture check."`
	Expected []string `json:"expectedValue" doc:"Hardware addresses of which the device had to have one."`
	Actual   []string `json:"actualValue" doc:"Hardware addresses that the device reported; empty without a report."`
}

type osFailure struct {
	failedCheck
	Type     string                  `json:"postureCheckType" kind:"required,enum=OS" doc:"Type of the posture check."`
	Expected []model.OperatingSystem `json:"expectedValue" doc:"Operating systems of which the device had to run one."`
	Actual   osActual                `json:"actualValue" doc:"Operating system that the device reported."`
}

type osActual struct {
	Type    string `json:"type" doc:"Which operating system; empty without a report."`
	Version string `json:"version" doc:"Version of the operating system; empty without a report."`
}

type processFailure struct {
	failedCheck
	Type     string        `json:"postureCheckType" kind:"required,enum=PROCESS" doc:"Type of the posture check."`
	Expected model.Process `json:"expectedValue" doc:"The program that had to run."`
	Actual   processActual `json:"actualValue" doc:"What the device reported of the program."`
}

type multiFailure struct {
	failedCheck
	Type     string               `json:"postureCheckType" kind:"required,enum=PROCESS_MULTI" doc:"Type of the posture check."`
	Semantic string               `json:"semantic" kind:"required,enum=AllOf|AnyOf" doc:"Whether all of the programs had to run (AllOf) or any of them (AnyOf)."`
	Expected []model.ProcessMulti `json:"expectedValue" doc:"The programs that had to run."`
	Actual   []processActual      `json:"actualValue" doc:"What the device reported of each of the programs."`
}

// processActual is what was reported of the program with a path.
type processActual struct {
	OSType             string   `json:"osType" doc:"Operating system on which the program was looked for."`
	Path               string   `json:"path" doc:"Where the program is on the device."`
	IsRunning          bool     `json:"isRunning" doc:"Whether the program ran; false without a report."`
	Hash               string   `json:"hash" doc:"Hash of the program's file, in hexadecimal; empty without a report."`
	SignerFingerprints []string `json:"signerFingerprints" doc:"Fingerprints of the certificates that have signed the program; empty without a report."`
}

type mfaFailure struct {
	failedCheck
	Type     string      `json:"postureCheckType" kind:"required,enum=MFA" doc:"Type of the posture check."`
	Expected mfaValues   `json:"expectedValue" doc:"What had to be."`
	Actual   mfaValues   `json:"actualValue" doc:"What was."`
	Criteria mfaCriteria `json:"criteria" doc:"What it was judged by."`
}

type mfaValues struct {
	PassedMFA      bool `json:"passedMfa" doc:"Whether a code was shown."`
	PassedOnWake   bool `json:"passedOnWake" doc:"Whether no new code was due because the device was woken."`
	PassedOnUnlock bool `json:"passedOnUnlock" doc:"Whether no new code was due because the device was unlocked."`
	TimedOut       bool `json:"timedOut" doc:"Whether the last code was shown too long ago."`
}

type mfaCriteria struct {
	PassedMFAAt             time.Time `json:"passedMfaAt" doc:"When a code was last shown; the year 1 if none was."`
	WokenAt                 time.Time `json:"wokenAt" doc:"When the device was last woken; the year 1 if it never was."`
	UnlockedAt              time.Time `json:"unlockedAt" doc:"When the device was last unlocked; the year 1 if it never was."`
	TimeoutSeconds          int       `json:"timeoutSeconds" doc:"For how many seconds one code is enough; -1 for as long as the session lasts."`
	TimeoutRemainingSeconds int       `json:"timeoutRemainingSeconds" doc:"For how many seconds the last code was still enough; -1 for as long as nothing changes."`
}

var (
	domainOutput  = kind.NewOutput[domainFailure]()
	macOutput     = kind.NewOutput[macFailure]()
	osOutput      = kind.NewOutput[osFailure]()
	processOutput = kind.NewOutput[processFailure]()
	multiOutput   = kind.NewOutput[multiFailure]()
	mfaOutput     = kind.NewOutput[mfaFailure]()
)

func (f *domainFailure) append(dst []byte) []byte  { return domainOutput.Append(dst, f) }
func (f *macFailure) append(dst []byte) []byte     { return macOutput.Append(dst, f) }
func (f *osFailure) append(dst []byte) []byte      { return osOutput.Append(dst, f) }
func (f *processFailure) append(dst []byte) []byte { return processOutput.Append(dst, f) }
func (f *multiFailure) append(dst []byte) []byte   { return multiOutput.Append(dst, f) }
func (f *mfaFailure) append(dst []byte) []byte     { return mfaOutput.Append(dst, f) }

func (f *domainFailure) check() (failedCheck, string)  { return f.failedCheck, f.Type }
func (f *macFailure) check() (failedCheck, string)     { return f.failedCheck, f.Type }
func (f *osFailure) check() (failedCheck, string)      { return f.failedCheck, f.Type }
func (f *processFailure) check() (failedCheck, string) { return f.failedCheck, f.Type }
func (f *multiFailure) check() (failedCheck, string)   { return f.failedCheck, f.Type }
func (f *mfaFailure) check() (failedCheck, string)     { return f.failedCheck, f.Type }

// failureSchema describes a CheckFailure.
func failureSchema() kind.Schema {
	return kind.Schema{"anyOf": []any{
		domainOutput.Schema(), macOutput.Schema(), osOutput.Schema(),
		processOutput.Schema(), multiOutput.Schema(), mfaOutput.Schema(),
	}}
}

// failureOf says what a failed check expected and what it found.
func (e *Evaluator) failureOf(c *model.PostureCheck) CheckFailure {
	is := failedCheckOf(c)
	switch c.TypeID {
	case TypeDomain:
		f := &domainFailure{failedCheck: is, Type: c.TypeID, Expected: c.Domains}
		if e.facts.domain != nil {
			f.Actual = e.facts.domain.Domain
		}
		return f
	case TypeMAC:
		f := &macFailure{failedCheck: is, Type: c.TypeID, Expected: c.MACAddresses}
		if e.facts.mac != nil {
			f.Actual = e.facts.mac.Addresses
		}
		return f
	case TypeOS:
		f := &osFailure{failedCheck: is, Type: c.TypeID, Expected: c.OperatingSystems}
		if e.facts.os != nil {
			f.Actual = osActual{e.facts.os.Type, e.facts.os.Version}
		}
		return f
	case TypeProcess:
		f := &processFailure{failedCheck: is, Type: c.TypeID}
		if c.Process != nil {
			f.Expected = *c.Process
		}
		f.Actual = actual(e.facts.program(c), f.Expected.OSType, f.Expected.Path)
		return f
	case TypeMulti:
		f := &multiFailure{failedCheck: is, Type: c.TypeID, Semantic: c.Semantic, Expected: c.Processes}
		for _, p := range c.Processes {
			f.Actual = append(f.Actual, actual(e.facts.paths[p.Path], p.OSType, p.Path))
		}
		return f
	}
	return e.mfaFailureOf(c)
}

// actual is the report in the words of a failure. Whoever reports says neither
// the operating system nor another path than was asked for.
func actual(p *model.ProgramReport, osType, path string) processActual {
	a := processActual{OSType: osType, Path: path}
	if p != nil {
		a.IsRunning, a.Hash, a.SignerFingerprints = p.Running, p.Hash, p.Signers
	}
	return a
}

func (e *Evaluator) mfaFailureOf(c *model.PostureCheck) CheckFailure {
	s := e.secondFactor(c)
	r := e.factorResult(c, s)
	f := &mfaFailure{
		failedCheck: failedCheckOf(c), Type: TypeMFA,
		Expected: mfaValues{PassedMFA: true, PassedOnWake: true, PassedOnUnlock: true},
		Actual:   mfaValues{s.passed, s.onWake, s.onUnlock, s.timedOut},
		Criteria: mfaCriteria{
			WokenAt: e.facts.woken.Last, UnlockedAt: e.facts.unlocked.Last,
			TimeoutSeconds: r.Timeout, TimeoutRemainingSeconds: r.TimeoutRemaining,
		},
	}
	if at := e.session.MFAPassedAt; at != nil {
		f.Criteria.PassedMFAAt = *at
	}
	return f
}
