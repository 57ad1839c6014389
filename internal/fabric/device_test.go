package fabric

import (
	"bytes"
	"testing"

	"netkeep.internal/internal/policy/posture"
	"netkeep.internal/internal/wire/message"
)

// FuzzReported reads anything: what is a report is no more than may be said at
// once, and each of them says what it is of.
func FuzzReported(f *testing.F) {
	f.Add(message.Marshal(&message.Posture{Reports: []message.PostureReport{
		{OS: &message.PostureOS{Type: "Linux", Version: "6.1"}, MACs: &message.PostureMACs{Addresses: []string{"00:11"}}},
		{Programs: &message.PosturePrograms{List: []message.PostureProgram{{Path: "/bin/a", Running: true}}}},
		{Woken: &message.PostureEvent{At: message.Timestamp{Seconds: 1}}, Unlocked: &message.PostureEvent{}},
	}}))
	f.Add(bytes.Repeat([]byte{0x0a, 0x02, 0x2a, 0x00}, maxReports+1))
	known := map[string]bool{posture.TypeOS: true, posture.TypeDomain: true, posture.TypeMAC: true, posture.TypeProcess: true, posture.TypeEndpoint: true}
	f.Fuzz(func(t *testing.T, body []byte) {
		all, err := reported(body)
		if err != nil && all != nil || len(all) > maxReports {
			t.Errorf("%d reports, %v", len(all), err)
		}
		for _, r := range all {
			if !known[r.TypeID] || r.ID != "" {
				t.Errorf("a report of %q for %q", r.TypeID, r.ID)
			}
		}
	})
}
