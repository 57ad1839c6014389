package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netkeep.internal/internal/tool/command"
	"netkeep.internal/internal/tool/unit"
)

// booted is there on a machine that systemd runs.
const booted = "/run/systemd/system"

func (t *tunnel) installCommand() *cobra.Command {
	u := &unit.Unit{}
	cmd := &cobra.Command{
		Use:   "install -- host|proxy|run [FLAGS] [SERVICE:PORT...]",
		Short: "Have systemd run a tunneler on this machine.",
		Long: "Write a unit for systemd that runs a tunneler with as few rights as it can do with, and\n" +
			"start it. What it runs is behind --. The identities are copied to /var/lib, where the\n" +
			"service may renew their certificates: those copies count from then on. It runs as a user\n" +
			"of its own, unless --user names one.",
		Example: "  sudo netkeep tunnel install --identity laptop.json -- run --intercept\n" +
			"  netkeep tunnel install --print --identity server.json -- host --allow 127.0.0.1:8080",
	}
	flags := cmd.Flags()
	show := flags.Bool("print", false, "Show the unit, and write nothing.")
	flags.StringVar(&u.User, "user", "", "User that it runs as, who must be there; one of its own if empty.")
	flags.StringVar(&u.Program, "program", "", "Path of netkeep for the service; this program's if empty.")
	flags.BoolVar(&u.Force, "force", false, "Write over what was changed since.")
	t.named(cmd, u)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := t.service(cmd, u, args); err != nil {
			return err
		}
		if *show {
			if err := u.Check(); err != nil {
				return err
			}
			t.env.Screen().Printf("%s", u.Text())
			if u.Makes() {
				t.env.Screen().Notef("It needs the user %s, and a rule that has systemd-resolved take names from them: netkeep tunnel install makes both", u.Name)
			}
			return nil
		}
		if err := ready(u.Root); err != nil {
			return err
		}
		_, missing := os.Stat(u.Path())
		done, err := u.Install()
		if err != nil {
			return err
		}
		t.installed(u, done)
		if err := started(u, missing == nil); err != nil || u.Root != "" {
			return err
		}
		t.env.Screen().Printf("Started %s: sudo netkeep tunnel status tells how it stands, journalctl -u %s what went wrong\n", u.Name, u.Name)
		return nil
	}
	return cmd
}

func (t *tunnel) uninstallCommand() *cobra.Command {
	u := &unit.Unit{}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the service that tunnel install made, and remove its files.",
		Long:  "Stop the service that tunnel install made, and remove what that wrote, and the user that it\nmade. The identities stay where they are: there may be no other copy.",
		Args:  command.Exactly(0),
	}
	cmd.Flags().BoolVar(&u.Force, "force", false, "Remove what was changed since, too.")
	t.named(cmd, u)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := ready(u.Root); err != nil {
			return err
		}
		if err := u.Removable(); err != nil {
			return err
		}
		if _, err := os.Stat(u.Path()); err == nil && u.Root == "" {
			if err := does("systemctl", "disable", "--now", u.Name); err != nil {
				return err
			}
		}
		user, err := left(u)
		if err != nil {
			return err
		}
		gone, err := u.Uninstall()
		if err != nil {
			return err
		}
		switch {
		case user == "":
		case u.Root != "":
			t.env.Screen().Printf("The user %s is left: on that machine, chown -R root: /var/lib/%s && userdel %s removes it\n", user, u.Name, user)
		default:
			t.env.Screen().Printf("Removed the user %s\n", user)
		}
		for _, path := range gone {
			t.env.Screen().Printf("Removed %s\n", path)
		}
		t.env.Screen().Printf("Its identities are left in %s\n", u.State())
		if u.Root != "" {
			return nil
		}
		return does("systemctl", "daemon-reload")
	}
	return cmd
}

func (t *tunnel) named(cmd *cobra.Command, u *unit.Unit) {
	cmd.Flags().StringVar(&u.Name, "name", unit.Usual, "Name of the service.")
	cmd.Flags().StringVar(&u.Root, "root", "", "Directory of an image of a machine to write to, where nothing is started.")
}

