package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
)

// demoTag marks what the demo has made.
const demoTag = "demo"

func demoCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Fill a fresh controller with a small network to look at.",
		Args:  Exactly(0),
	}
	remove := cmd.Flags().Bool("remove", false, "Take it away again.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		if *remove {
			return s.removeDemo(cmd)
		}
		page, err := s.Page(cmd.Context(), remote.List{Path: "/services", Limit: 1}, 0)
		if err != nil {
			return err
		}
		if page.Total > 0 {
			return fmt.Errorf("there is a network here already (%s); the demo is for a fresh controller, and netkeep demo --remove takes an earlier one away",
				count(page.Total, "service", "services"))
		}
		p, err := s.change(cmd.Context(), demoNetwork(), false, "")
		if err != nil {
			return err
		}
		s.Printf("There is a small company now: %d records, and %d ways for somebody to use or host a service.\n\nLook at it:\n",
			p.Counts.Created, p.Access.Gained)
		for _, line := range []string{
			"list identities", "what-can alice", "who-can dial payroll", "explain bob payroll",
			"update identity bob --add-role finance --dry-run", "export network",
		} {
			s.Printf("  netkeep %s\n", line)
		}
		s.Printf("Take it away: netkeep demo --remove\n")
		return nil
	})
	return cmd
}

func (s *session) removeDemo(cmd *cobra.Command) error {
	var changes []change
	made := demoNetwork()
	for i := len(made) - 1; i >= 0; i-- {
		n, err := named(made[i].Kind)
		if err != nil {
			return err
		}
		name := made[i].label()
		page, err := s.Page(cmd.Context(), remote.List{Path: "/" + n.Path, Filter: "name = " + quoted(name) + " and tags." + demoTag + " = true", Limit: 1}, 0)
		if err != nil {
			return err
		}
		if page.Total > 0 {
			changes = append(changes, change{Op: opDelete, Kind: made[i].Kind, Target: name})
		}
	}
	if len(changes) == 0 {
		s.Printf("There is no demo to take away.\n")
		return nil
	}
	p, err := s.change(cmd.Context(), changes, false, "")
	if err != nil {
		return err
	}
	s.Printf("The demo is gone: %d records deleted.\n", p.Counts.Deleted)
	return nil
}

// demoNetwork is a small company: people with their devices, what they use, and
// who may.
func demoNetwork() []change {
	var all []change
	add := func(kind, name string, members map[string]any) {
		n, err := named(kind)
		if err != nil {
			panic(err) // a kind that there is not
		}
		members["name"], members["tags"] = name, map[string]any{demoTag: true}
		n.Complete(members)
		all = append(all, change{Op: opCreate, Kind: kind, Body: members})
	}
	roles := func(words string) []string { return strings.Fields(words) }
	for name, host := range map[string]string{"wiki": "10.0.0.10", "git": "10.0.0.11", "payroll": "10.0.0.12", "metrics": "10.0.0.13", "printer": "10.0.0.14"} {
		add("config", name+" address", map[string]any{"configTypeId": "intercept.v1", "data": map[string]any{
			"protocols": []string{"tcp"}, "addresses": []string{name + ".company.internal"}, "portRanges": []map[string]any{{"low": 443, "high": 443}},
		}})
		add("config", name+" host", map[string]any{"configTypeId": "host.v1", "data": map[string]any{"protocol": "tcp", "address": host, "port": 443}})
	}
	for name, attributes := range map[string]string{"wiki": "office", "printer": "office", "git": "engineering", "metrics": "engineering", "payroll": "finance"} {
		add("service", name, map[string]any{"roleAttributes": roles(attributes), "configs": []string{name + " address", name + " host"}})
	}
	for name, attributes := range map[string]string{
		"alice": "staff engineering", "bob": "staff", "carol": "staff finance", "dave": "staff engineering oncall", "erin": "contractors",
	} {
		add("identity", name, map[string]any{"type": "User", "roleAttributes": roles(attributes)})
		add("identity", name+"-laptop", map[string]any{"type": "Device", "roleAttributes": roles(attributes)})
	}
	add("identity", "office-server", map[string]any{"type": "Device", "roleAttributes": roles("servers")})
	add("identity", "cloud-server", map[string]any{"type": "Device", "roleAttributes": roles("servers")})
	for name, attributes := range map[string]string{"berlin": "europe", "lisbon": "europe", "new-york": "america"} {
		add("edge-router", name, map[string]any{"roleAttributes": roles(attributes)})
	}
	add("posture-check", "current systems", map[string]any{"typeId": "OS", "roleAttributes": roles("strict"), "operatingSystems": []map[string]any{
		{"type": "macOS", "versions": []string{">=14.0.0"}}, {"type": "Windows", "versions": []string{">=10.0.0"}}, {"type": "Linux", "versions": []string{}},
	}})
	policy := func(name, typ, who, what string, checks ...string) {
		add("service-policy", name, map[string]any{"type": typ, "identityRoles": []string{who}, "serviceRoles": []string{what}, "postureCheckRoles": checks})
	}
	policy("staff use the office", "Dial", "#staff", "#office")
	policy("engineers use engineering", "Dial", "#engineering", "#engineering")
	policy("finance uses payroll", "Dial", "#finance", "#finance", "#strict")
	policy("contractors use the wiki", "Dial", "#contractors", "@wiki")
	policy("servers host everything", "Bind", "#servers", "#all")
	add("edge-router-policy", "everybody uses europe", map[string]any{"identityRoles": []string{"#all"}, "edgeRouterRoles": []string{"#europe"}})
	add("edge-router-policy", "engineers use america too", map[string]any{"identityRoles": []string{"#engineering", "#servers"}, "edgeRouterRoles": []string{"#america"}})
	add("service-edge-router-policy", "everything everywhere", map[string]any{"serviceRoles": []string{"#all"}, "edgeRouterRoles": []string{"#all"}})
	return all
}
