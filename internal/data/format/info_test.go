package format_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store/storetest"
)

// TestInfoStep takes what clients said out of identities and loses nothing of it,
// nor of the identities.
func TestInfoStep(t *testing.T) {
	step := format.Steps(nil)[3]
	for key, test := range map[string]struct {
		was, is string
		beside  map[string]string
	}{
		"identity/i1": {
			`{"id":"i1","createdAt":"T1","updatedAt":"T2","name":"one","envInfo":{ "os" : "linux" },"sdkInfo":{"type":"go"},"more":[1]}`,
			`{"id":"i1","createdAt":"T1","updatedAt":"T2","name":"one","more":[1]}`,
			map[string]string{"client-info/i1": `{"id":"i1","createdAt":"T1","updatedAt":"T2","envInfo":{"os":"linux"},"sdkInfo":{"type":"go"},"identityId":"i1"}`},
		},
		"identity/i2": {`{"id":"i2","sdkInfo":{"type":"go"}}`, `{"id":"i2"}`, map[string]string{"client-info/i2": `{"id":"i2","sdkInfo":{"type":"go"},"identityId":"i2"}`}},
		"identity/i3": {`{"id":"i3","envInfo":{},"sdkInfo":null}`, `{"id":"i3"}`, nil},
		"identity/i4": {`{"id":"i4", "name":"four"}`, `{"id":"i4", "name":"four"}`, nil},
		// Of a session it is what this client said, not what the last one did.
		"api-session/s1": {`{"id":"s1","sdkInfo":{"type":"go"}}`, `{"id":"s1","sdkInfo":{"type":"go"}}`, nil},
	} {
		value, err := step.Rewrite(key, []byte(test.was))
		if err != nil || string(value) != test.is {
			t.Errorf("%s is rewritten as %s: %v", key, value, err)
		}
		if again, err := step.Rewrite(key, value); err != nil || string(again) != test.is {
			t.Errorf("%s is then rewritten as %s: %v", key, again, err)
		}
		beside, err := step.Split(key, []byte(test.was))
		got := map[string]string{}
		for k, v := range beside {
			got[k] = string(v)
		}
		if len(got) == 0 {
			got = nil
		}
		if d := cmp.Diff(test.beside, got); d != "" || err != nil {
			t.Errorf("beside %s: %v\n%s", key, err, d)
		}
	}
	for _, bad := range []string{"", "x", "[]", `{"sdkInfo":`, `{"sdkInfo":{},"sdkInfo":{}}`} {
		if value, err := step.Rewrite("identity/i1", []byte(bad)); err == nil {
			t.Errorf("%q is rewritten as %s", bad, value)
		}
	}
}

// TestSplit has a step make two records of one, and stop in the middle. No batch
// has one of them without the other, and all are there in the end.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := filled(t, 100)
		step := mark("v1.2.0", "a", "!")
		step.Split = func(key string, value []byte) (map[string][]byte, error) {
			n := strings.TrimPrefix(key, "a/")
			return map[string][]byte{"c/" + n: value, "d/" + n: value}, nil
		}
		faults := storetest.NewFaulty(mem)
		for range 3 {
			faults.LoseNext(storetest.Put, nil)
		}
		faults.FailNext(storetest.Put, storetest.ErrInjected)
		steps := []format.Step{step}
		if err := migration(faults, steps).Run(t.Context()); !errors.Is(err, storetest.ErrInjected) {
			t.Fatal(err)
		}
		if err := migration(mem, steps).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := whole(100)
		for key, value := range maps.Clone(want) {
			n := key[2:]
			if want[key] = strings.TrimSuffix(value, "?"); strings.HasPrefix(key, "a/") {
				want["c/"+n], want["d/"+n] = n, n
			}
		}
		if d := cmp.Diff(want, contents(t, mem)); d != "" {
			t.Error(d)
		}
		for _, b := range batches(t, mem, 100) {
			var keys []string
			for _, op := range b.Ops {
				keys = append(keys, op.Key)
			}
			if len(keys) > small.Ops {
				t.Errorf("a batch has %d records", len(keys))
			}
			for _, key := range keys {
				if strings.HasPrefix(key, "a/") && (!slices.Contains(keys, "c/"+key[2:]) || !slices.Contains(keys, "d/"+key[2:])) {
					t.Errorf("a batch has %s alone: %v", key, keys)
				}
			}
		}
	})
}
