package command

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"netkeep.internal/internal/tool/profile"
)

// maybe is a flag that may have a value and need not: --sso, --sso=Corp.
type maybe struct {
	on    bool
	value string
}

func (c *maybe) flag(flags *pflag.FlagSet, name, usage string) {
	flags.Var(c, name, usage)
	flags.Lookup(name).NoOptDefVal = "true"
}

// Set implements pflag.Value.
func (c *maybe) Set(text string) error {
	switch *c = (maybe{on: true}); text {
	case "true":
	case "false":
		c.on = false
	default:
		c.value = text
	}
	return nil
}

func (c *maybe) String() string {
	switch {
	case c.value != "":
		return c.value
	case c.on:
		return "true"
	}
	return "false"
}

// Type has help show no value, since there need not be one.
func (c *maybe) Type() string { return "bool" }

// signer takes the one that is named with --sso from what a login was given, and leaves
// the address. A word that stands behind --sso is an argument like others: of two, the
// signer is the one that is no address by its looks, and one alone is if there is a
// profile to log in to, and none at that address.
func (f *loginFlags) signer(args []string, book *profile.Book) ([]string, error) {
	named := f.sso.value
	if f.sso.on && named == "" {
		switch {
		case len(args) == 2 && isWord(args[0]) && !isWord(args[1]):
			named, args = args[0], args[1:]
		case len(args) == 2:
			named, args = args[1], args[:1]
		case len(args) == 1 && isWord(args[0]) && book.Current != "" && !knows(book, args[0]):
			named, args = args[0], nil
		}
	}
	if len(args) > 1 {
		return nil, Usagef("there is no place for %q in: netkeep login [ADDRESS]; a signer is named with --sso=SIGNER", args[1])
	}
	if named == "" {
		return args, nil
	}
	if f.sign.Signer != "" && f.sign.Signer != named {
		return nil, Usagef("--sso names %q and --signer %q: leave one of them out", named, f.sign.Signer)
	}
	f.sign.Signer = named
	return args, nil
}

// isWord reports whether something does not look like an address.
func isWord(text string) bool { return text != "localhost" && !strings.ContainsAny(text, ".:/") }

// knows reports whether there is a profile of a controller on a host.
func knows(book *profile.Book, host string) bool {
	for _, p := range book.Profiles {
		if rest, ok := strings.CutPrefix(p.Address, "https://"+strings.ToLower(host)); ok && strings.HasPrefix(rest, ":") {
			return true
		}
	}
	return false
}

// isToken reports whether an argument is an enrollment token, or a file that may have one.
func isToken(arg string) bool {
	_, err := os.Stat(arg)
	return err == nil || arg == "-" || strings.HasPrefix(arg, "eyJ")
}