// service understands what the service is to run, as if it were run now.
func (t *tunnel) service(cmd *cobra.Command, u *unit.Unit, args []string) error {
	if cmd.ArgsLenAtDash() != 0 || len(args) == 0 {
		return command.Usagef("say behind -- what the service runs, such as: netkeep tunnel install --identity laptop.json -- run --intercept")
	}
	var wrong error
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "identity" {
			wrong = command.Usagef("--%s is for what the service runs: give it behind --", f.Name)
		}
	})
	if wrong != nil {
		return wrong
	}
	if len(t.opt.Identities) == 0 {
		return command.Usagef("give the file of an identity with --identity FILE; netkeep enroll TOKEN -o FILE makes one")
	}
	what, rest, err := Root(t.env).Find(append([]string{"tunnel"}, args...))
	if err != nil || !slices.Contains([]string{"host", "proxy", "run"}, what.Name()) {
		return command.Usagef("%q is nothing that a service can run: behind -- is host, proxy or run", args[0])
	}
	if err := what.ParseFlags(rest); err != nil {
		return command.FlagError(what, err)
	}
	for name, why := range map[string]string{"identity": "give it before --", "socket": "the service has one of its own"} {
		if what.Flags().Changed(name) {
			return command.Usagef("--%s is not for what is behind --: %s", name, why)
		}
	}
	if f := what.Flags().Lookup("intercept"); f != nil {
		u.Intercepts = f.Value.String() == "true"
	}
	u.Args, u.Identities = args, t.opt.Identities
	if u.Program == "" {
		if u.Program, err = os.Executable(); err != nil {
			return err
		}
	}
	return nil
}

// ready says why there can be no service on this machine.
func ready(root string) error {
	switch {
	case root != "":
		return nil
	case runtime.GOOS != "linux":
		return errors.New("services are made for systemd alone, which this system does not have: run netkeep tunnel by what starts services here")
	case os.Geteuid() != 0:
		return errors.New("only root may make and remove services: try with sudo; netkeep tunnel install --print shows what it would be")
	}
	if _, err := os.Stat(booted); err != nil {
		return errors.New("systemd does not run this machine: run netkeep tunnel by what starts services here; netkeep tunnel install --print shows a unit to go by")
	}
	return nil
}

// installed says what was done, and what is left to do.
func (t *tunnel) installed(u *unit.Unit, done *unit.Installed) {
	s := t.env.Screen()
	for _, path := range done.Files {
		s.Printf("Wrote %s\n", path)
	}
	for _, from := range slices.Sorted(maps.Keys(done.Copies)) {
		s.Printf("Copied %s to %s, which counts from now on: remove the other\n", from, done.Copies[from])
	}
	switch {
	case u.Root == "":
	case u.Makes():
		s.Printf("Nothing is started: on that machine, systemd-sysusers %s && systemctl enable --now %s does\n", u.Users(), u.Name)
	default:
		s.Printf("Nothing is started: on that machine, systemctl enable --now %s does\n", u.Name)
	}
}

// started has systemd take up the service. One that runs is stopped before its user
// is made: it may be running as one of the same name that there is only while it runs.
func started(u *unit.Unit, was bool) error {
	if u.Root != "" {
		return nil
	}
	if was {
		if err := does("systemctl", "stop", u.Name); err != nil {
			return err
		}
	}
	if u.Makes() {
		if err := does("systemd-sysusers", u.Users()); err != nil {
			return fmt.Errorf("the user %s cannot be made: name one that there is with --user: %w", u.Name, err)
		}
	}
	return errors.Join(does("systemctl", "daemon-reload"), does("systemctl", "enable", u.Name), does("systemctl", "restart", u.Name))
}

// left removes the user that was made for a service, when that has stopped, and
// returns their name. That of an image stays: who is what there, this machine does not
// know.
func left(u *unit.Unit) (name string, err error) {
	name, err = u.Made()
	if err != nil || name == "" || u.Root != "" {
		return name, err
	}
	if err := u.Reclaim(); err != nil {
		return "", err
	}
	if err := does("userdel", name); err != nil {
		return "", fmt.Errorf("the user %s cannot be removed: %w", name, err)
	}
	return name, nil
}

func does(program string, args ...string) error {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
