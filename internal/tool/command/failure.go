package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/client/sso"
	"netkeep.internal/internal/lang/spell"
	"netkeep.internal/internal/tool/profile"
	"netkeep.internal/internal/tool/screen"
)

// usage is a mistake in how a command was called.
type usage struct{ error }

func (u usage) Unwrap() error { return u.error }

// Usagef is a mistake in how a command was called.
func Usagef(format string, args ...any) error { return usage{fmt.Errorf(format, args...)} }

// marked is a sentence that stands for one of the errors that scripts can tell
// apart.
type marked struct {
	text string
	as   error
}

func (m *marked) Error() string        { return m.text }
func (m *marked) Is(target error) bool { return target == m.as }

// markf is a sentence that errors.Is takes for another error.
func markf(as error, format string, args ...any) error {
	return &marked{fmt.Sprintf(format, args...), as}
}

var (
	// errDeclined says that somebody was asked and said no.
	errDeclined = errors.New("nothing was done")
	// errDiffers says that files and network are not the same, to who asked.
	errDiffers = errors.New("the network is not as the files say")
	// errBroken says that an assertion does not hold, to who asked.
	errBroken = errors.New("not every assertion holds")
	// errFound says that there is something to look at, to who asked for it.
	errFound = errors.New("something was found")
	// errCannot says that somebody cannot use a service, to who asked.
	errCannot = errors.New("there is a link that does not hold")
)

// The exit codes that scripts may rely on.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitMissing     = 3
	exitDenied      = 4
	exitRefused     = 5
	exitUnreachable = 6
	exitDeclined    = 7
	exitDiffers     = 8
	exitCannot      = 9
)

// Exit is the exit code for an error.
func Exit(err error) int {
	_, wrong := errors.AsType[usage](err)
	_, refused := errors.AsType[*remote.Error](err)
	_, refusal := errors.AsType[*enroll.Refusal](err)
	switch {
	case err == nil:
		return 0
	case wrong:
		return exitUsage
	case errors.Is(err, remote.ErrMissing), errors.Is(err, sso.ErrSigner):
		return exitMissing
	case slices.ContainsFunc([]error{remote.ErrDenied, profile.ErrNone, sso.ErrDeclined, sso.ErrForged}, func(no error) bool { return errors.Is(err, no) }):
		return exitDenied
	case refused, refusal:
		return exitRefused
	case errors.Is(err, remote.ErrUnreachable), errors.Is(err, sso.ErrAway):
		return exitUnreachable
	case slices.ContainsFunc([]error{errDeclined, screen.ErrNobody, screen.ErrSilent, screen.ErrAhead, sso.ErrOver}, func(no error) bool { return errors.Is(err, no) }):
		return exitDeclined
	case errors.Is(err, errDiffers), errors.Is(err, errBroken):
		return exitDiffers
	case errors.Is(err, errCannot):
		return exitCannot
	}
	return exitFailed
}

// Exactly wants so many arguments, which the usage line names.
func Exactly(n int) cobra.PositionalArgs { return between(n, n) }

// between wants some arguments; high is -1 for any number.
func between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case high >= 0 && len(args) > high:
			return Usagef("there is no place for %q in: %s%s", args[high], cmd.UseLine(), meantFor(cmd, args[high]))
		case len(args) < low:
			return Usagef("an argument is missing: %s", cmd.UseLine())
		}
		return nil
	}
}

// meantFor says of a word that may be meant for a flag how that is written.
func meantFor(cmd *cobra.Command, word string) (said string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		_, no := strconv.ParseBool(word)
		if said == "" && f.NoOptDefVal != "" && f.Value.String() == f.NoOptDefVal && (no == nil || f.Value.Type() != "bool") {
			said = fmt.Sprintf("; if it is for the flag, write --%s=%s", f.Name, word)
		}
	})
	return said
}

// Parent makes a command that only has others beneath it: it says what they
// are, and which one a wrong word may stand for.
func Parent(cmd *cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknown(cmd, args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

// unknown says that there is no such command, and what is near.
func unknown(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	return Usagef("there is no %q in %q%s", word, cmd.CommandPath(), suggest(word, names, cmd))
}

// suggest names what is near a wrong word, or else where to look.
func suggest(word string, names []string, cmd *cobra.Command) string {
	near := spell.Near(word, names)
	for _, name := range names {
		if len(near) < 3 && strings.HasPrefix(name, word) && !slices.Contains(near, name) {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return "; see: " + cmd.CommandPath() + " --help"
}

// FlagError says what is near a flag that there is not.
func FlagError(cmd *cobra.Command, err error) error {
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return usage{err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	word := "--" + missing.GetSpecifiedName()
	if len(missing.GetSpecifiedName()) == 1 {
		word = word[1:]
	}
	return Usagef("there is no flag %s%s", word, suggest(word, names, cmd))
}
