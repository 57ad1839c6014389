package posture_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/policy/posture"
)

// accept reads a body and validates it, as the API does.
func accept(body string) (posture.Response, error) {
	b, err := kind.ReadBody([]byte(body))
	if err != nil {
		return posture.Response{}, err
	}
	r, err := responses.Read(b)
	if err == nil {
		err = r.Validate()
	}
	return r, err
}

func TestResponse(t *testing.T) {
	for _, test := range []struct {
		body string
		want posture.Response
	}{
		{`{"id":"a","typeId":"OS","type":"Linux","version":"1","build":"2","domain":"ignored"}`,
			posture.Response{ID: "a", TypeID: "OS", Type: "Linux", Version: "1", Build: "2"}},
		{`{"id":"a","typeId":"DOMAIN","domain":"d"}`, posture.Response{ID: "a", TypeID: "DOMAIN", Domain: "d"}},
		{`{"id":"a","typeId":"MAC","macAddresses":["1","2"]}`, posture.Response{ID: "a", TypeID: "MAC", MACAddresses: []string{"1", "2"}}},
		{`{"id":"a","typeId":"PROCESS","path":"p","isRunning":true,"hash":"h","signerFingerprints":["f"],"woken":true}`,
			posture.Response{ID: "a", TypeID: "PROCESS", Path: "p", IsRunning: true, Hash: "h", SignerFingerprints: []string{"f"}}},
		{`{"id":"a","typeId":"PROCESS","path":null,"isRunning":null}`, posture.Response{ID: "a", TypeID: "PROCESS"}},
		{`{"id":"","typeId":"ENDPOINT_STATE","woken":true,"unlocked":true}`, posture.Response{TypeID: "ENDPOINT_STATE", Woken: true, Unlocked: true}},
	} {
		got, err := accept(test.body)
		if err != nil {
			t.Errorf("%s: %v", test.body, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.body, diff)
		}
	}
}

// list is a JSON list of n times an entry.
func list(n int, entry string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(text(entry)+",", n), ",") + "]"
}

func TestRefusedResponses(t *testing.T) {
	for _, test := range []struct{ body, field string }{
		{`{"typeId":"OS","type":"Linux","version":"1"}`, "id"},
		{`{"id":null,"typeId":"DOMAIN","domain":"d"}`, "id"},
		{`{"id":1,"typeId":"DOMAIN","domain":"d"}`, "id"},
		{`{"id":"a"}`, "typeId"},
		{`{"id":"a","typeId":""}`, "typeId"},
		{`{"id":"a","typeId":"os"}`, "typeId"},
		{`{"id":"a","typeId":"MFA"}`, "typeId"},
		{`{"id":"a","typeId":"PROCESS_MULTI","path":"p"}`, "typeId"},
		{`{"id":"a","typeId":"OS","version":"1"}`, "type"},
		{`{"id":"a","typeId":"OS","type":"Linux"}`, "version"},
		{`{"id":"a","typeId":"DOMAIN"}`, "domain"},
		{`{"id":"a","typeId":"MAC"}`, "macAddresses"},
		{`{"id":"a","typeId":"MAC","macAddresses":"1"}`, "macAddresses"},
		{`{"id":"a","typeId":"MAC","macAddresses":[null]}`, "macAddresses"},
		{`{"id":"a","typeId":"PROCESS","isRunning":"yes"}`, "isRunning"},
		{`{"id":"a","typeId":"ENDPOINT_STATE","woken":1}`, "woken"},
		{fmt.Sprintf(`{"id":%q,"typeId":"DOMAIN","domain":"d"}`, strings.Repeat("i", 257)), "id"},
		{fmt.Sprintf(`{"id":"a","typeId":"OS","type":%q,"version":"1"}`, strings.Repeat("t", 65)), "type"},
		{fmt.Sprintf(`{"id":"a","typeId":"OS","type":"t","version":%q}`, strings.Repeat("1", 129)), "version"},
		{fmt.Sprintf(`{"id":"a","typeId":"OS","type":"t","version":"1","build":%q}`, strings.Repeat("b", 129)), "build"},
		{fmt.Sprintf(`{"id":"a","typeId":"DOMAIN","domain":%q}`, strings.Repeat("d", 257)), "domain"},
		{fmt.Sprintf(`{"id":"a","typeId":"MAC","macAddresses":%s}`, list(257, "a")), "macAddresses"},
		{fmt.Sprintf(`{"id":"a","typeId":"MAC","macAddresses":["1",%q]}`, strings.Repeat("0", 65)), "macAddresses.1"},
		{fmt.Sprintf(`{"id":"a","typeId":"PROCESS","path":%q}`, strings.Repeat("p", 4097)), "path"},
		{fmt.Sprintf(`{"id":"a","typeId":"PROCESS","hash":%q}`, strings.Repeat("h", 257)), "hash"},
		{fmt.Sprintf(`{"id":"a","typeId":"PROCESS","signerFingerprints":%s}`, list(65, "f")), "signerFingerprints"},
		{fmt.Sprintf(`{"id":"a","typeId":"PROCESS","signerFingerprints":[%q]}`, strings.Repeat("f", 257)), "signerFingerprints.0"},
	} {
		_, err := accept(test.body)
		refused, ok := errors.AsType[*fault.Error](err)
		if !ok || refused.Field != test.field {
			t.Errorf("%.80s: got %v, want an error of %s", test.body, err, test.field)
		}
	}
}

// TestLargest accepts everything that is just small enough.
func TestLargest(t *testing.T) {
	for _, body := range []string{
		fmt.Sprintf(`{"id":%q,"typeId":"OS","type":%q,"version":%q,"build":%q}`,
			strings.Repeat("i", 256), strings.Repeat("t", 64), strings.Repeat("1", 128), strings.Repeat("b", 128)),
		fmt.Sprintf(`{"id":"a","typeId":"DOMAIN","domain":%q}`, strings.Repeat("d", 256)),
		fmt.Sprintf(`{"id":"a","typeId":"MAC","macAddresses":%s}`, list(256, strings.Repeat("0", 64))),
		fmt.Sprintf(`{"id":"a","typeId":"PROCESS","path":%q,"hash":%q,"signerFingerprints":%s}`,
			strings.Repeat("p", 4096), strings.Repeat("h", 256), list(64, strings.Repeat("f", 256))),
	} {
		if _, err := accept(body); err != nil {
			t.Errorf("%.80s: %v", body, err)
		}
	}
}
