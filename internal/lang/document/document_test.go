package document

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/document/documenttest"
)

// TestBombs refuses each before it has taken much.
func TestBombs(t *testing.T) {
	read := func(text string) error {
		var v any
		return Decode([]byte(text), &v)
	}
	documenttest.Refused(t, read)
	for name, test := range map[string]struct{ text, want string }{
		"long text":       {"a: " + strings.Repeat("x", 20<<20), "line 1: a text is longer than 1048576 bytes"},
		"long quoted":     {"a:\n- \"" + strings.Repeat("x, ", 8<<20) + "\"", "line 2: a text is longer"},
		"after a block":   {"- a: |\n    [\n  b: " + strings.Repeat("[", 100), "line 3: lists and objects"},
		"after a quote":   {"a: \"x\n y\" \nb: " + strings.Repeat("[", 100), "line 3: lists and objects"},
		"after a comment": {"# it's\nb: " + strings.Repeat("[", 100), "line 2: lists and objects"},
	} {
		if err := read(test.text); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %.200v, want %s", name, err, test.want)
		}
	}
}

// TestPlain takes what people write for what it is.
func TestPlain(t *testing.T) {
	for name, text := range map[string]string{
		"comments": "# Don't \"quote\na:\n  - {name: \"it's\"} # isn't [\n" + strings.Repeat("# "+strings.Repeat("[", 2000)+"\n", 1000),
		"a block":  "a: |\n" + strings.Repeat("  - [ { \" & text\n", 5000) + "b: x\n",
		"folded":   "- a: >-\n" + strings.Repeat("      [[ said ' he\n", 20) + "  b: &x y\n",
		"quotes":   "a: \"" + strings.Repeat("[ & { ", 500) + "\"\n",
		"texts":    strings.Repeat("- it's [not] {so} bad - is it? & so on\n", 2000),
		"JSON":     "{\"a\":[" + strings.Repeat("{\"b\":\"[\"},", 5000) + "{\"b\":\"\\\"[\"}]}",
		"aliases":  "a: &x [1, 2]\nb:\n" + strings.Repeat("  - *x\n", 1000),
		"PEM":      "a: |\n  -----BEGIN CERTIFICATE-----\n" + strings.Repeat("  "+strings.Repeat("A+/=", 16)+"\n", 30) + "  -----END CERTIFICATE-----\n",
	} {
		t.Run(name, func(t *testing.T) {
			var v any
			if err := Decode([]byte(text), &v); err != nil {
				t.Errorf("%.300v", err)
			}
		})
	}
}

// TestRead keeps nothing of a file that is too large, or has something in it that is.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	for name, test := range map[string]struct {
		text string
		max  int64
		want string
	}{
		"whole": {"a: b", 4, ""}, "larger": {"a: bc", 4, "it has more than 4 bytes"},
		"one text": {"a: " + strings.Repeat("x", 60<<20), 64 << 20, "line 1: a text is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			text, err := Read(file, test.max)
			runtime.ReadMemStats(&after)
			if got := fmt.Sprint(err); err == nil && string(text) != test.text || !strings.Contains(got, test.want) {
				t.Errorf("read %d bytes: %v", len(text), err)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
				t.Errorf("took %d bytes", taken)
			}
		})
	}
	if _, err := ReadFrom(strings.NewReader("12345"), 4); err == nil {
		t.Error("more was read than may be")
	}
}

// FuzzDecode reads anything without harm, and what it refuses it says on a line.
func FuzzDecode(f *testing.F) {
	for _, bomb := range documenttest.Bombs {
		if len(bomb.Text) < 10_000 {
			f.Add(bomb.Text)
		}
	}
	f.Add("a: |\n  x\n- 'it''s'\n")
	f.Fuzz(func(t *testing.T, text string) {
		var v any
		if err := Decode([]byte(text), &v); err != nil && (Reason(err) == "" || strings.Contains(Reason(err), "\n")) {
			t.Errorf("%q", Reason(err))
		}
	})
}

func BenchmarkScan(b *testing.B) {
	text := strings.Repeat("  - name: identity-000001\n    type: Device\n    roleAttributes: [one-1, two-1, three-1]\n", 10_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := scan(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
