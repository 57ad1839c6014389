// Package config is the controller's settings: one YAML file, environment
// variables over it, flags over those. Each setting is a field of Config, and
// everything about it follows from the field and its tags: key, variable,
// flag, default, what values are right, and its entry in the reference. Settings
// of other programs are structs with the same tags, and come the same way.
package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// Config is every setting. Default returns one that can be used.
//
// The words of a tag: default is the value of a setting that nobody gave;
// range bounds numbers, durations and sizes; enum lists the only right values;
// form says what kind of text it is; eg is a right value where the default is
// empty; secret keeps the value out of everything that is shown. A text may be
// empty if its default is.
type Config struct {
	Data      string `yaml:"data" default:"data" form:"directory" doc:"Directory that holds everything the controller keeps."`
	Listen    string `yaml:"listen" default:"127.0.0.1:1280" form:"address" doc:"Host and port to serve HTTPS on."`
	Advertise string `yaml:"advertise" form:"place" eg:"controller.example.org:1280" doc:"Host and port under which clients reach the controller, which its certificate is made out to; the listen address if empty."`

	Names []string `yaml:"names" form:"host" eg:"old.example.org,10.0.0.7" doc:"Names and IP addresses that the controller's certificate is made out to besides those that it advertises: those under which clients and routers know it from before."`

	Router          string `yaml:"router" form:"address" eg:"127.0.0.1:3022" doc:"Host and port of a router that runs inside the controller, for a network that needs no other yet: where clients connect, and other routers. None runs if empty."`
	RouterAdvertise string `yaml:"routerAdvertise" form:"place" eg:"controller.example.org:3022" doc:"Host and port under which clients and other routers reach router; that address if empty, with the host of advertise if it is all of the machine's addresses."`

	Join string `yaml:"join" eg:"netkeep-join-1.eyJhIjpbImNvbnRyb2xsZXI" doc:"Token of netkeep cluster invite with which this controller joins a network at its first start; it works once, and a controller that has joined does not look at it. In a variable other users of the machine do not see it."`

	Management struct {
		Listen    string `yaml:"listen" form:"address" eg:"127.0.0.1:1290" doc:"Host and port to serve the Management and Fabric APIs on, which listen then does not serve; listen serves all APIs if empty."`
		Advertise string `yaml:"advertise" form:"place" eg:"admin.example.org:1290" doc:"Host and port under which admins reach management.listen; that address if empty, with the host of advertise if it is all of the machine's addresses."`
	} `yaml:"management"`

	Routers struct {
		Listen    string `yaml:"listen" form:"address" eg:"127.0.0.1:6262" doc:"Host and port for routers to connect to, which then do not connect to listen; they use that port as clients do if empty."`
		Advertise string `yaml:"advertise" form:"place" eg:"controller.example.org:6262" doc:"Host and port under which routers reach routers.listen, which their invitations say; that address if empty, with the host of advertise if it is all of the machine's addresses."`

		Reserve          string `yaml:"reserve" form:"address" eg:"10.0.0.1:1283" doc:"Host and port for routers of another controller while that is gone and this one answers in its place; it never does if empty."`
		ReserveAdvertise string `yaml:"reserveAdvertise" form:"place" eg:"controller-1.example.org:1283" doc:"Host and port under which routers reach routers.reserve; that address if empty, with the host of advertise if it is all of the machine's addresses."`
	} `yaml:"routers"`

	Admin struct {
		Username     string `yaml:"username" default:"admin" doc:"User name of the first admin; read at the first start only."`
		Password     string `yaml:"password" eg:"correct-horse-battery-staple" doc:"Password of the first admin, read at the first start only; one is made and printed if there is none." secret:"true"`
		PasswordFile string `yaml:"passwordFile" form:"file" eg:"/run/secrets/admin" doc:"File with the password of the first admin; not read if admin.password is given."`
	} `yaml:"admin"`

	TLS struct {
		Cert string `yaml:"cert" form:"file" eg:"/etc/netkeep/server.crt" doc:"PEM file with the certificate chain to serve, instead of one of our own."`
		Key  string `yaml:"key" form:"file" eg:"/etc/netkeep/server.key" doc:"PEM file with the key of tls.cert, which only its owner may read; if that is root, a group may too."`
	} `yaml:"tls"`

	Keys struct {
		Algorithm string `yaml:"algorithm" default:"P-256" enum:"P-256|P-384|RSA-2048|RSA-3072|RSA-4096|Ed25519" doc:"Algorithm of keys that are yet to be made."`
	} `yaml:"keys"`

	Store Store `yaml:"store"`

	Cluster struct {
		Listen    string `yaml:"listen" form:"place" eg:"10.0.0.1:1282" doc:"Host and port for other controllers of the network, which keep the store together with this one; nobody can join if empty, unless the store is a cluster by address."`
		Advertise string `yaml:"advertise" form:"place" eg:"controller-1.example.org:1282" doc:"Host and port under which other controllers reach cluster.listen; that address if empty, with the host of advertise if it is all of the machine's addresses."`
		Announce  bool   `yaml:"announce" default:"false" doc:"Tell clients by the word HA_CONTROLLER among the capabilities of /version that there are several controllers. OpenZiti's SDKs for C look for others then from 1.18 on, and those before 1.9 cannot log in any more: leave it off unless all of them are new."`
	} `yaml:"cluster"`

	OIDC struct {
		Enabled Switch `yaml:"enabled" default:"false" doc:"Let clients log in by OpenID Connect, below /oidc, and tell them so by the word OIDC_AUTH among the capabilities of /version. OpenZiti's SDKs for Go from 1.2.3 on log in this way wherever it is offered. Routers of netkeep and of OpenZiti 2.0 take them then, and those of 1.6 once they are started anew; earlier ones of OpenZiti do not. With auto clients may log in this way, and are told so only while every edge router that has enrolled and is not disabled has shown that it takes them, and there is one; and where there are posture checks, that devices report to it, which those of 1.6 do not, nor those of 2.0 as they should for checks of type OS and PROCESS_MULTI."`
	} `yaml:"oidc"`

	Snapshots struct {
		Every time.Duration `yaml:"every" default:"0s" range:"0s.." doc:"How often a snapshot of the store is written by itself, such as 24h; at least 1m, or 0s for never."`
		Keep  int           `yaml:"keep" default:"7" range:"1..10000" doc:"How many of the snapshots that were written by themselves are kept; older ones are deleted, and those that somebody asked for never are."`
		Dir   string        `yaml:"dir" form:"directory" eg:"/mnt/backup/netkeep" doc:"Directory for the snapshots of this controller and no other, best on another disk; snapshots in the data directory if empty."`
	} `yaml:"snapshots"`

	Audit struct {
		Age     time.Duration `yaml:"age" default:"8760h" range:"1h.." doc:"How long entries of the audit log are kept in the store."`
		Entries int           `yaml:"entries" default:"1000000" range:"1000..100000000" doc:"How many entries of the audit log are kept in the store; the oldest are forgotten."`
		// Circuits is whether each has an entry.
		Circuits bool `yaml:"circuits" default:"false" doc:"Whether every circuit that is made has an entry of its own in the audit log; otherwise they are counted, by who dials and by service."`
		Size     Size `yaml:"size" default:"1GiB" range:"16MiB.." doc:"How much of the store the audit log may take, compressed; the oldest entries are forgotten."`

		ArchiveDir  string        `yaml:"archiveDir" form:"directory" eg:"/mnt/archive/netkeep" doc:"Directory for the entries of the audit log that the store does not keep any longer, of this controller and no other, best on another disk; audit in the data directory if empty."`
		ArchiveSize Size          `yaml:"archiveSize" default:"10GiB" range:"0.." doc:"How much this archive may take; the oldest files are deleted. 0 for no archive: what leaves the store is gone then."`
		ArchiveAge  time.Duration `yaml:"archiveAge" default:"0s" range:"0s.." doc:"How long files of the archive are kept, 0s for any time."`

		File          string `yaml:"file" form:"file" eg:"/var/log/netkeep/audit.jsonl" doc:"File that entries of the audit log are added to as they happen, one a line in JSON; - for standard output. None if empty."`
		Syslog        string `yaml:"syslog" form:"place" eg:"logs.example.org:6514" doc:"Host and port of a collector of syslog that entries are sent to as they happen, with TLS. None if empty."`
		SyslogCa      string `yaml:"syslogCa" form:"file" eg:"/etc/netkeep/syslog-ca.crt" doc:"PEM file with the CAs that the certificate of audit.syslog may come from; those that the machine trusts if empty."`
		SyslogCert    string `yaml:"syslogCert" form:"file" eg:"/etc/netkeep/syslog.crt" doc:"PEM file with the certificate to show audit.syslog."`
		SyslogKey     string `yaml:"syslogKey" form:"file" eg:"/etc/netkeep/syslog.key" doc:"PEM file with the key of audit.syslogCert, under the rules of tls.key."`
		HTTP          string `yaml:"http" form:"url" eg:"https://logs.example.org/netkeep" doc:"URL that entries are posted to as they happen, some at a time and one a line in JSON. None if empty."`
		HTTPCa        string `yaml:"httpCa" form:"file" eg:"/etc/netkeep/logs-ca.crt" doc:"PEM file with the CAs that the certificate of audit.http may come from; those that the machine trusts if empty."`
		HTTPToken     string `yaml:"httpToken" eg:"correct-horse-battery-staple" doc:"Bearer token to show audit.http." secret:"true"`
		HTTPTokenFile string `yaml:"httpTokenFile" form:"file" eg:"/run/secrets/logs" doc:"File with the token of audit.http; not read if audit.httpToken is given."`
		OTLP          string `yaml:"otlp" form:"url" eg:"http://127.0.0.1:4318/v1/logs" doc:"URL of a collector of OpenTelemetry that entries are sent to as logs as they happen, by OTLP over HTTP. None if empty."`
		OTLPCa        string `yaml:"otlpCa" form:"file" eg:"/etc/netkeep/otlp-ca.crt" doc:"PEM file with the CAs that the certificate of audit.otlp may come from; those that the machine trusts if empty."`
		OTLPToken     string `yaml:"otlpToken" eg:"correct-horse-battery-staple" doc:"Bearer token to show audit.otlp." secret:"true"`
		OTLPTokenFile string `yaml:"otlpTokenFile" form:"file" eg:"/run/secrets/otlp" doc:"File with the token of audit.otlp; not read if audit.otlpToken is given."`
	} `yaml:"audit"`

	Alerts []Webhook `yaml:"alerts" eg:"[{name: ops, url: https://hooks.example.org/netkeep, secretFile: /etc/netkeep/hook.secret}]" doc:"Who is sent alerts, each with a url and a secretFile, whose content signs them; a name, the host of the url if not given; on, the events that it is sent, the usual ones if not given; and ca, a PEM file with the CAs that its certificate may come from."`

	AlertAfter time.Duration `yaml:"alertAfter" default:"30s" range:"1s..24h" doc:"How long a router or another controller is away, or the disk is low, before those are told who are sent alerts; longer where routers come and go."`
	AlertDisk  Size          `yaml:"alertDisk" default:"1GiB" range:"0.." doc:"How much space is to be left on the disk of the data directory: with less an alert is sent."`

	Session struct {
		Timeout  time.Duration `yaml:"timeout" default:"30m" range:"1m.." doc:"How long an API session lives without a request."`
		Lifetime time.Duration `yaml:"lifetime" default:"0s" range:"0s.." doc:"How long an API session lives however much it is used, after which its client has to authenticate again; 0s for any time."`
	} `yaml:"session"`

	Lifetimes struct {
		Identity  time.Duration `yaml:"identity" default:"8760h" range:"1m.." doc:"How long certificates of identities are good for."`
		Router    time.Duration `yaml:"router" default:"8760h" range:"1m.." doc:"How long certificates of routers are good for."`
		Ephemeral time.Duration `yaml:"ephemeral" default:"12h" range:"1m.." doc:"How long certificates of API sessions are good for."`
	} `yaml:"lifetimes"`

	Timeouts Timeouts `yaml:"timeouts"`
	Limits   Limits   `yaml:"limits"`

	Egress struct {
		Strict bool `yaml:"strict" default:"false" doc:"Refuse to fetch keys of issuers from private and loopback addresses, and to send alerts there."`
	} `yaml:"egress"`

	Metrics struct {
		Listen string `yaml:"listen" default:"auto" form:"metrics" doc:"Host and port to serve Prometheus metrics on, in plain HTTP; auto is 127.0.0.1:1281 if nothing else has it, off is nowhere."`
		Pprof  bool   `yaml:"pprof" default:"false" doc:"Serve profiles of the process beside the metrics; only on a loopback address."`
	} `yaml:"metrics"`

	Log struct {
		Level  string `yaml:"level" default:"info" enum:"debug|info|warn|error" doc:"Least severe lines to log."`
		Format string `yaml:"format" enum:"text|json" doc:"Form of the log; text on a terminal and json otherwise if empty."`
	} `yaml:"log"`
}

