package command

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/profile"
)

// clientRoot is where the API is that is open to everybody who may use a service.
const clientRoot = "//edge/client/v1"

// servicesCommand is the network as somebody sees who only uses it.
func servicesCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "services",
		Short: "List the services that you may use or host yourself, under which addresses, and whether you could now.",
		Long: "List the services that you may use or host yourself, as whoever is logged in or as the\n" +
			"identity in a file. The address is where a tunneler that intercepts finds the service; one\n" +
			"without such a config is used by its name: netkeep tunnel proxy NAME:PORT. The last column\n" +
			"says whether it could be used now, and if not what is in the way.",
		Example: "  netkeep services\n  netkeep services --identity laptop.json -o json",
		Args:    Exactly(0),
	}
	var l listing
	output := outputFlag(cmd, formTable, formName, formCSV)
	l.flags(cmd, services)
	file := cmd.Flags().StringP("identity", "i", "", "File of an identity to ask for, in place of whoever is logged in.")
	show := func(cmd *cobra.Command, s *session, _ []string) error { return s.ownServices(cmd, l, *output) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *file == "" {
			return with(env, show)(cmd, args)
		}
		s, leave, err := enterAs(cmd.Context(), env, *file)
		if err != nil {
			return err
		}
		defer leave()
		return show(cmd, s, args)
	}
	return cmd
}

// enterAs logs in with an identity's file, for one command: it has to leave.
func enterAs(ctx context.Context, env Env, file string) (s *session, leave func(), err error) {
	id, err := remote.ReadIdentity(file)
	if err != nil {
		return nil, nil, err
	}
	account := remote.Account{CA: id.ID.CA, File: file}
	if account.Address, err = remote.Address(id.API); err != nil {
		return nil, nil, err
	}
	account.Others = id.Others()
	client, err := remote.New(account)
	if err != nil {
		return nil, nil, err
	}
	in, err := authenticate(ctx, client, remote.Request{}, byCert)
	if err != nil {
		return nil, nil, wrongPassword(err, byCert)
	}
	client.Use(in.Token)
	leave = func() {
		_ = client.Call(ctx, remote.Request{Method: http.MethodDelete, Path: "/current-api-session", Repeatable: true}, nil)
	}
	if len(in.AuthQueries) > 0 {
		leave()
		return nil, nil, fmt.Errorf("the session also wants a second factor; log in with: netkeep login --identity %s", file)
	}
	return &session{Client: client, Screen: env.Screen(), name: file, profile: profile.Profile{Account: account}, now: env.Now}, leave, nil
}

// ownServices lists what the session's own identity may use.
func (s *session) ownServices(cmd *cobra.Command, l listing, form string) error {
	q := l.query(services)
	q.Path = clientRoot + "/current-identity/services"
	q.Query.Set("configTypes", strings.Join([]string{typeIntercept, typeOldClient}, ","))
	if form == formJSON || form == formYAML {
		return s.listed(cmd, services, q, nil, form)
	}
	q.Query.Set("fields", "id,name,permissions,config,obstacle")
	var recs []record
	total, err := s.Each(cmd.Context(), q, func(raw jsontext.Value) error {
		own := ownService{}
		if err := json.Unmarshal(raw, &own); err != nil {
			return err
		}
		recs = append(recs, own.record())
		return nil
	})
	if err != nil {
		return err
	}
	if len(recs) == 0 && form == formTable && q.Filter == "" {
		s.Notef("There are no services that you may use or host; an admin gives you some by a service policy.")
		return nil
	}
	return s.show(services, []column{{head: "service", path: "name"}, {head: "you may", path: "may"}, {head: "address", path: "address"}, {head: "now", path: "now"}}, recs, total, form)
}

// ownService is a service as one of its users sees it.
type ownService struct {
	ID          string                    `json:"id"`
	Name        string                    `json:"name"`
	Permissions []string                  `json:"permissions"`
	Config      map[string]jsontext.Value `json:"config"`
	Obstacle    string                    `json:"obstacle"`
}

// record is what a table shows.
func (o ownService) record() record {
	may := []string{}
	for verb, permission := range map[string]string{"dial": "Dial", "host": "Bind"} {
		if slices.Contains(o.Permissions, permission) {
			may = append(may, verb)
		}
	}
	slices.Sort(may)
	now := o.Obstacle
	if now == "" {
		now = "reachable"
	}
	rec := record{members: map[string]jsontext.Value{}}
	for name, text := range map[string]string{"id": o.ID, "name": o.Name, "may": strings.Join(may, ", "), "address": o.address(), "now": now} {
		rec.members[name], _ = jsontext.AppendQuote(nil, text)
	}
	return rec
}

// The types of configs that say where a service is to be found.
const (
	typeIntercept = "intercept.v1"
	typeOldClient = "ziti-tunneler-client.v1"
)

// address is where local programs find the service, or else its name.
func (o ownService) address() string {
	var is struct {
		Addresses  []string `json:"addresses"`
		PortRanges []struct {
			Low  int `json:"low"`
			High int `json:"high"`
		} `json:"portRanges"`
		Protocols []string `json:"protocols"`
	}
	if json.Unmarshal(o.Config[typeIntercept], &is) == nil && len(is.Addresses) > 0 {
		var ports []string
		for _, r := range is.PortRanges {
			port := fmt.Sprint(r.Low)
			if r.High > r.Low {
				port += fmt.Sprintf("-%d", r.High)
			}
			ports = append(ports, port)
		}
		var places []string
		for _, host := range is.Addresses {
			places = append(places, joined(host, strings.Join(ports, ",")))
		}
		text := strings.Join(places, " ")
		if !slices.Equal(is.Protocols, []string{"tcp"}) && len(is.Protocols) > 0 {
			text += " (" + strings.Join(is.Protocols, ", ") + ")"
		}
		return text
	}
	var old struct {
		Hostname string `json:"hostname"`
		Port     int    `json:"port"`
	}
	if json.Unmarshal(o.Config[typeOldClient], &old) == nil && old.Hostname != "" {
		return joined(old.Hostname, fmt.Sprint(old.Port))
	}
	return o.Name
}

// joined is a host with ports.
func joined(host, ports string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + ports
}
