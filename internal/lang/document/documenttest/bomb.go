// Package documenttest has documents that nobody should be able to hurt a program
// with, for the tests of all that read some.
package documenttest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Bomb is a text that would fill the memory or take for ever.
type Bomb struct {
	Text string
	Want string // what is said of it
}

// Bombs are small enough for every reader.
var Bombs = map[string]Bomb{
	"aliases":        {laughs(), "aliases stand for more than"},
	"nested aliases": {nested(), "aliases stand for more than"},
	"anchors":        {"a:\n" + strings.Repeat("  - &x y\n", 5_000), "more than 100 values are marked"},
	"brackets":       {"a: " + strings.Repeat("[", 5_000), "lists and objects are in each other more than 64 times"},
	"braces":         {strings.Repeat("a: "+strings.Repeat("{a: ", 200)+strings.Repeat("}", 200)+"\n", 50), "more than 64 times"},
	"dashes":         {"a:\n" + strings.Repeat(strings.Repeat("- ", 1_000)+"x\n", 25), "more than 64 times"},
	"questions":      {strings.Repeat("? ", 5_000), "more than 64 times"},
	"stairs":         {stairs(100), "indented by more than 512 columns"},
}

// Refused has every bomb refused, in words and without taking much.
func Refused(t *testing.T, read func(text string) error) {
	const most = 50 << 20
	for name, bomb := range Bombs {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := read(bomb.Text)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), bomb.Want) {
				t.Errorf("got %.200v, want %s", err, bomb.Want)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > most {
				t.Errorf("to refuse it took %d MB", taken>>20)
			}
		})
	}
}

// laughs is a small text that would be an enormous one.
func laughs() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	return b.String()
}

// nested is one in which what is marked is in what is marked.
func nested() string {
	text := "&a0 [x,x,x,x,x,x,x,x,x,x]"
	for i := range 9 {
		text = fmt.Sprintf("&a%d [%s,%s*a%d]", i+1, text, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	return "a: " + text
}

// stairs leads down some columns in each line.
func stairs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", 6*i) + "a:\n")
	}
	return b.String()
}