// What metrics.listen may be besides an address, and the address that it is
// unless told otherwise.
const (
	MetricsAuto    = "auto"
	MetricsOff     = "off"
	MetricsAddress = "127.0.0.1:1281"
)

// Store is where records are kept.
type Store struct {
	Endpoints    []string      `yaml:"endpoints" form:"cluster" eg:"https://etcd-1.example.org:2379,https://etcd-2.example.org:2379" doc:"Addresses of an etcd cluster; a store runs inside the controller if empty."`
	Prefix       string        `yaml:"prefix" eg:"netkeep/" doc:"Prefix of this network's keys in that cluster."`
	CA           string        `yaml:"ca" form:"file" eg:"/etc/netkeep/etcd-ca.crt" doc:"PEM file with the CAs that the certificates of the cluster may come from; those that the machine trusts if empty."`
	Cert         string        `yaml:"cert" form:"file" eg:"/etc/netkeep/etcd.crt" doc:"PEM file with the certificate to show the cluster."`
	Key          string        `yaml:"key" form:"file" eg:"/etc/netkeep/etcd.key" doc:"PEM file with the key of store.cert, under the rules of tls.key."`
	Username     string        `yaml:"username" eg:"netkeep" doc:"User to sign in to the cluster as; nobody signs in if empty."`
	Password     string        `yaml:"password" eg:"correct-horse-battery-staple" doc:"Password of store.username." secret:"true"`
	PasswordFile string        `yaml:"passwordFile" form:"file" eg:"/run/secrets/etcd" doc:"File with the password of store.username; not read if store.password is given."`
	Wait         time.Duration `yaml:"wait" default:"1m" range:"1s..24h" doc:"How long to try to reach the cluster at a start before giving up."`
	Grace        time.Duration `yaml:"grace" default:"10s" range:"5s..1h" doc:"How long a controller that has lost the cluster goes on answering whoever is logged in, from what it knows; after that it answers 503 until the cluster is back."`
	Refuse       time.Duration `yaml:"refuse" default:"15s" range:"5s..24h" doc:"How long a controller that has lost the cluster goes on taking connections, if the network has other controllers: many clients go to those only when a connection fails. It is never less than store.grace."`
	Checkpoint   int           `yaml:"checkpoint" default:"50000" range:"0..1000000000" doc:"From how many records on the controller keeps what it has in memory in a file of the data directory, which its next start reads in a part of the time that all records take; 0 for never."`
}

