package filter

import "strings"

// folded finds a text regardless of case, as if both texts were in lower case.
// It searches by Knuth, Morris and Pratt: one pass whatever the two texts are,
// and nothing allocated as long as the text searched is ASCII.
type folded struct {
	needle string // in lower case
	border []int  // border[i]: length of the longest proper border of needle[:i+1]
}

func newFolded(needle string) *folded {
	f := &folded{needle: strings.ToLower(needle)}
	f.border = make([]int, len(f.needle))
	matched := 0
	for i := 1; i < len(f.needle); i++ {
		matched = f.step(matched, f.needle[i])
		f.border[i] = matched
	}
	return f
}

// step returns how much of the needle is matched after one more byte.
func (f *folded) step(matched int, c byte) int {
	for matched > 0 && f.needle[matched] != c {
		matched = f.border[matched-1]
	}
	if f.needle[matched] == c {
		matched++
	}
	return matched
}

// in reports whether the needle is in s.
func (f *folded) in(s string) bool {
	if f.needle == "" {
		return true
	}
	matched := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x80 { // lower case may then have another length
			return strings.Contains(strings.ToLower(s), f.needle)
		}
		matched = f.step(matched, lowerASCII(c))
		if matched == len(f.needle) {
			return true
		}
	}
	return false
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}
