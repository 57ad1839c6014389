package unit

import "strings"

// service is one that a package brings, for whoever enables it: a package starts nothing
// by itself, since one package is for controllers, routers and laptops.
type service struct {
	name, title string
	user        string // its own, which there is as long as the package
	dir         string // below /var/lib, where it keeps what it keeps
	command     string
	needs       string // a file without which there is nothing to run
	also        []string
	kept        []string // what it is kept from besides what all are
}

// alone is what keeps services from what other users of the machine do, unless they are
// to tell of it.
var alone = []string{"ProtectProc=invisible", "RemoveIPC=yes", "PrivateUsers=yes", "SystemCallFilter=~@privileged", "SystemCallErrorNumber=EPERM"}

var services = []service{
	{
		name: "netkeep-controller", title: "netkeep controller", user: "netkeep", dir: "netkeep",
		command: "run --config /etc/netkeep/controller.yml", needs: "/etc/netkeep/controller.yml",
		also: []string{`ExecReload=/bin/sh -c "kill -HUP $MAINPID"`}, kept: alone,
	},
	{
		name: "netkeep-router", title: "netkeep router", user: "netkeep-router", dir: "netkeep-router",
		command: "router run --data /var/lib/netkeep-router", needs: "/var/lib/netkeep-router/identity.json",
		kept: alone,
	},
	{
		// Posture checks may ask for the programs of the machine, so it sees them.
		name: "netkeep-tunneler@", title: "netkeep tunneler of %i", user: "netkeep-tunneler", dir: "netkeep-tunneler",
		command: "tunnel run --identity /var/lib/netkeep-tunneler/%i.json $ARGS", needs: "/var/lib/netkeep-tunneler/%i.json",
		also: []string{"EnvironmentFile=-/etc/netkeep/tunneler-%i.conf", "RuntimeDirectory=netkeep-tunneler-%i", "RuntimeDirectoryMode=0700"},
		kept: []string{"RemoveIPC=yes", "SystemCallErrorNumber=EPERM"},
	},
}

// Packaged are the files that a package brings for systemd, by what they are called:
// its services, their users, and the directories that belong to them.
func Packaged() map[string]string {
	var users, dirs strings.Builder
	files := map[string]string{}
	for _, s := range services {
		files[s.name+".service"] = s.text()
		users.WriteString("u " + s.user + " - \"" + strings.TrimSuffix(s.title, " of %i") + "\" /var/lib/" + s.dir + "\n")
		dirs.WriteString("d /var/lib/" + s.dir + " 0700 " + s.user + " " + s.user + "\n")
	}
	files["sysusers.conf"], files["tmpfiles.conf"] = users.String(), dirs.String()
	return files
}

// text is the unit.
func (s service) text() string {
	lines := []string{
		"[Unit]", "Description=" + s.title, "Documentation=man:netkeep(1)",
		"After=network-online.target", "Wants=network-online.target", "ConditionPathExists=" + s.needs, "",
		"[Service]", "Type=exec", "ExecStart=/usr/bin/netkeep " + s.command, "Restart=always", "RestartSec=5", "TimeoutStopSec=30",
		"User=" + s.user, "StateDirectory=" + s.dir, "StateDirectoryMode=0700", "UMask=0077", "CapabilityBoundingSet=", "PrivateDevices=yes",
	}
	lines = append(append(append(lines, s.also...), kept...), s.kept...)
	return strings.Join(append(lines, "", "[Install]", "WantedBy=multi-user.target", ""), "\n")
}