// Timeouts is how long each part of serving a request may take.
type Timeouts struct {
	Request time.Duration `yaml:"request" default:"10s" range:"100ms..1h" doc:"How long the work on one request may take; shorter than timeouts.write."`
	Header  time.Duration `yaml:"header" default:"5s" range:"100ms..1h" doc:"How long a client may take to send the header of a request; at most timeouts.read."`
	Read    time.Duration `yaml:"read" default:"20s" range:"100ms..1h" doc:"How long a client may take to send a whole request."`
	Body    time.Duration `yaml:"body" default:"5s" range:"100ms..1h" doc:"How long a client without a session may take to send the body of a request; others may take until timeouts.read if they send at least 8 KiB a second after that. At most timeouts.read."`
	Write   time.Duration `yaml:"write" default:"30s" range:"100ms..1h" doc:"How long an answer may take from the end of the request's header to its last byte."`
	Idle    time.Duration `yaml:"idle" default:"2m" range:"100ms..24h" doc:"How long a connection is kept open without a request."`
}

// Limits is how much clients may ask for.
type Limits struct {
	Connections int  `yaml:"connections" default:"1200" range:"1..1000000" doc:"How many connections may be open at a time, about 40 KiB each; when there are more, those that have sent no request are closed first, and of the others those that wait longest for the next."`
	Share       int  `yaml:"share" default:"25" range:"1..100" doc:"How many percent of the connections, of the requests in work and of the memory for their bodies one address may have, or one identity with a session; 100 where all clients come from one address, as they do behind a proxy."`
	Body        Size `yaml:"body" default:"1MiB" range:"64KiB..8MiB" doc:"How large the body of a request may be, where an operation has no limit of its own, such as that of lists of changes, which is 64 MiB for admins."`
	Headers     Size `yaml:"headers" default:"64KiB" range:"4KiB..1MiB" doc:"How large the header of a request may be."`
	Logins      int  `yaml:"logins" default:"3000" range:"0..1000000" doc:"How many times a minute one address may try to authenticate, 0 for any number."`
	Guesses     int  `yaml:"guesses" default:"30" range:"0..1000000" doc:"How many wrong passwords a minute one address may send for user names that it was wrong about before, as many for others, and all addresses for one name, before they have to wait, 0 for any number; who logs in from where it did before does not wait for others."`
	Enrollments int  `yaml:"enrollments" default:"3000" range:"0..1000000" doc:"How many times a minute one address may try to enroll, 0 for any number."`

	Streams             int `yaml:"streams" default:"12000" range:"8..1000000" doc:"How many streams of events may be open at a time; an eighth of them is for admins alone."`
	IdentityStreams     int `yaml:"identityStreams" default:"20" range:"1..1000000" doc:"How many of them one identity may have."`
	APISessions         int `yaml:"apiSessions" default:"5000" range:"10..1000000" doc:"How many API sessions one identity may have; one more ends the one that was not used for longest."`
	SessionCertificates int `yaml:"sessionCertificates" default:"10" range:"1..1000000" doc:"How many certificates that have not expired one API session may have."`
}

