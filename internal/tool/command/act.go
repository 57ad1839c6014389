package command

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/tool/screen"
)

// The kinds that commands of their own are about.
var (
	identities     = noun{model.Identities.Def}
	services       = noun{model.Services.Def}
	edgeRouters    = noun{model.EdgeRouters.Def}
	routers        = noun{model.Routers.Def}
	cas            = noun{model.CAs.Def}
	configs        = noun{model.Configs.Def}
	enrollments    = noun{model.Enrollments.Def}
	authenticators = noun{model.Authenticators.Def}
)

// about makes a command beneath a verb that is about one record of a kind.
func about(env Env, n noun, short string, work func(cmd *cobra.Command, s *session, id, name string) error) *cobra.Command {
	return &cobra.Command{
		Use: n.Name + " NAME", Aliases: n.others(), Short: short, Args: Exactly(1), ValidArgsFunction: completeNames(env, n),
		RunE: with(env, func(cmd *cobra.Command, s *session, args []string) error {
			id, err := s.idOf(cmd.Context(), n, args[0])
			if err != nil {
				return err
			}
			return work(cmd, s, id, args[0])
		}),
	}
}

// verb makes a command that has kinds beneath it.
func verb(use, short string, kinds ...*cobra.Command) *cobra.Command {
	cmd := Parent(&cobra.Command{Use: use + " KIND NAME", Short: short})
	cmd.AddCommand(kinds...)
	return cmd
}

func enableCommand(env Env) *cobra.Command {
	cmd := verb("enable", "Let an identity or router in again.",
		about(env, identities, "Let an identity in again, and have its password work.", func(cmd *cobra.Command, s *session, id, name string) error {
			if err := s.Post(cmd.Context(), "/identities/"+id+"/enable", nil, nil); err != nil {
				return err
			}
			s.Printf("identity %s enabled\n", screen.Plain(name))
			return nil
		}))
	for _, n := range []noun{edgeRouters, routers} {
		cmd.AddCommand(switched(env, n, false))
	}
	return cmd
}

func disableCommand(env Env) *cobra.Command {
	var minutes int
	identity := about(env, identities, "Shut an identity out and end its sessions.", func(cmd *cobra.Command, s *session, id, name string) error {
		if err := s.Post(cmd.Context(), "/identities/"+id+"/disable", map[string]any{"durationMinutes": minutes}, nil); err != nil {
			return err
		}
		s.Printf("identity %s disabled\n", screen.Plain(name))
		return nil
	})
	identity.Flags().IntVar(&minutes, "minutes", 0, "For how long; until it is enabled if 0.")
	cmd := verb("disable", "Shut an identity or router out.", identity)
	for _, n := range []noun{edgeRouters, routers} {
		cmd.AddCommand(switched(env, n, true))
	}
	return cmd
}

// switched turns a router on or off.
func switched(env Env, n noun, off bool) *cobra.Command {
	short := "Let a router connect again."
	if off {
		short = "Keep a router from connecting."
	}
	return &cobra.Command{
		Use: n.Name + " NAME", Aliases: n.others(), Short: short, Args: Exactly(1), ValidArgsFunction: completeNames(env, n),
		RunE: with(env, func(cmd *cobra.Command, s *session, args []string) error {
			return s.write(cmd, []change{{Op: opPatch, Kind: n.Name, Target: args[0], Body: map[string]any{"disabled": off}}}, false, formText)
		}),
	}
}

func traceCommand(env Env) *cobra.Command {
	var off bool
	var lasts time.Duration
	var channels []string
	identity := about(env, identities, "Trace what an identity does for a while.", func(cmd *cobra.Command, s *session, id, name string) error {
		in := map[string]any{"enabled": !off, "channels": channels}
		if !off {
			in["duration"] = lasts.String()
		}
		var out struct {
			TraceID string    `json:"traceId"`
			Until   time.Time `json:"until"`
		}
		if err := s.do(cmd.Context(), http.MethodPut, "/identities/"+id+"/trace", in, &out); err != nil {
			return err
		}
		if off {
			s.Printf("identity %s is not traced any more\n", screen.Plain(name))
			return nil
		}
		s.Printf("identity %s is traced as %s until %s\n", screen.Plain(name), out.TraceID, out.Until.UTC().Format(time.RFC3339))
		return nil
	})
	identity.Flags().BoolVar(&off, "off", false, "Stop it.")
	identity.Flags().DurationVar(&lasts, "for", 10*time.Minute, "For how long.")
	identity.Flags().StringSliceVar(&channels, "channels", []string{"all"}, "What to trace: selectPath, establishPath or all.")
	return verb("trace", "Trace what an identity does.", identity)
}

