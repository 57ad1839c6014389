package kind

import "strings"

// Verbs are what the Management API offers to do with records of a kind.
type Verbs uint8

const (
	Lists Verbs = 1 << iota
	Gets
	Creates
	Replaces
	Patches
	Deletes

	CRUD = Lists | Gets | Creates | Replaces | Patches | Deletes
)

// Has reports whether all of these are among them.
func (v Verbs) Has(verbs Verbs) bool { return v&verbs == verbs }

// Camel writes words with dashes as one word of an operation: "config-type"
// as "configType".
func Camel(words string) string {
	first, rest, _ := strings.Cut(words, "-")
	var b strings.Builder
	b.WriteString(first)
	for word := range strings.SplitSeq(rest, "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}
