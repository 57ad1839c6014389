package config

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Print writes the settings as a file that Load reads, with a comment on each
// that says where it came from. Of a secret it says only whether there is one.
func (c *Config) Print(w io.Writer, from Origins) error {
	out := bufio.NewWriter(w)
	section := ""
	for s := range c.Settings() {
		indent := ""
		above, key, below := strings.Cut(s.Key, ".")
		if below {
			indent = "  "
			if above != section {
				fmt.Fprintf(out, "%s:\n", above)
			}
			section = above
		} else {
			key = s.Key
		}
		origin := from[s.Key]
		if origin == "" {
			origin = "default"
		}
		// The name of a file may hold anything.
		origin = strings.Map(printable, origin)
		if s.Secret && s.Get() != "" {
			fmt.Fprintf(out, "%s# %s: hidden # %s\n", indent, key, origin)
			continue
		}
		fmt.Fprintf(out, "%s%s: %s # %s\n", indent, key, s.yaml(), origin)
	}
	return out.Flush()
}

// PrintGiven writes those of the settings that are not as they are by default, as a file
// that Load reads. It leaves secrets out.
func (c *Config) PrintGiven(w io.Writer) error {
	usual, section := map[string]string{}, ""
	by := Default()
	for s := range by.Settings() {
		usual[s.Key] = s.Get()
	}
	out := bufio.NewWriter(w)
	for s := range c.Settings() {
		if s.Secret || s.Get() == usual[s.Key] {
			continue
		}
		above, key, below := strings.Cut(s.Key, ".")
		if !below {
			fmt.Fprintf(out, "%s: %s\n", s.Key, s.yaml())
			continue
		}
		if above != section {
			fmt.Fprintf(out, "%s:\n", above)
		}
		section = above
		fmt.Fprintf(out, "  %s: %s\n", key, s.yaml())
	}
	return out.Flush()
}

// printable leaves control characters out of a comment.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
		return '?'
	}
	return r
}

// yaml is the value as it would stand in a file.
func (s Setting) yaml() string {
	if hooks, ok := s.value.Interface().([]Webhook); ok {
		return cmp.Or(webhooksText(hooks), "[]")
	}
	list, ok := s.value.Interface().([]string)
	if !ok {
		return quote(s.Get())
	}
	quoted := make([]string, len(list))
	for i, item := range list {
		quoted[i] = quote(item)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// plain are texts that YAML takes as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9/.][A-Za-z0-9_./:-]*[A-Za-z0-9_/.-]$|^[A-Za-z0-9]$`)

// quote writes a text as a value of YAML, in JSON's way where it needs quotes.
func quote(text string) string {
	if plain.MatchString(text) && !strings.EqualFold(text, "null") && text != "..." {
		return text
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text can always be written
	}
	return string(quoted)
}
