package unit

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Text is the unit. What it does not need it cannot do: it sees no home of anybody,
// writes nothing but its own state, and has one capability if it intercepts, and none
// if not.
func (u *Unit) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("[Unit]")
	line("Description=netkeep tunneler")
	line("After=network-online.target")
	line("Wants=network-online.target")
	line("")
	line("[Service]")
	line("Type=exec")
	line("ExecStart=%s", u.command())
	line("Restart=always")
	line("RestartSec=5")
	line("TimeoutStopSec=30")
	u.identity(line)
	line("StateDirectory=%s", u.Name)
	line("StateDirectoryMode=0700")
	line("RuntimeDirectory=%s", u.Name)
	line("RuntimeDirectoryMode=0700")
	line("UMask=0077")
	u.rights(line)
	for _, kept := range kept {
		line("%s", kept)
	}
	line("")
	line("[Install]")
	line("WantedBy=multi-user.target")
	return marked("#", b.String())
}

// identity says who the service is.
func (u *Unit) identity(line func(string, ...any)) {
	if u.User != "" {
		line("User=%s", u.User)
		return
	}
	line("User=%s", u.Name)
	if !u.Makes() {
		line("DynamicUser=yes")
	}
}

// rights are those that it needs.
func (u *Unit) rights(line func(string, ...any)) {
	if !u.Intercepts {
		line("CapabilityBoundingSet=")
		line("PrivateDevices=yes")
		return
	}
	line("AmbientCapabilities=CAP_NET_ADMIN")
	line("CapabilityBoundingSet=CAP_NET_ADMIN")
	line("DevicePolicy=closed")
	line("DeviceAllow=/dev/net/tun rw")
	if u.User == "root" {
		line("ReadWritePaths=/etc") // resolv.conf
	}
}

// kept is what everybody is kept from who has nothing to do with it.
var kept = []string{
	"NoNewPrivileges=yes",
	"ProtectSystem=strict",
	"ProtectHome=yes",
	"PrivateTmp=yes",
	"ProtectClock=yes",
	"ProtectControlGroups=yes",
	"ProtectHostname=yes",
	"ProtectKernelLogs=yes",
	"ProtectKernelModules=yes",
	"ProtectKernelTunables=yes",
	"LockPersonality=yes",
	"MemoryDenyWriteExecute=yes",
	"RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
	"RestrictNamespaces=yes",
	"RestrictRealtime=yes",
	"RestrictSUIDSGID=yes",
	"SystemCallArchitectures=native",
	"SystemCallFilter=@system-service",
	"LimitNOFILE=65536",
}

// command is what is run.
func (u *Unit) command() string {
	words := append([]string{u.Program, "tunnel"}, u.Args...)
	for _, path := range u.Identities {
		words = append(words, "--identity", filepath.Join("/var/lib", u.Name, filepath.Base(path)))
	}
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

// quoted is a word as units have it.
func quoted(word string) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`).Replace(word)
	if word == "" || strings.ContainsAny(word, ` '";`+"`") {
		return `"` + word + `"`
	}
	return word
}

// Rule has the machine's resolver take names from the service: it goes by who asks,
// and takes nothing from a user for the capability alone.
func (u *Unit) Rule() string {
	user := u.User
	if user == "" {
		user = u.Name
	}
	return marked("//", fmt.Sprintf(`polkit.addRule(function(action, subject) {
    var may = [
        "org.freedesktop.resolve1.set-dns-servers", "org.freedesktop.resolve1.set-domains",
        "org.freedesktop.resolve1.set-default-route", "org.freedesktop.resolve1.revert",
        "org.freedesktop.resolve1.set-dnssec", "org.freedesktop.resolve1.set-dns-over-tls",
        "org.freedesktop.resolve1.set-llmnr", "org.freedesktop.resolve1.set-mdns"
    ];
    if (subject.user == %q && may.indexOf(action.id) >= 0) {
        return polkit.Result.YES;
    }
});
`, user))
}
