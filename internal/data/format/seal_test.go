package format_test

import (
	"testing"

	"netkeep.internal/internal/data/format"
)

// TestSealStep seals what kinds call sealed, once, and nothing else.
func TestSealStep(t *testing.T) {
	steps := format.Steps(func(place string, plain []byte) []byte {
		return []byte("sealed1." + place + "." + string(plain[1:len(plain)-1]))
	})
	rewrite := steps[1].Rewrite
	for key, test := range map[string][2]string{
		"mfa/m1": {
			`{"id":"m1","secret":"ABC","recoveryCodes":[ 1 , 2 ],"lastStep":5}`,
			`{"id":"m1","secret":"sealed1.mfa/m1/secret.ABC","recoveryCodes":"sealed1.mfa/m1/recoveryCodes.1,2","lastStep":5}`,
		},
		"enrollment/e1": {
			`{"id":"e1", "method":"ott", "token":"T","jwt":"J"}`,
			`{"id":"e1","method":"ott","token":"sealed1.enrollment/e1/token.T","jwt":"sealed1.enrollment/e1/jwt.J"}`,
		},
		"enrollment/e2": {`{ "id":"e2", "jwt":null}`, `{ "id":"e2", "jwt":null}`},
		"service/s1":    {`{"token":"T","secret":"S"}`, `{"token":"T","secret":"S"}`},
		"mfas/m1":       {`{"secret":"S"}`, `{"secret":"S"}`},
	} {
		value := []byte(test[0])
		for range 2 { // the second time it meets its own work
			var err error
			if value, err = rewrite(key, value); err != nil || string(value) != test[1] {
				t.Errorf("%s is rewritten as %s: %v", key, value, err)
			}
		}
	}
	for _, bad := range []string{"", "x", "[]", `{"secret":`, `{"secret":"a","secret":"b"}`} {
		if value, err := rewrite("mfa/m1", []byte(bad)); err == nil {
			t.Errorf("%q is rewritten as %s", bad, value)
		}
	}
}
