package audit_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
)

// stored is what the store has of some writes: ten, of two entries each.
func stored(t *testing.T) *storetest.Memory {
	t.Helper()
	memory := storetest.NewMemory()
	s := open(t, memory.Another())
	defer s.Close()
	for i := range 10 {
		must(t, s.Update(t.Context(), ann, func(tx *state.Tx) error {
			for _, name := range []string{"a", "b"} {
				name = fmt.Sprint(name, i)
				if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, TerminatorStrategy: "random"}); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return memory
}

// rewrite changes the lines of the block with the entry of a number.
func rewrite(t *testing.T, m *storetest.Memory, number int64, change func(lines []string) []string) {
	t.Helper()
	key := "+audit-block/" + audit.ID(number)
	rec, ok, err := m.Get(t.Context(), key)
	if err != nil || !ok {
		t.Fatal(key, ok, err)
	}
	var block map[string]any
	must(t, json.Unmarshal(rec.Value, &block))
	lines, err := base64.StdEncoding.DecodeString(block["lines"].(string))
	must(t, err)
	changed := change(strings.Split(strings.TrimSuffix(string(lines), "\n"), "\n"))
	block["lines"] = base64.StdEncoding.EncodeToString([]byte(strings.Join(changed, "\n") + "\n"))
	value, err := json.Marshal(block)
	must(t, err)
	put(t, m, store.Op{Key: key, Value: value, Prev: store.Any})
}

func put(t *testing.T, m *storetest.Memory, ops ...store.Op) {
	t.Helper()
	_, err := m.Put(t.Context(), store.Head{}, ops)
	must(t, err)
}

// TestVerify tampers with the log in every way: a check finds out, and says where.
func TestVerify(t *testing.T) {
	block := func(number int64) string { return "+audit-block/" + audit.ID(number) }
	other := func(line string) string { return strings.Replace(line, `"ann"`, `"bob"`, 1) }
	tests := map[string]struct {
		tamper func(t *testing.T, m *storetest.Memory)
		want   string
	}{
		"nothing": {func(*testing.T, *storetest.Memory) {}, ""},
		"altered": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 5, func(l []string) []string { return []string{other(l[0]), l[1]} })
		}, "5-5 not as written"},
		"altered last": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 19, func(l []string) []string { return []string{l[0], other(l[1])} })
		}, "20-20 not as written"},
		"altered first": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 1, func(l []string) []string { return []string{other(l[0]), l[1]} })
		}, "1-1 not as written"},
		"two in a row": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 5, func(l []string) []string { return []string{other(l[0]), other(l[1])} })
		}, "5-6 not as written"},
		"no entry": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 5, func(l []string) []string { return []string{"{", l[1]} })
		}, "5-5 not as written"},
		"moved": {func(t *testing.T, m *storetest.Memory) {
			rewrite(t, m, 5, func(l []string) []string { return []string{l[1], l[0]} })
		}, "5-6 not as written"},
		"cut":           {func(t *testing.T, m *storetest.Memory) { rewrite(t, m, 5, func(l []string) []string { return l[:1] }) }, "6-6 missing"},
		"cut in front":  {func(t *testing.T, m *storetest.Memory) { rewrite(t, m, 5, func(l []string) []string { return l[1:] }) }, "5-5 not as written, 6-6 missing"},
		"removed":       {func(t *testing.T, m *storetest.Memory) { put(t, m, store.Op{Key: block(7), Prev: store.Any}) }, "7-8 missing"},
		"first removed": {func(t *testing.T, m *storetest.Memory) { put(t, m, store.Op{Key: block(1), Prev: store.Any}) }, "1-2 missing"},
		"last removed":  {func(t *testing.T, m *storetest.Memory) { put(t, m, store.Op{Key: block(19), Prev: store.Any}) }, "19-20 missing"},
		"all removed": {func(t *testing.T, m *storetest.Memory) {
			for n := int64(1); n < 20; n += 2 {
				put(t, m, store.Op{Key: block(n), Prev: store.Any})
			}
		}, "1-20 missing"},
		"no block": {func(t *testing.T, m *storetest.Memory) {
			put(t, m, store.Op{Key: block(7), Value: []byte("{"), Prev: store.Any})
		}, "7-8 missing"},
		"swapped": {func(t *testing.T, m *storetest.Memory) {
			one, _, err := m.Get(t.Context(), block(3))
			must(t, err)
			two, _, err := m.Get(t.Context(), block(9))
			must(t, err)
			swap := func(value []byte, from, to int64) []byte {
				return bytes.Replace(value, []byte(audit.ID(from)), []byte(audit.ID(to)), 1)
			}
			put(t, m, store.Op{Key: block(3), Value: swap(two.Value, 9, 3), Prev: store.Any}, store.Op{Key: block(9), Value: swap(one.Value, 3, 9), Prev: store.Any})
		}, "3-4 not as written, 9-10 not as written"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			memory := stored(t)
			tt.tamper(t, memory)
			s := open(t, memory.Another())
			defer s.Close()
			v, err := (&audit.Log{State: s}).Verify(t.Context())
			must(t, err)
			var said []string
			for _, f := range v.Flaws {
				said = append(said, fmt.Sprintf("%d-%d %s", f.From, f.To, f.What))
			}
			if got := strings.Join(said, ", "); got != tt.want || v.First != 1 || v.Last != 20 {
				t.Errorf("it says %q, want %q; %+v", got, tt.want, v)
			}
		})
	}
}
