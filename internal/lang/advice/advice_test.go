package advice_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/advice"
)

// TestCommand has a shell say what it takes the words of a command for.
func TestCommand(t *testing.T) {
	words := []string{"update", "it's", "", "a b", "$HOME", "`id`", `back\slash`, "a=b", "=ls", "#all", "@ann", "--tags", "x;y", "*", "ü", "two\nlines"}
	out, err := exec.Command("sh", "-c", "netkeep() { printf '%s\\0' \"$@\"; }; "+advice.Command(words...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
		t.Errorf("the shell reads %q, and it was %q", got, words)
	}
	if got := advice.Command("delete", "service-policy", "web.typo", "--yes"); got != "netkeep delete service-policy web.typo --yes" {
		t.Errorf("plain words are written %s", got)
	}
}
