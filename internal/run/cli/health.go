package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/health"
	"netkeep.internal/internal/router/home"
	"netkeep.internal/internal/tool/command"
	"netkeep.internal/internal/tool/screen"
)

// Bounds on what is asked of a program on this machine that may be anything.
const (
	healthTime = 5 * time.Second
	healthSize = 64 << 10
)

func healthCommand(env Env) *cobra.Command {
	var at, data string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask the controller or router of this machine whether it can serve.",
		Long: "Ask the controller of this machine whether it can serve, where it tells monitoring: at the\n" +
			"address that its settings say, in NETKEEP_METRICS_LISTEN or the file of NETKEEP_CONFIG, or else\n" +
			"at " + config.MetricsAddress + ". The exit code is 0 if it can, and 1 if not, which is what\n" +
			"containers and scripts look at. With --router, it is the router of that directory.",
		Example: "  netkeep health\n  netkeep health --router /var/lib/netkeep-router\n  netkeep health --at 127.0.0.1:1282",
		Args:    command.Exactly(0),
	}
	cmd.Flags().StringVar(&at, "at", "", "Host and port where it tells monitoring, whatever the settings say.")
	cmd.Flags().StringVar(&data, "router", "", "Directory of a router to ask, in place of a controller.")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if at != "" && data != "" {
			return command.Usagef("give --at or --router: both say where to ask")
		}
		address, err := watched(env, at, data)
		if err != nil {
			return err
		}
		return healthy(cmd.Context(), cmd.OutOrStdout(), address)
	}
	return cmd
}

// watched is where the program that is asked tells monitoring.
func watched(env Env, at, router string) (string, error) {
	usual := config.MetricsAddress
	switch {
	case at != "":
	case router != "":
		set, err := home.ReadSettings(router, config.Sources{Environ: env.Environ})
		if err != nil {
			return "", err
		}
		at, usual = set.Metrics, home.MetricsAddress
	default:
		cfg, _, err := config.Load(config.Sources{Environ: env.Environ})
		if err != nil {
			return "", err
		}
		at = cfg.Metrics.Listen
	}
	switch at {
	case config.MetricsOff:
		return "", errors.New("its metrics are off, and its health with them: give it an address for them, or leave the setting out")
	case config.MetricsAuto:
		at = usual
	}
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return "", command.Usagef("%q is no host and port, such as %s", at, usual)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port), nil
}

// healthy says how it stands, and returns an error if that is badly.
func healthy(ctx context.Context, out io.Writer, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+health.ReadyPath, http.NoBody)
	if err != nil {
		return err
	}
	// No proxy is between this and its own machine.
	resp, err := (&http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: healthSize}).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("nothing says at %s how it is: %w; is it running, and does it tell monitoring there?", address, err)
	}
	defer resp.Body.Close()
	var answer health.Answer
	text, err := io.ReadAll(io.LimitReader(resp.Body, healthSize))
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil || answer.Status == "" {
		return fmt.Errorf("what answers at %s is neither a controller nor a router of netkeep", address)
	}
	var wrong []string
	for _, check := range answer.Checks {
		if !check.OK {
			wrong = append(wrong, check.Name+": "+check.Reason)
		}
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it cannot serve, and says %s: %s", answer.Status, strings.Join(wrong, "; "))
	}
	_, err = fmt.Fprintln(out, screen.Plain(strings.Join(append([]string{answer.Status}, wrong...), "; ")))
	return err
}