// Default returns the settings of a controller that was told nothing.
func Default() Config {
	var c Config
	SetDefaults(c.Settings())
	return c
}

// Check says everything that is wrong with the settings, each and together,
// and reads the password files.
func (c *Config) Check() error {
	errs := []error{Check(c.Settings())}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		errs = append(errs, errors.New("tls.cert and tls.key must be given together"))
	}
	if c.Management.Advertise != "" && c.Management.Listen == "" {
		errs = append(errs, errors.New("management.advertise needs management.listen, such as 127.0.0.1:1290"))
	}
	if c.Routers.Advertise != "" && c.Routers.Listen == "" {
		errs = append(errs, errors.New("routers.advertise needs routers.listen, such as 127.0.0.1:6262"))
	}
	if c.Routers.ReserveAdvertise != "" && c.Routers.Reserve == "" {
		errs = append(errs, errors.New("routers.reserveAdvertise needs routers.reserve, such as 10.0.0.1:1283"))
	}
	if c.Routers.Reserve != "" && !c.Shared() {
		errs = append(errs, errors.New("routers.reserve is for one of several controllers, and needs cluster.listen or store.endpoints"))
	}
	if c.Cluster.Advertise != "" && c.Cluster.Listen == "" {
		errs = append(errs, errors.New("cluster.advertise needs cluster.listen, such as 10.0.0.1:1282"))
	}
	if c.Cluster.Listen != "" && len(c.Store.Endpoints) > 0 {
		errs = append(errs, errors.New("cluster.listen is for controllers that keep the store themselves, and store.endpoints names one that others keep: choose one of them"))
	}
	if c.Join != "" && c.Cluster.Listen == "" && len(c.Store.Endpoints) == 0 {
		errs = append(errs, errors.New("join needs cluster.listen, such as 10.0.0.2:1282, or the store.endpoints of the network"))
	}
	if c.RouterAdvertise != "" && c.Router == "" {
		errs = append(errs, errors.New("routerAdvertise needs router, such as 127.0.0.1:3022"))
	}
	if t := c.Timeouts; t.Request >= t.Write {
		errs = append(errs, fmt.Errorf("timeouts.request must be shorter than timeouts.write, which is %s, not %s", duration(t.Write), duration(t.Request)))
	}
	if t := c.Timeouts; t.Header > t.Read {
		errs = append(errs, fmt.Errorf("timeouts.header must be at most timeouts.read, which is %s, not %s", duration(t.Read), duration(t.Header)))
	}
	if t := c.Timeouts; t.Body > t.Read {
		errs = append(errs, fmt.Errorf("timeouts.body must be at most timeouts.read, which is %s, not %s", duration(t.Read), duration(t.Body)))
	}
	if every := c.Snapshots.Every; every > 0 && every < time.Minute {
		errs = append(errs, fmt.Errorf("snapshots.every must be 0s or at least 1m, not %s", duration(every)))
	}
	errs = append(errs, c.Store.check(), c.checkAudit(),
		readPassword("admin.passwordFile", &c.Admin.Password, c.Admin.PasswordFile), readPassword("store.passwordFile", &c.Store.Password, c.Store.PasswordFile),
		readPassword("audit.httpTokenFile", &c.Audit.HTTPToken, c.Audit.HTTPTokenFile), readPassword("audit.otlpTokenFile", &c.Audit.OTLPToken, c.Audit.OTLPTokenFile))
	return errors.Join(errs...)
}

