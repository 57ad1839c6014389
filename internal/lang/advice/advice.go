// Package advice writes commands that people can run as they stand, where an answer says
// what to do. It imports nothing of ours.
package advice

import "strings"

// Command is one of the program's own, with its words as shells read them.
func Command(words ...string) string {
	quoted := []string{"netkeep"}
	for _, word := range words {
		quoted = append(quoted, quote(word))
	}
	return strings.Join(quoted, " ")
}

// quote writes a word as shells read it.
func quote(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:/", c)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