func reenrollCommand(env Env) *cobra.Command {
	return verb("reenroll", "Take a credential back and invite its owner to enroll again.",
		about(env, edgeRouters, "Have an edge router enroll again.", func(cmd *cobra.Command, s *session, id, _ string) error {
			if err := s.Post(cmd.Context(), "/edge-routers/"+id+"/re-enroll", nil, nil); err != nil {
				return err
			}
			return s.printToken(cmd, edgeRouters, id)
		}),
		about(env, authenticators, "Have the owner of an authenticator enroll again.", func(cmd *cobra.Command, s *session, id, _ string) error {
			in := map[string]any{"expiresAt": s.now().Add(enrollTime).UTC().Format(time.RFC3339)}
			var made struct {
				ID string `json:"id"`
			}
			if err := s.Post(cmd.Context(), "/authenticators/"+id+"/re-enroll", in, &made); err != nil {
				return err
			}
			rec, err := s.find(cmd.Context(), enrollments, made.ID)
			if err == nil {
				s.Printf("%s\n", rec.text("jwt"))
			}
			return err
		}))
}

// enrollTime is how long an invitation is good if nobody says.
const enrollTime = 3 * time.Hour

func refreshCommand(env Env) *cobra.Command {
	var lasts time.Duration
	enrollment := about(env, enrollments, "Give an invitation more time, and print its new token.", func(cmd *cobra.Command, s *session, id, _ string) error {
		in := map[string]any{"expiresAt": s.now().Add(lasts).UTC().Format(time.RFC3339)}
		if err := s.Post(cmd.Context(), "/enrollments/"+id+"/refresh", in, nil); err != nil {
			return err
		}
		rec, err := s.find(cmd.Context(), enrollments, id)
		if err == nil {
			s.Printf("%s\n", rec.text("jwt"))
		}
		return err
	})
	enrollment.Flags().DurationVar(&lasts, "for", enrollTime, "For how long.")
	return verb("refresh", "Give an invitation more time.", enrollment)
}

func postureCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "posture NAME", Short: "Show what is known of the devices of an identity.", Args: Exactly(1), ValidArgsFunction: completeNames(env, identities),
	}
	failed := cmd.Flags().Bool("failed", false, "Show the requests that failed on posture checks instead.")
	output := outputFlag(cmd, formYAML)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		id, err := s.idOf(cmd.Context(), identities, args[0])
		if err != nil {
			return err
		}
		path := "/identities/" + id + "/posture-data"
		if *failed {
			path = "/identities/" + id + "/failed-service-requests"
		}
		var out jsontext.Value
		if err := s.Get(cmd.Context(), path, nil, &out); err != nil {
			return err
		}
		return s.raw(*output, out)
	})
	return cmd
}

func rolesCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "roles KIND", Short: "List the role attributes that are in use.", Args: Exactly(1),
		ValidArgs: []string{"identity", "service", "edge-router", "posture-check"},
		Example:   "  netkeep roles identity",
	}
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		n, err := named(args[0])
		if err != nil {
			return err
		}
		if n.Attributes == nil {
			return Usagef("%s have no role attributes; identities, services, edge routers and posture checks have", strings.ReplaceAll(n.Path, "-", " "))
		}
		_, err = s.Each(cmd.Context(), remote.List{Path: "/" + n.Name + "-role-attributes"}, func(raw jsontext.Value) error {
			text, _ := unquote(raw)
			s.Printf("%s\n", screen.Plain(text))
			return nil
		})
		return err
	})
	return cmd
}

func integrityCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "integrity",
		Short: "Check that everything that is stored fits together.",
		Args:  Exactly(0),
	}
	fix := cmd.Flags().Bool("fix", false, "Repair what can be repaired.")
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		path := "/database/check-data-integrity"
		if *fix {
			path = "/database/fix-data-integrity"
		}
		if err := s.Post(cmd.Context(), path, nil, nil); err != nil {
			return err
		}
		raw, err := s.integrityResult(cmd)
		if err != nil {
			return err
		}
		if *output != formText {
			return s.raw(*output, raw)
		}
		return s.tellIntegrity(raw)
	})
	return cmd
}

// integrityResult waits for the end of a scan.
func (s *session) integrityResult(cmd *cobra.Command) (jsontext.Value, error) {
	progress := s.Progress("Scanning, looks:", 0, s.now)
	defer progress.End()
	for {
		var raw jsontext.Value
		if err := s.Get(cmd.Context(), "/database/data-integrity-results", nil, &raw); err != nil {
			return nil, err
		}
		rec, err := readRecord(raw)
		if err != nil {
			return nil, err
		}
		if rec.at("inProgress").Kind() != 't' {
			return raw, nil
		}
		progress.Add(1)
		select {
		case <-time.After(200 * time.Millisecond):
		case <-cmd.Context().Done():
			return nil, cmd.Context().Err()
		}
	}
}

