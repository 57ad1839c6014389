package posture

import (
	"strconv"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Response is what a device reports: the body of a request. Its type says
// which of the fields it has. Whether a second factor was shown is nothing
// that a device can report.
type Response struct {
	ID     string `json:"id" kind:"required,range=0..256" doc:"Id of the posture check that asked for the report."` // of the check that asked
	TypeID string `json:"typeId" kind:"required,enum=OS|DOMAIN|MAC|PROCESS|ENDPOINT_STATE" doc:"What the report is on, which decides the other fields that it has."`

	Type    string `json:"type" kind:"required,range=0..64,when=typeId:OS" doc:"Operating system of the device, such as Windows."`
	Version string `json:"version" kind:"required,range=0..128,when=typeId:OS" doc:"Version of the operating system."`
	Build   string `json:"build" kind:"range=0..128,when=typeId:OS" doc:"Build of the operating system."`

	Domain string `json:"domain" kind:"required,range=0..256,when=typeId:DOMAIN" doc:"Windows domain that the device belongs to."`

	MACAddresses []string `json:"macAddresses" kind:"required,range=0..256,when=typeId:MAC" doc:"Hardware addresses of the device, in hexadecimal with any separators."`

	Path               string   `json:"path" kind:"range=0..4096,when=typeId:PROCESS" doc:"Where the program is on the device."`
	IsRunning          bool     `json:"isRunning" kind:"when=typeId:PROCESS" doc:"Whether the program runs."`
	Hash               string   `json:"hash" kind:"range=0..256,when=typeId:PROCESS" doc:"Hash of the program's file, in hexadecimal."`
	SignerFingerprints []string `json:"signerFingerprints" kind:"range=0..64,when=typeId:PROCESS" doc:"Fingerprints of the certificates that have signed the program."`

	Woken    bool `json:"woken" kind:"when=typeId:ENDPOINT_STATE" doc:"Whether the device has just been woken."`
	Unlocked bool `json:"unlocked" kind:"when=typeId:ENDPOINT_STATE" doc:"Whether the device has just been unlocked."`

	At time.Time `json:"-"` // when it was woken or unlocked; zero for just now
}

// form is what the tags say of a response.
var form = kind.NewInput[Response]()

// Ask returns a report on a program as each of the checks would have asked for
// it that name the program; as nobody would, if none does.
func Ask(checks []*model.PostureCheck, r Response) (asked []Response) {
	for _, c := range checks {
		if _, named := namedPath(c, r.Path); named {
			r.ID = c.ID
			asked = append(asked, r)
		}
	}
	if asked == nil {
		return []Response{r}
	}
	return asked
}

// How many bytes the entries of lists may have.
const (
	maxMAC         = 64
	maxFingerprint = 256
)

// Validate refuses what the tags do, for a response that was not read from a
// body, and lists with entries that are too long, which they cannot say. Submit
// leaves such a response out.
func (r *Response) Validate() error {
	if err := form.Check(r); err != nil {
		return err
	}
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
