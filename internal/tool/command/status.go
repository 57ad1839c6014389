package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/tool/screen"
)

// status is how a controller is.
type status struct {
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`
	Uptime    int64     `json:"uptimeSeconds"`
	Health    string    `json:"health"`
	Checks    []check   `json:"checks"`
	Store     struct {
		Revision int64 `json:"revision"`
		Size     int64 `json:"sizeBytes"`
		Free     int64 `json:"diskFreeBytes"`
	} `json:"store"`
	Certificates []struct {
		Name     string    `json:"name"`
		NotAfter time.Time `json:"notAfter"`
		DaysLeft int       `json:"daysLeft"`
	} `json:"certificates"`
	Counts  map[string]int `json:"counts"`
	Routers struct {
		Total  int `json:"total"`
		Online int `json:"online"`
	} `json:"routers"`
	Fabric struct {
		Links    int `json:"links"`
		Circuits int `json:"circuits"`
	} `json:"fabric"`
	Sessions struct {
		API      int `json:"apiSessions"`
		Services int `json:"sessions"`
	} `json:"sessions"`
	TokensEnding []struct {
		Name      string    `json:"name"`
		ExpiresAt time.Time `json:"expiresAt"`
	} `json:"tokensEnding"`
	LastSnapshot *struct {
		Name string    `json:"name"`
		Time time.Time `json:"time"`
	} `json:"lastSnapshot"`
}

// check is one thing that a controller needs to serve.
type check struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Warning bool   `json:"warning"`
	Reason  string `json:"reason"`
}

func statusCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how a controller is, on one screen.",
		Long: "Show how a controller is, on one screen.\n\n" +
			"With --data a controller on this machine says whether it can serve, and what to do if not. It\n" +
			"needs no login, and works while the controller turns all connections away for want of its store.",
		Args: Exactly(0),
	}
	output := outputFlag(cmd, formText)
	data := cmd.Flags().String("data", "", "Data directory of a controller on this machine to ask whether it can serve, without a login.")
	whole := with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		st, raw, err := s.status(cmd.Context())
		if err != nil {
			return err
		}
		if *output != formText {
			return s.raw(*output, raw)
		}
		for _, line := range s.statusLines(st) {
			s.Printf("%s\n", line)
		}
		return nil
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *data != "" {
			return localStatus(cmd.Context(), env.Screen(), *data, *output)
		}
		return whole(cmd, args)
	}
	return cmd
}

func (s *session) status(ctx context.Context) (st status, raw jsontext.Value, err error) {
	if err = s.Get(ctx, "/status", nil, &raw); err == nil {
		err = json.Unmarshal(raw, &st)
	}
	return st, raw, err
}

// soon is for how many days a certificate must be good to be no worry.
const soon = 30

// statusLines is the screen.
func (s *session) statusLines(st status) []string {
	all := statusScreen{Screen: s.Screen}
	line := all.line
	line("controller", "%s, version %s, up %s", s.profile.Address, screen.Plain(st.Version), lasting(time.Duration(st.Uptime)*time.Second))
	all.health(st.Health, st.Checks)
	store := fmt.Sprintf("revision %d", st.Store.Revision)
	if st.Store.Size > 0 {
		store += ", " + bytesOf(st.Store.Size)
	}
	if st.Store.Free > 0 {
		store += ", " + bytesOf(st.Store.Free) + " free on its disk"
	}
	line("store", "%s", store)
	for _, c := range st.Certificates {
		left := fmt.Sprintf("%d days left, until %s", c.DaysLeft, c.NotAfter.UTC().Format(time.DateOnly))
		switch {
		case c.DaysLeft < 0:
			left = s.Bad("EXPIRED on " + c.NotAfter.UTC().Format(time.DateOnly))
		case c.DaysLeft < soon:
			left = s.Odd(left + ", which is soon")
		}
		line("certificate", "%s: %s", c.Name, left)
	}
	for _, t := range st.TokensEnding {
		line("token", "%s", s.Odd(fmt.Sprintf("%s ends in %s, on %s", screen.Plain(t.Name), lasting(t.ExpiresAt.Sub(s.now())), t.ExpiresAt.UTC().Format(time.DateOnly))))
	}
	line("routers", "%d of %d online, %d links, %d circuits", st.Routers.Online, st.Routers.Total, st.Fabric.Links, st.Fabric.Circuits)
	line("sessions", "%d of clients, %d to use or host services", st.Sessions.API, st.Sessions.Services)
	line("records", "%s", countsOf(st.Counts))
	if ending := st.Counts["endingWithinDay"]; ending > 0 {
		line("ending", "%s", s.Odd(fmt.Sprintf("%d within a day; see netkeep list grants --expiring 24h, and the same of policies", ending)))
	}
	if st.LastSnapshot == nil {
		line("snapshot", "%s", s.Odd("none yet; take one with: netkeep snapshot save"))
	} else {
		line("snapshot", "%s, %s ago", screen.Plain(st.LastSnapshot.Name), lasting(s.now().Sub(st.LastSnapshot.Time)))
	}
	return all.lines
}

// statusScreen is lines with a name each.
type statusScreen struct {
	*screen.Screen
	lines []string
}

func (s *statusScreen) line(name, format string, args ...any) {
	s.lines = append(s.lines, s.Strong(fmt.Sprintf("%-12s", name))+" "+s.Flow(fmt.Sprintf(format, args...), 13))
}

// health says whether a controller can serve, and why not.
func (s *statusScreen) health(health string, checks []check) {
	word := s.Bad(screen.Plain(health))
	switch health {
	case "ok":
		word = s.Good("ok")
	case "warning":
		word = s.Odd("warning")
	}
	s.line("health", "%s", word)
	for _, c := range checks {
		if c.OK {
			continue
		}
		word := s.Bad("FAILS")
		if c.Warning {
			word = s.Odd("warning")
		}
		s.line("", "%s %s: %s", word, screen.Plain(c.Name), screen.Plain(c.Reason))
	}
}

// countsOf says how many there are of everything, in a fixed order.
func countsOf(counts map[string]int) string {
	var parts []string
	for _, name := range []string{"identities", "services", "servicePolicies", "configs", "postureChecks", "terminators", "enrollments"} {
		if n, ok := counts[name]; ok {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(kind.Dashed(name), "-", " ")))
		}
	}
	return strings.Join(parts, ", ")
}

// lasting is a time as people say it.
func lasting(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

// bytesOf is a size as people say it.
func bytesOf(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	f, i := float64(n), 0
	for f >= 1000 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

func topCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show how a controller is, and go on showing it until you stop it.",
		Args:  Exactly(0),
	}
	every := cmd.Flags().Duration("every", 2*time.Second, "How often to look.")
	times := cmd.Flags().Int("times", 0, "How often to look in all; until you stop it if 0.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		if *every < 100*time.Millisecond {
			return Usagef("--every must be 100ms or more")
		}
		return s.top(cmd.Context(), *every, *times)
	})
	return cmd
}

func (s *session) top(ctx context.Context, every time.Duration, times int) error {
	var before status
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := 1; ; i++ {
		st, _, err := s.status(ctx)
		if err != nil {
			return err
		}
		lines := s.statusLines(st)
		if i > 1 {
			lines = append(lines, "", fmt.Sprintf("since %s ago: %+d writes, %+d client sessions, %+d routers online", every,
				st.Store.Revision-before.Store.Revision, st.Sessions.API-before.Sessions.API, st.Routers.Online-before.Routers.Online))
		}
		text := strings.Join(lines, "\n") + "\n"
		if s.Shows {
			text = "\x1b[H\x1b[2J" + text
		}
		s.Printf("%s", text)
		before = st
		if i == times {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
