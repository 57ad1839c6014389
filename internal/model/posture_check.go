package model

import (
	"github.com/Masterminds/semver/v3"

	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
)

// PostureCheck is a condition on the device that an identity uses. Its type
// says which of the fields it has.
type PostureCheck struct {
	kind.Meta

	Name           string   `json:"name" kind:"required,unique,range=1..256"`
	TypeID         string   `json:"typeId" kind:"required=create|patch,keep,enum=OS|PROCESS|DOMAIN|MAC|MFA|PROCESS_MULTI"`
	RoleAttributes []string `json:"roleAttributes" kind:"attributes"`

	Domains               []string          `json:"domains" kind:"required,range=1..,when=typeId:DOMAIN,nofilter"`
	MACAddresses          []string          `json:"macAddresses" kind:"required,range=1..,when=typeId:MAC,nofilter"`
	OperatingSystems      []OperatingSystem `json:"operatingSystems" kind:"required,range=1..,when=typeId:OS"`
	Process               *Process          `json:"process" kind:"required,when=typeId:PROCESS,nofilter"`
	Semantic              string            `json:"semantic" kind:"required,enum=AllOf|AnyOf,when=typeId:PROCESS_MULTI,nofilter"`
	Processes             []ProcessMulti    `json:"processes" kind:"required,range=1..,when=typeId:PROCESS_MULTI"`
	TimeoutSeconds        int               `json:"timeoutSeconds" kind:"when=typeId:MFA,nofilter"`
	PromptOnWake          bool              `json:"promptOnWake" kind:"when=typeId:MFA"`
	PromptOnUnlock        bool              `json:"promptOnUnlock" kind:"when=typeId:MFA"`
	IgnoreLegacyEndpoints bool              `json:"ignoreLegacyEndpoints" kind:"when=typeId:MFA,nofilter"`
}

// OperatingSystem is one that a check accepts, in some versions or all.
type OperatingSystem struct {
	Type     string   `json:"type" kind:"required,enum=Windows|WindowsServer|Android|iOS|Linux|macOS"`
	Versions []string `json:"versions" kind:"required"`
}

// Process is a program that must run.
type Process struct {
	OSType            string   `json:"osType" kind:"required,enum=Windows|WindowsServer|Android|iOS|Linux|macOS"`
	Path              string   `json:"path" kind:"required"`
	Hashes            []string `json:"hashes"`
	SignerFingerprint string   `json:"signerFingerprint" kind:"omit"`
}

// ProcessMulti is one of several programs.
type ProcessMulti struct {
	OSType             string   `json:"osType" kind:"required,enum=Windows|WindowsServer|Android|iOS|Linux|macOS"`
	Path               string   `json:"path" kind:"required"`
	Hashes             []string `json:"hashes"`
	SignerFingerprints []string `json:"signerFingerprints"`
}

// PostureChecks is the kind.
var PostureChecks = kind.Define(kind.Spec[PostureCheck]{
	Name: "posture-check",
	Path: "posture-checks",
	Doc:  "Create a posture check: a condition on the device that an identity uses.",
})

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

	Name             string            `json:"name" kind:"server,unique"`
	OperatingSystems []OperatingSystem `json:"operatingSystems" kind:"server"`
	Version          string            `json:"version" kind:"server,nofilter"`
}

// PostureCheckTypes is the kind.
var PostureCheckTypes = kind.Define(kind.Spec[PostureCheckType]{
	Name: "posture-check-type",
	Path: "posture-check-types",
	Doc:  "The types that posture checks may have.",
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
