package command

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// momentHelp says how moments are written.
const momentHelp = "a time, as in 2026-01-31T08:00:00Z, how long ago, as in 90m or 3d, or the number of an audit entry"

// atFlag lets a command be asked for the past, and for what is decided of the future.
func atFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("at", "", "Moment to look at: "+momentHelp+"; or one to come, as in +4h, as far as it is decided now; the present if not given.")
}

// lookBack has the session ask for the network as it was, if a moment is given.
func (s *session) lookBack(text string) (err error) {
	if text != "" {
		s.at, err = s.moment(text)
	}
	return err
}

// moment writes a moment as the API wants it.
func (s *session) moment(text string) (string, error) {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil {
		return text, nil
	}
	if at, err := s.ahead(text); err == nil {
		return at.Format(time.RFC3339Nano), nil
	}
	if ago, err := longAgo(text); err == nil && ago >= 0 {
		return s.now().Add(-ago).UTC().Format(time.RFC3339Nano), nil
	}
	return "", Usagef("%q is no moment; it must be %s", text, momentHelp)
}

// toCome reports whether the session asks for a moment that is yet to come.
func (s *session) toCome() bool {
	at, err := time.Parse(time.RFC3339, s.at)
	return err == nil && at.After(s.now())
}

// maxDays is how many days may be said: a time.Duration holds few more.
const maxDays = 100_000

// longAgo reads how long ago something was, in days too.
func longAgo(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 32)
		if err == nil && (n > maxDays || n < -maxDays) {
			err = strconv.ErrRange
		}
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
