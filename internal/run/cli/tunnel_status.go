package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/status"
	"netkeep.internal/internal/client/tunneler"
	"netkeep.internal/internal/tool/screen"
)

// answers has the tunneler tell how it stands, over a socket. One that nobody asked
// for by name is no reason not to run.
func (t *tunnel) answers(ctx context.Context) error {
	var socket *status.Socket
	var err error
	if t.socket != "" {
		socket, err = status.ListenAt(t.socket, t.env.Now)
	} else {
		socket, err = status.Listen(status.Place(t.env.Getenv), t.env.Now)
	}
	switch {
	case err != nil && t.socket != "":
		return err
	case errors.Is(err, status.ErrNotOffered):
		return nil
	case err != nil:
		t.opt.Log.Warn("netkeep tunnel status cannot ask this tunneler", "error", err)
		return nil
	}
	ctx, end := context.WithCancel(ctx)
	served := make(chan struct{})
	close(served) // unless it starts
	t.opt.Started = func(r *tunneler.Tunneler) {
		served = make(chan struct{})
		go func() {
			defer close(served)
			socket.Serve(ctx, r.Status)
		}()
	}
	t.silence = func() {
		end()
		<-served
		socket.Close()
	}
	return nil
}

func (t *tunnel) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [PID|IDENTITY]",
		Short: "Show how tunnelers on this machine stand.",
		Long: "Ask the tunnelers that this user runs how they stand: whom they act for, which services\n" +
			"lead where, what is connected, and what was last wrong. Root asks those of services too.\n" +
			"With a process id or the name of an identity only those are shown that have it.",
		Example: "  netkeep tunnel status\n  sudo netkeep tunnel status --json",
		Args:    cobra.MaximumNArgs(1),
	}
	asJSON := cmd.Flags().Bool("json", false, "Show a list of reports in JSON.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		reports, err := t.asked(cmd.Context(), args)
		if err != nil {
			return err
		}
		if *asJSON {
			text, err := json.Marshal(reports, json.Deterministic(true), jsontext.WithIndent("  "))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.env.Stdout, "%s\n", screen.EscapeJSON(text))
			return err
		}
		v := &tunnelView{Screen: t.env.Screen(), now: t.env.Now()}
		for i, r := range reports {
			if i > 0 {
				v.Printf("\n")
			}
			if err := v.show(r); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// asked is what tunnelers answer.
func (t *tunnel) asked(ctx context.Context, args []string) (all []*status.Report, err error) {
	paths := []string{t.socket}
	if t.socket == "" {
		paths = status.Find(status.Places(t.env.Getenv))
	}
	var wrong []error
	for _, path := range paths {
		r, err := status.Ask(ctx, path)
		switch {
		case err == nil && (len(args) == 0 || isOf(r, args[0])):
			all = append(all, r)
		case errors.Is(err, status.ErrSilent) && t.socket == "":
		case err != nil:
			wrong = append(wrong, err)
		}
	}
	switch {
	case len(all) > 0:
		return all, nil
	case len(wrong) > 0:
		return nil, errors.Join(wrong...)
	case len(args) > 0:
		return nil, fmt.Errorf("no tunneler runs here that has the process id %[1]s or acts for %[1]s; netkeep tunnel status shows all that do", args[0])
	}
	return nil, errors.New("no tunneler of this user runs here: start one (netkeep tunnel run); one that runs as a service answers to root: sudo netkeep tunnel status")
}

// isOf reports whether a tunneler has a process id or acts for an identity.
func isOf(r *status.Report, word string) bool {
	return strconv.Itoa(r.PID) == word || slices.ContainsFunc(r.Identities, func(i status.Identity) bool { return i.Name == word })
}

// tunnelView shows reports to people.
type tunnelView struct {
	*screen.Screen
	now time.Time
}

func (v *tunnelView) show(r *status.Report) error {
	v.Printf("%s %d, %s, for %s: %s\n", v.Strong("Tunneler"), r.PID, screen.Plain(r.Version), v.ago(r.Began), traffic(r.Connections))
	if d := r.Device; d != nil {
		v.Printf("Addresses are intercepted on %s; names get some of %s, and are found through %s.\n", screen.Plain(d.Name), screen.Plain(d.Range), screen.Plain(d.Resolver))
	}
	for _, table := range []struct {
		title string
		screen.Table
	}{
		{"Identities", identityTable(r)}, {"Hosted", hostedTable(r)}, {"Ports", portTable(r)},
		{"Intercepted", interceptTable(r)}, {"Overlaps", overlapTable(r)}, {"Last errors", v.errorTable(r)},
	} {
		if len(table.Rows) == 0 {
			continue
		}
		v.Printf("\n%s\n", v.Strong(table.title))
		if err := v.Write(table.Table); err != nil {
			return err
		}
	}
	if r.Omitted > 0 {
		v.Printf("\nThere was no room for %d more entries.\n", r.Omitted)
	}
	return nil
}

// ago is how long something is past.
func (v *tunnelView) ago(at time.Time) string {
	d := max(v.now.Sub(at), 0)
	switch {
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

func traffic(t status.Traffic) string {
	return fmt.Sprintf("%d connections now, %d in all, %s sent, %s received", t.Open, t.Total, amount(t.Sent), amount(t.Received))
}

// amount is how many bytes there are, to be read.
func amount(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), -1
	for value >= step && unit < 4 {
		value, unit = value/step, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[unit])
}

// counts are the cells of traffic.
func counts(t status.Traffic) []string {
	return []string{strconv.FormatInt(t.Open, 10), strconv.FormatInt(t.Total, 10), amount(t.Sent), amount(t.Received)}
}

var countHeads = []string{"NOW", "IN ALL", "SENT", "RECEIVED"}

func identityTable(r *status.Report) screen.Table {
	table := screen.Table{Heads: []string{"NAME", "CONTROLLER", "ROUTERS", "SERVICES", "PROBLEM"}}
	for _, i := range r.Identities {
		var routers []string
		problem := i.Error
		for _, one := range i.Routers {
			if one.Connected {
				routers = append(routers, one.Name)
			} else if problem == "" && one.Error != "" {
				problem = one.Name + ": " + one.Error
			}
		}
		name, controller := i.Name, i.Controller
		if name == "" {
			name, controller = i.File, "not logged in yet"
		} else if !i.Connected {
			controller += " (away)"
		}
		table.Rows = append(table.Rows, []string{name, controller, orNone(routers), strconv.Itoa(i.Services), problem})
	}
	return table
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

func hostedTable(r *status.Report) screen.Table {
	table := screen.Table{Heads: append([]string{"SERVICE", "IDENTITY", "LEADS TO", "ROUTERS", "HEALTH"}, countHeads...)}
	for _, h := range r.Hosted {
		row := append([]string{h.Service, h.Identity, h.Target, strconv.Itoa(h.Routers), standing(h)}, counts(h.Traffic)...)
		table.Rows = append(table.Rows, row)
	}
	return table
}

// standing is how a hosted service is, by its checks.
func standing(h status.Hosted) string {
	switch bad := slices.IndexFunc(h.Checks, func(c status.Check) bool { return c.Known && !c.Well }); {
	case h.Error != "":
		return h.Error
	case bad >= 0:
		return fmt.Sprintf("%s: %s", h.Checks[bad].Name, h.Checks[bad].Error)
	case len(h.Checks) == 0:
		return "not checked"
	case !slices.ContainsFunc(h.Checks, func(c status.Check) bool { return c.Known }):
		return "not known yet"
	}
	return "well"
}

func portTable(r *status.Report) screen.Table {
	table := screen.Table{Heads: append([]string{"SERVICE", "PORT", "IDENTITY"}, countHeads...)}
	for _, p := range r.Ports {
		who := p.Identity
		if who == "" {
			who = "nobody may dial it"
		}
		table.Rows = append(table.Rows, append([]string{p.Service, p.Address + "/" + p.Protocol, who}, counts(p.Traffic)...))
	}
	return table
}

func interceptTable(r *status.Report) screen.Table {
	table := screen.Table{Heads: append([]string{"SERVICE", "IDENTITY", "ADDRESSES", "PORTS"}, append(slices.Clone(countHeads), "PROBLEM")...)}
	for _, s := range r.Intercepted {
		ports := strings.Join(s.Ports, ",") + "/" + strings.Join(s.Protocols, ",")
		row := append([]string{s.Service, s.Identity, strings.Join(s.Addresses, ", "), ports}, counts(s.Traffic)...)
		table.Rows = append(table.Rows, append(row, s.Error))
	}
	return table
}

func overlapTable(r *status.Report) screen.Table {
	table := screen.Table{Heads: []string{"ADDRESS", "PORTS", "GOES TO", "NOT TO"}}
	for _, o := range r.Overlaps {
		table.Rows = append(table.Rows, []string{o.Address, o.Ports, o.Wins, o.Loses})
	}
	return table
}

func (v *tunnelView) errorTable(r *status.Report) screen.Table {
	const shown = 10
	table := screen.Table{Heads: []string{"AGO", "WHAT"}}
	for _, e := range r.Errors[max(0, len(r.Errors)-shown):] {
		table.Rows = append(table.Rows, []string{v.ago(e.At), e.Text})
	}
	return table
}

// sockets adds the flag of both sides of the socket.
func (t *tunnel) sockets(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&t.socket, "socket", "", "Socket over which tunnel status asks; one in $XDG_RUNTIME_DIR/netkeep, or /run/netkeep for root, if empty.")
}