func (s *session) tellIntegrity(raw jsontext.Value) error {
	var out struct {
		Error   string `json:"error"`
		TooMany bool   `json:"tooManyErrors"`
		Results []struct {
			Description string `json:"description"`
			Fixed       bool   `json:"fixed"`
		} `json:"results"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	if out.Error != "" {
		return fmt.Errorf("the scan could not be completed: %s", out.Error)
	}
	for _, r := range out.Results {
		state := s.Bad("wrong")
		if r.Fixed {
			state = s.Good("fixed")
		}
		s.Printf("%s  %s\n", state, screen.Plain(r.Description))
	}
	if out.TooMany {
		s.Printf("There is more to find than is listed; run it again.\n")
	}
	if len(out.Results) == 0 {
		s.Printf("Everything fits together.\n")
	}
	return nil
}

func overrideCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{Use: "override", Short: "Give an identity another config for a service."})
	id := func(cmd *cobra.Command, s *session, words []string) (ids []string, err error) {
		for i, n := range []noun{identities, services, configs}[:len(words)] {
			found, err := s.idOf(cmd.Context(), n, words[i])
			if err != nil {
				return nil, err
			}
			ids = append(ids, found)
		}
		return ids, nil
	}
	write := func(method, said string) func(*cobra.Command, []string) error {
		return with(env, func(cmd *cobra.Command, s *session, args []string) error {
			ids, err := id(cmd, s, args)
			if err != nil {
				return err
			}
			in := []map[string]any{{"serviceId": ids[1], "configId": ids[2]}}
			if err := s.do(cmd.Context(), method, "/identities/"+ids[0]+"/service-configs", in, nil); err != nil {
				return err
			}
			s.Printf(said, screen.Plain(args[0]), screen.Plain(args[2]), screen.Plain(args[1]))
			return nil
		})
	}
	list := &cobra.Command{Use: "list IDENTITY", Short: "List the configs that an identity gets instead of services' own.", Args: Exactly(1), ValidArgsFunction: completeNames(env, identities)}
	list.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		ids, err := id(cmd, s, args)
		if err != nil {
			return err
		}
		var recs []record
		_, err = s.Each(cmd.Context(), remote.List{Path: "/identities/" + ids[0] + "/service-configs"}, func(raw jsontext.Value) error {
			rec, err := readRecord(raw)
			recs = append(recs, rec)
			return err
		})
		if err != nil {
			return err
		}
		return s.Write(rows([]column{{head: "service", path: "service"}, {head: "config", path: "config"}}, recs))
	})
	cmd.AddCommand(list,
		&cobra.Command{Use: "set IDENTITY SERVICE CONFIG", Short: "Have an identity get a config instead of the service's own of the same type.", Args: Exactly(3),
			RunE: write(http.MethodPost, "identity %s gets config %s for service %s\n")},
		&cobra.Command{Use: "remove IDENTITY SERVICE CONFIG", Short: "Take it back.", Args: Exactly(3),
			RunE: write(http.MethodDelete, "identity %s does not get config %s for service %s any more\n")})
	return cmd
}

func apiCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "api METHOD PATH",
		Short:   "Call an operation of the Management or Fabric API and print what it answers.",
		Example: "  netkeep api GET '/identities?limit=1'\n  netkeep api POST /identities -f identity.json\n  netkeep api GET /fabric/v1/links",
		Args:    Exactly(2),
	}
	file := cmd.Flags().StringP("file", "f", "", "File with the body, - for standard input.")
	output := cmd.Flags().StringP("output", "o", formJSON, "Form of the output: json or yaml.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		at, err := url.Parse(args[1])
		if err != nil || !strings.HasPrefix(at.Path, "/") {
			return Usagef("%q is no path of an operation; it looks like /identities?limit=1", args[1])
		}
		req := remote.Request{Method: strings.ToUpper(args[0]), Path: strings.TrimPrefix(at.Path, remote.Root), Query: at.Query()}
		if strings.HasPrefix("/"+at.Path, fabricRoot+"/") {
			req.Path = "/" + at.Path
		}
		if *file != "" {
			body, err := readFile(env, *file, maxDocument)
			if err != nil {
				return err
			}
			req.Body, req.Type = body, "application/json"
		}
		var out []byte
		if err := s.Call(cmd.Context(), req, &out); err != nil {
			return err
		}
		if !jsontext.Value(out).IsValid() {
			if s.Shows {
				out = screen.PlainLines(out)
			}
			_, err := s.Out.Write(out)
			return err
		}
		return s.raw(*output, out)
	})
	return cmd
}
