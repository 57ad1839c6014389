// Package spell finds the name that a misspelt one may stand for, so that an
// error can say it. It imports nothing of ours: the query language and the
// settings, which have nothing else in common, both use it.
package spell

import "strings"

// within is how many slips of the pen still look like the same name.
const within = 2

// Near returns up to three names that a misspelt one may stand for, the
// likeliest first. It returns none where nothing looks alike.
func Near(misspelt string, names []string) []string {
	const most = 3
	var found []string
	for d := range within + 1 {
		for _, name := range names {
			if len(found) < most && alike(misspelt, name) && distance(misspelt, name) == d {
				found = append(found, name)
			}
		}
	}
	return found
}

// alike reports whether the lengths of two names let them be near at all.
func alike(a, b string) bool {
	d := len(a) - len(b)
	return -within <= d && d <= within && min(len(a), len(b)) > within
}

// longest is how much of a misspelt name Nearest looks at.
const longest = 100

// Nearest returns the name that takes the fewest slips to get at, the first of
// several, however many slips that are. Where they are many, one that begins with what
// is there is nearer. It is empty only if there are no names.
func Nearest(misspelt string, names []string) string {
	misspelt = misspelt[:min(len(misspelt), longest)]
	nearest, least := "", -1
	for _, name := range names {
		d := distance(misspelt, name)
		if d > within && !begins(name, misspelt) {
			d += longest * longest
		}
		if least < 0 || d < least {
			nearest, least = name, d
		}
	}
	return nearest
}

// begins reports whether a name begins with a word, ignoring case.
func begins(name, word string) bool {
	return len(word) > 0 && len(name) >= len(word) && strings.EqualFold(name[:len(word)], word)
}

// distance counts the insertions, deletions and replacements of bytes between
// two names, ignoring case.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
