package posture

import (
	"strconv"

	"netkeep/internal/lang/fault"
)

// Response is what a device reports: the body of a request. Its type says
// which of the fields it has. Whether a second factor was shown is nothing
// that a device can report.
type Response struct {
	ID     string `json:"id" kind:"required,range=0..256"` // of the check that asked
	TypeID string `json:"typeId" kind:"required,enum=OS|DOMAIN|MAC|PROCESS|ENDPOINT_STATE"`

	Type    string `json:"type" kind:"required,range=0..64,when=typeId:OS"`
	Version string `json:"version" kind:"required,range=0..128,when=typeId:OS"`
	Build   string `json:"build" kind:"range=0..128,when=typeId:OS"`

	Domain string `json:"domain" kind:"required,range=0..256,when=typeId:DOMAIN"`

	MACAddresses []string `json:"macAddresses" kind:"required,range=0..256,when=typeId:MAC"`

	Path               string   `json:"path" kind:"range=0..4096,when=typeId:PROCESS"`
	IsRunning          bool     `json:"isRunning" kind:"when=typeId:PROCESS"`
	Hash               string   `json:"hash" kind:"range=0..256,when=typeId:PROCESS"`
	SignerFingerprints []string `json:"signerFingerprints" kind:"range=0..64,when=typeId:PROCESS"`

	Woken    bool `json:"woken" kind:"when=typeId:ENDPOINT_STATE"`
	Unlocked bool `json:"unlocked" kind:"when=typeId:ENDPOINT_STATE"`
}

// How many bytes the entries of lists may have.
const (
	maxMAC         = 64
	maxFingerprint = 256
)

// Validate refuses lists with entries that are too long, which the tags cannot
// say. Submit leaves such a response out.
func (r *Response) Validate() error {
	if err := validateList("macAddresses", r.MACAddresses, maxMAC); err != nil {
		return err
	}
	return validateList("signerFingerprints", r.SignerFingerprints, maxFingerprint)
}

func validateList(field string, list []string, longest int) error {
	for i, s := range list {
		if len(s) > longest {
			return fault.Invalid(field+"."+strconv.Itoa(i), "must be at most "+strconv.Itoa(longest)+" bytes long", s)
		}
	}
	return nil
}
