package posture

import (
	"time"

	"netkeep/internal/lang/kind"
	"netkeep/internal/model"
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
}

// Failure says which of a policy's checks fail, and on what. It refers to the
// checks and copies nothing of them.
func (e *Evaluator) Failure(policy *model.ServicePolicy, checks []*model.PostureCheck) PolicyFailure {
	p := PolicyFailure{PolicyID: policy.ID, PolicyName: policy.Name}
	for _, c := range checks {
		f := e.find(c)
		if f.Passing {
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
	ID   string `json:"postureCheckId"`
	Name string `json:"postureCheckName"`
}

type domainFailure struct {
	failedCheck
	Type     string   `json:"postureCheckType" kind:"required,enum=DOMAIN"`
	Expected []string `json:"expectedValue"`
	Actual   string   `json:"actualValue"`
}

type macFailure struct {
	failedCheck
	Type     string   `json:"postureCheckType" kind:"required,enum=MAC"`
	Expected []string `json:"expectedValue"`
	Actual   []string `json:"actualValue"`
}

type osFailure struct {
	failedCheck
	Type     string                  `json:"postureCheckType" kind:"required,enum=OS"`
	Expected []model.OperatingSystem `json:"expectedValue"`
	Actual   osActual                `json:"actualValue"`
}

type osActual struct {
	Type    string `json:"type"`
	Version string `json:"version"`
}

type processFailure struct {
	failedCheck
	Type     string        `json:"postureCheckType" kind:"required,enum=PROCESS"`
	Expected model.Process `json:"expectedValue"`
	Actual   processActual `json:"actualValue"`
}

type multiFailure struct {
	failedCheck
	Type     string               `json:"postureCheckType" kind:"required,enum=PROCESS_MULTI"`
	Semantic string               `json:"semantic" kind:"required,enum=AllOf|AnyOf"`
	Expected []model.ProcessMulti `json:"expectedValue"`
	Actual   []processActual      `json:"actualValue"`
}

// processActual is what was reported of the program with a path.
type processActual struct {
	OSType             string   `json:"osType"`
	Path               string   `json:"path"`
	IsRunning          bool     `json:"isRunning"`
	Hash               string   `json:"hash"`
	SignerFingerprints []string `json:"signerFingerprints"`
}

type mfaFailure struct {
	failedCheck
	Type     string      `json:"postureCheckType" kind:"required,enum=MFA"`
	Expected mfaValues   `json:"expectedValue"`
	Actual   mfaValues   `json:"actualValue"`
	Criteria mfaCriteria `json:"criteria"`
}

type mfaValues struct {
	PassedMFA      bool `json:"passedMfa"`
	PassedOnWake   bool `json:"passedOnWake"`
	PassedOnUnlock bool `json:"passedOnUnlock"`
	TimedOut       bool `json:"timedOut"`
}

type mfaCriteria struct {
	PassedMFAAt             time.Time `json:"passedMfaAt"`
	WokenAt                 time.Time `json:"wokenAt"`
	UnlockedAt              time.Time `json:"unlockedAt"`
	TimeoutSeconds          int       `json:"timeoutSeconds"`
	TimeoutRemainingSeconds int       `json:"timeoutRemainingSeconds"`
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

// failureSchema describes a CheckFailure.
func failureSchema() kind.Schema {
	return kind.Schema{"anyOf": []any{
		domainOutput.Schema(), macOutput.Schema(), osOutput.Schema(),
		processOutput.Schema(), multiOutput.Schema(), mfaOutput.Schema(),
	}}
}

// failureOf says what a failed check expected and what it found.
func (e *Evaluator) failureOf(c *model.PostureCheck) CheckFailure {
	is := failedCheck{c.ID, c.Name}
	switch c.TypeID {
	case typeDomain:
		f := &domainFailure{failedCheck: is, Type: c.TypeID, Expected: c.Domains}
		if e.facts.domain != nil {
			f.Actual = e.facts.domain.domain
		}
		return f
	case typeMAC:
		f := &macFailure{failedCheck: is, Type: c.TypeID, Expected: c.MACAddresses}
		if e.facts.mac != nil {
			f.Actual = e.facts.mac.addresses
		}
		return f
	case typeOS:
		f := &osFailure{failedCheck: is, Type: c.TypeID, Expected: c.OperatingSystems}
		if e.facts.os != nil {
			f.Actual = osActual{e.facts.os.typ, e.facts.os.version}
		}
		return f
	case typeProcess:
		f := &processFailure{failedCheck: is, Type: c.TypeID}
		if c.Process != nil {
			f.Expected = *c.Process
		}
		f.Actual = e.facts.processes[c.ID].actual(f.Expected.OSType, f.Expected.Path)
		return f
	case typeMulti:
		f := &multiFailure{failedCheck: is, Type: c.TypeID, Semantic: c.Semantic, Expected: c.Processes}
		for _, p := range c.Processes {
			f.Actual = append(f.Actual, e.facts.paths[p.Path].actual(p.OSType, p.Path))
		}
		return f
	}
	return e.mfaFailureOf(c)
}

// actual is the report in the words of a failure. Whoever reports says neither
// the operating system nor another path than was asked for.
func (p *processReport) actual(osType, path string) processActual {
	a := processActual{OSType: osType, Path: path}
	if p != nil {
		a.IsRunning, a.Hash, a.SignerFingerprints = p.running, p.hash, p.signers
	}
	return a
}

func (e *Evaluator) mfaFailureOf(c *model.PostureCheck) CheckFailure {
	r, s := e.Check(c), e.secondFactor(c)
	f := &mfaFailure{
		failedCheck: failedCheck{c.ID, c.Name}, Type: typeMFA,
		Expected: mfaValues{PassedMFA: true, PassedOnWake: true, PassedOnUnlock: true},
		Actual:   mfaValues{s.passed, s.onWake, s.onUnlock, s.timedOut},
		Criteria: mfaCriteria{
			WokenAt: e.endpoint.woken.last, UnlockedAt: e.endpoint.unlocked.last,
			TimeoutSeconds: r.Timeout, TimeoutRemainingSeconds: r.TimeoutRemaining,
		},
	}
	if at := e.session.MFAPassedAt; at != nil {
		f.Criteria.PassedMFAAt = *at
	}
	return f
}
