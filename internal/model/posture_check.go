package model

import (
	"github.com/Masterminds/semver/v3"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// PostureCheck is a condition on the device that an identity uses. Its type
// says which of the fields it has.
type PostureCheck struct {
	kind.Meta

	Name           string   `json:"name" kind:"required,unique,range=1..256" doc:"What people call the check; no two checks have the same name."`
	TypeID         string   `json:"typeId" kind:"required=create|patch,keep,enum=OS|PROCESS|DOMAIN|MAC|MFA|PROCESS_MULTI" doc:"What the check looks at, which decides the other fields that it has; it cannot be changed."`
	RoleAttributes []string `json:"roleAttributes" kind:"attributes" doc:"Words by which policies find it: a policy with #word in its role list is about everything that has the word."`

	Mode string `json:"mode" kind:"keep,enum=enforce|report,default=enforce" doc:"Whether a device that fails the check is refused (enforce), or whether that is only told (report): in explanations, among failed requests and in a metric."`

	Domains               []string          `json:"domains" kind:"required,range=1..,when=typeId:DOMAIN,nofilter" doc:"Windows domains of which the device must belong to one; capitals do not matter."`
	MACAddresses          []string          `json:"macAddresses" kind:"required,range=1..,format=hex,when=typeId:MAC,nofilter" doc:"Hardware addresses of which the device must have one, in hexadecimal; kept in lower case and without separators."`
	OperatingSystems      []OperatingSystem `json:"operatingSystems" kind:"required,range=1..,when=typeId:OS" doc:"Operating systems of which the device must run one; the last entry for a type decides."`
	Process               *Process          `json:"process" kind:"required,when=typeId:PROCESS,nofilter" doc:"The program that must run on the device."`
	Semantic              string            `json:"semantic" kind:"required,enum=AllOf|AnyOf,when=typeId:PROCESS_MULTI,nofilter" doc:"Whether all of the processes must run (AllOf) or any of them (AnyOf)."`
	Processes             []ProcessMulti    `json:"processes" kind:"required,range=1..,when=typeId:PROCESS_MULTI" doc:"The programs that must run on the device."`
	TimeoutSeconds        int               `json:"timeoutSeconds" kind:"when=typeId:MFA,nofilter" doc:"For how many seconds one code is enough; -1, as anything below 1, for as long as the session lasts."`
	PromptOnWake          bool              `json:"promptOnWake" kind:"when=typeId:MFA" doc:"Whether a new code is needed within five minutes after the device wakes up."`
	PromptOnUnlock        bool              `json:"promptOnUnlock" kind:"when=typeId:MFA" doc:"Whether a new code is needed within five minutes after the device is unlocked."`
	IgnoreLegacyEndpoints bool              `json:"ignoreLegacyEndpoints" kind:"when=typeId:MFA,nofilter" doc:"Whether clients that do not know how to ask for a code in time are told that there is no timeout, though it holds for them too."`
}

// OperatingSystem is one that a check accepts, in some versions or all.
type OperatingSystem struct {
	Type     string   `json:"type" kind:"required,enum=Windows|WindowsServer|Android|iOS|Linux|macOS" doc:"Which operating system."`
	Versions []string `json:"versions" kind:"required" doc:"Version ranges such as >=10.0.0, of which it must be in one; every version if empty."`
}

// Process is a program that must run.
type Process struct {
	OSType            string   `json:"osType" kind:"required,enum=Windows|WindowsServer|Android|iOS|Linux|macOS" doc:"Operating system of the device that the program runs on."`
	Path              string   `json:"path" kind:"required" doc:"Where the program is on the device."`
	Hashes            []string `json:"hashes" doc:"Hashes in hexadecimal, of which the program must have one; any program if empty."`
	SignerFingerprint string   `json:"signerFingerprint" kind:"omit" doc:"Fingerprint of the certificate that must have signed the program; that does not matter if it is empty."`
}

// ProcessMulti is one of several programs.
type ProcessMulti struct {
	OSType             string   `json:"osType" kind:"required,enum=Windows|WindowsServer|Android|iOS|Linux|macOS" doc:"Operating system of the device that the program runs on."`
	Path               string   `json:"path" kind:"required" doc:"Where the program is on the device."`
	Hashes             []string `json:"hashes" doc:"Hashes in hexadecimal, of which the program must have one; any program if empty."`
	SignerFingerprints []string `json:"signerFingerprints" doc:"Fingerprints of certificates, of which one must have signed the program; that does not matter if empty."`
}

// PostureChecks is the kind.
var PostureChecks = kind.Define(kind.Spec[PostureCheck]{
	Name:    "posture-check",
	Path:    "posture-checks",
	Doc:     "Create a posture check: a condition on the device that an identity uses.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "typeId", "roleAttributes"},
	InFiles: true,
})

// The modes of a posture check.
const (
	Enforce = "enforce"
	Report  = "report"
)

// OnlyTells reports whether the check refuses nobody.
func (p *PostureCheck) OnlyTells() bool { return p.Mode == Report }

// NoTimeout says that an MFA check never times out.
const NoTimeout = -1

// Fill writes the many ways to say "no timeout" as one.
func (p *PostureCheck) Fill() {
	if p.TypeID == "MFA" && p.TimeoutSeconds <= 0 {
		p.TimeoutSeconds = NoTimeout
	}
}

// Check keeps the type and reads the version ranges.
func (p *PostureCheck) Check(_ kind.Reader, old *PostureCheck) error {
	if old != nil && old.TypeID != p.TypeID {
		return fault.Invalid("typeId", "must stay "+old.TypeID, p.TypeID)
	}
	for _, os := range p.OperatingSystems {
		for _, v := range os.Versions {
			if _, err := semver.NewConstraint(v); err != nil {
				return fault.Invalid("operatingSystems", "must hold version ranges such as >=10.0.0", v)
			}
		}
	}
	return nil
}

// PostureCheckType is one of the fixed types of posture checks.
type PostureCheckType struct {
	kind.Meta

	Name             string            `json:"name" kind:"server,unique" doc:"What a posture check has as its typeId."`
	OperatingSystems []OperatingSystem `json:"operatingSystems" kind:"server" doc:"Operating systems on which clients know how to report."`
	Version          string            `json:"version" kind:"server,nofilter" doc:"Version of the type."`
}

// PostureCheckTypes is the kind.
var PostureCheckTypes = kind.Define(kind.Spec[PostureCheckType]{
	Name:    "posture-check-type",
	Path:    "posture-check-types",
	Doc:     "The types that posture checks may have.",
	Verbs:   kind.Lists | kind.Gets,
	Columns: []string{"id", "operatingSystems"},
})

// postureCheckTypes are the types and the systems that clients offer them on.
func postureCheckTypes() []*PostureCheckType {
	windows := OperatingSystem{"Windows", []string{"Vista", "7", "8", "10", "2000"}}
	linux := OperatingSystem{"Linux", []string{"4.14", "4.19", "5.4", "5.9"}}
	macOS := OperatingSystem{"macOS", []string{"10.15", "11.0"}}
	android := OperatingSystem{"Android", []string{"9", "10", "11"}}
	iOS := OperatingSystem{"iOS", []string{"11", "12"}}
	bare := func(name string) OperatingSystem { return OperatingSystem{name, []string{}} }
	types := []struct {
		name string
		on   []OperatingSystem
	}{
		{"DOMAIN", []OperatingSystem{windows}},
		{"MAC", []OperatingSystem{windows, linux, macOS, android}},
		{"MFA", []OperatingSystem{}},
		{"OS", []OperatingSystem{windows, linux, android, macOS, iOS}},
		{"PROCESS", []OperatingSystem{windows, macOS, linux}},
		{"PROCESS_MULTI", []OperatingSystem{bare("Windows"), bare("macOS"), bare("Linux")}},
	}
	var recs []*PostureCheckType
	for _, t := range types {
		recs = append(recs, &PostureCheckType{
			Meta: kind.Meta{ID: t.name, System: true}, Name: t.name, OperatingSystems: t.on, Version: "1",
		})
	}
	return recs
}
