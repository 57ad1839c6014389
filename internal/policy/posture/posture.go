// Package posture owns what devices report of themselves and whether that
// passes posture checks. Reports belong to the API session that made them; a
// check without a report fails. Where reports are kept and who has which
// policies is for the caller to say: it must not import state, access, authn,
// rest or api.
package posture

import (
	"time"

	"netkeep.internal/internal/model"
)

// The types of posture checks, and of reports. Reports of programs are of
// TypeProcess for both kinds of checks on programs; TypeEndpoint is a report
// that no check is called after, and nobody reports TypeMFA.
const (
	TypeOS       = "OS"
	TypeDomain   = "DOMAIN"
	TypeMAC      = "MAC"
	TypeProcess  = "PROCESS"
	TypeMulti    = "PROCESS_MULTI"
	TypeMFA      = "MFA"
	TypeEndpoint = "ENDPOINT_STATE"
)

// Session is what checks look at of an API session.
type Session struct {
	ID          string
	MFAPassedAt *time.Time // when a code of its second factor was last shown; nil for never
	SDK         model.SDKInfo
}

// Outcome is what came of the responses of a device.
type Outcome struct {
	// Changed says that checks may come out differently now. A report of what
	// was known already changes nothing.
	Changed  bool
	Woken    bool
	Unlocked bool
}

// Prompts reports whether what the device reported makes a check ask for a new
// code.
func (o Outcome) Prompts(c *model.PostureCheck) bool {
	return c.TypeID == TypeMFA && !c.OnlyTells() && (o.Woken && c.PromptOnWake || o.Unlocked && c.PromptOnUnlock)
}