// checkAudit says what does not go together of where entries go.
func (c *Config) checkAudit() error {
	var errs []error
	a := c.Audit
	if (a.SyslogCert == "") != (a.SyslogKey == "") {
		errs = append(errs, errors.New("audit.syslogCert and audit.syslogKey must be given together"))
	}
	for _, n := range []struct{ of, given string }{
		{"syslog", a.SyslogCa + a.SyslogCert}, {"http", a.HTTPCa + a.HTTPToken + a.HTTPTokenFile}, {"otlp", a.OTLPCa + a.OTLPToken + a.OTLPTokenFile},
	} {
		if is := map[string]string{"syslog": a.Syslog, "http": a.HTTP, "otlp": a.OTLP}[n.of]; is == "" && n.given != "" {
			errs = append(errs, fmt.Errorf("what is set of audit.%s needs audit.%s itself", n.of, n.of))
		}
	}
	return errors.Join(errs...)
}

// check says what does not go together.
func (s *Store) check() error {
	given := map[string]string{
		"ca": s.CA, "cert": s.Cert, "key": s.Key, "username": s.Username, "password": s.Password, "passwordFile": s.PasswordFile,
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if given[key] != "" && len(s.Endpoints) == 0 {
			errs = append(errs, fmt.Errorf("store.%s needs store.endpoints", key))
		}
	}
	secured := s.Secured()
	plain := slices.ContainsFunc(s.Endpoints, func(at string) bool { return !strings.HasPrefix(at, secureScheme) })
	if plain && (secured || s.CA+s.Cert+s.Key != "") {
		errs = append(errs, errors.New("store.endpoints must all begin with https:// where one does, or where there is a store.ca or store.cert"))
	}
	if (s.Cert == "") != (s.Key == "") {
		errs = append(errs, errors.New("store.cert and store.key must be given together"))
	}
	if (s.Username == "") != (s.Password+s.PasswordFile == "") {
		errs = append(errs, errors.New("store.username and its password, in store.passwordFile or store.password, must be given together"))
	}
	return errors.Join(errs...)
}

// Shared reports whether other controllers may write to the store too.
func (c *Config) Shared() bool { return len(c.Store.Endpoints) > 0 || c.Cluster.Listen != "" }

const secureScheme = "https://"

// Secured reports whether the cluster is reached with TLS.
func (s *Store) Secured() bool {
	return slices.ContainsFunc(s.Endpoints, func(at string) bool { return strings.HasPrefix(at, secureScheme) })
}

// maxPassword is how much of a password file is read: more than any password
// may be long.
const maxPassword = 4 << 10

// readPassword reads a password from the file that a setting names, unless there is
// one or there is no file.
func readPassword(key string, password *string, file string) error {
	if file == "" || *password != "" {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	defer f.Close()
	if *password, err = ReadPassword(f); err != nil {
		return fmt.Errorf("%s: %s %w", key, file, err)
	}
	return nil
}

// ReadPassword reads a password that stands alone, with or without the end of
// its line.
func ReadPassword(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxPassword+1))
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	if len(text) > maxPassword {
		return "", errors.New("is too large to hold a password")
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", errors.New("is empty")
	}
	return password, nil
}
