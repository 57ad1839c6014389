// Package config is the controller's settings: one YAML file, environment
// variables over it, flags over those. Each setting is a field of Config; its
// key, variable and flag follow from the field. It imports nothing of ours.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
)

// Config is every setting.
type Config struct {
	Data      string `yaml:"data" doc:"Directory that holds everything the controller keeps."`
	Listen    string `yaml:"listen" doc:"Host and port to serve HTTPS on."`
	Advertise string `yaml:"advertise" doc:"Host and port under which clients reach the controller; the listen address if empty."`

	Admin struct {
		Username     string `yaml:"username" doc:"User name of the first admin."`
		Password     string `yaml:"password" doc:"Password of the first admin; one is made and printed if empty." secret:"true"`
		PasswordFile string `yaml:"passwordFile" doc:"File with the password of the first admin."`
	} `yaml:"admin"`

	TLS struct {
		Cert string `yaml:"cert" doc:"PEM file with the certificate chain to serve, instead of one of our own."`
		Key  string `yaml:"key" doc:"PEM file with the key of tls.cert."`
	} `yaml:"tls"`

	Keys struct {
		Algorithm string `yaml:"algorithm" doc:"Algorithm of new keys: P-256, P-384, RSA-2048, RSA-3072, RSA-4096 or Ed25519."`
	} `yaml:"keys"`

	Store struct {
		Endpoints []string `yaml:"endpoints" doc:"Addresses of an etcd cluster; one runs inside the controller if empty."`
		Prefix    string   `yaml:"prefix" doc:"Prefix of this network's keys in that cluster."`
	} `yaml:"store"`

	Session struct {
		Timeout time.Duration `yaml:"timeout" doc:"How long an API session lives without a request."`
	} `yaml:"session"`

	Lifetimes struct {
		Identity  time.Duration `yaml:"identity" doc:"How long certificates of identities are good for."`
		Router    time.Duration `yaml:"router" doc:"How long certificates of routers are good for."`
		Ephemeral time.Duration `yaml:"ephemeral" doc:"How long certificates of API sessions are good for."`
	} `yaml:"lifetimes"`

	Egress struct {
		Strict bool `yaml:"strict" doc:"Refuse to fetch keys of issuers from private and loopback addresses."`
	} `yaml:"egress"`

	Metrics struct {
		Listen string `yaml:"listen" doc:"Host and port to serve Prometheus metrics on, in plain HTTP; auto is 127.0.0.1:1281 if nothing else has it, off or nothing is nowhere."`
		Pprof  bool   `yaml:"pprof" doc:"Serve profiles of the process beside the metrics; only on a loopback address."`
	} `yaml:"metrics"`

	Log struct {
		Level  string `yaml:"level" doc:"Least severe lines to log: debug, info, warn or error."`
		Format string `yaml:"format" doc:"text or json; text on a terminal and json otherwise if empty."`
	} `yaml:"log"`
}

// What metrics.listen may be besides an address, and the address that it is
// unless told otherwise.
const (
	MetricsAuto    = "auto"
	MetricsOff     = "off"
	MetricsAddress = "127.0.0.1:1281"
)

// Default returns the settings of a controller that was told nothing.
func Default() Config {
	var c Config
	c.Data = "data"
	c.Listen = "127.0.0.1:1280"
	c.Admin.Username = "admin"
	c.Keys.Algorithm = "P-256"
	c.Session.Timeout = 30 * time.Minute
	c.Lifetimes.Identity = 365 * 24 * time.Hour
	c.Lifetimes.Router = 365 * 24 * time.Hour
	c.Lifetimes.Ephemeral = 12 * time.Hour
	c.Metrics.Listen = MetricsAuto
	c.Log.Level = "info"
	return c
}

// Setting is one field of a Config.
type Setting struct {
	Key    string // in the file: "admin.passwordFile"
	Env    string // NETKEEP_ADMIN_PASSWORD_FILE
	Flag   string // admin-password-file
	Doc    string
	Secret bool
	value  reflect.Value
}

// Settings yields the settings of c.
func (c *Config) Settings() iter.Seq[Setting] {
	return func(yield func(Setting) bool) { walk(reflect.ValueOf(c).Elem(), "", yield) }
}

func walk(v reflect.Value, prefix string, yield func(Setting) bool) bool {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := prefix + f.Tag.Get("yaml")
		if f.Type.Kind() == reflect.Struct {
			if !walk(v.Field(i), key+".", yield) {
				return false
			}
			continue
		}
		words := split(key)
		s := Setting{
			Key: key, Doc: f.Tag.Get("doc"), Secret: f.Tag.Get("secret") == "true", value: v.Field(i),
			Env: "NETKEEP_" + strings.ToUpper(strings.Join(words, "_")), Flag: strings.Join(words, "-"),
		}
		if !yield(s) {
			return false
		}
	}
	return true
}

// split takes a key apart into lower-case words.
func split(key string) []string {
	var b strings.Builder
	for _, r := range key {
		switch {
		case r == '.':
			b.WriteByte(' ')
		case unicode.IsUpper(r):
			b.WriteByte(' ')
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(r)
		}
	}
	return strings.Fields(b.String())
}

// Set gives the setting the value that a text means.
func (s Setting) Set(text string) error {
	switch p := s.value.Addr().Interface().(type) {
	case *string:
		*p = text
	case *[]string:
		*p = strings.Split(text, ",")
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s must be a duration such as 30m, not %q", s.Key, text)
		}
		*p = d
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%s must be true or false, not %q", s.Key, text)
		}
		*p = b
	default:
		panic(fmt.Sprintf("config: %s has a type without a text form", s.Key))
	}
	return nil
}

// Get returns the setting as a text.
func (s Setting) Get() string {
	if list, ok := s.value.Interface().([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(s.value.Interface())
}

// Load reads the file, if one is named, and the environment over it.
func (c *Config) Load(file string, getenv func(string) string) error {
	if file != "" {
		if err := c.readFile(file); err != nil {
			return err
		}
	}
	for s := range c.Settings() {
		if text := getenv(s.Env); text != "" {
			if err := s.Set(text); err != nil {
				return fmt.Errorf("environment variable %s: %w", s.Env, err)
			}
		}
	}
	return nil
}

func (c *Config) readFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("config file: %w", err)
	}
	defer f.Close()
	err = yaml.NewDecoder(f, yaml.DisallowUnknownField(), yaml.Strict()).Decode(c)
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	if bad := c.badDuration(name); bad != nil {
		return fmt.Errorf("config file %s: %w", name, bad)
	}
	// The first line says where and what; the rest is a drawing of it.
	first, _, _ := strings.Cut(yaml.FormatError(err, false, false), "\n")
	return fmt.Errorf("config file %s: %s", name, first)
}

// badDuration finds a duration in the file that is none: the decoder does not
// say where it is.
func (c *Config) badDuration(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	for s := range c.Settings() {
		if _, ok := s.value.Interface().(time.Duration); !ok {
			continue
		}
		path, err := yaml.PathString("$." + s.Key)
		if err != nil {
			continue
		}
		node, err := path.ReadNode(bytes.NewReader(text))
		if err != nil {
			continue
		}
		at := node.GetToken()
		if err := s.Set(at.Value); err != nil {
			return fmt.Errorf("[%d:%d] %w", at.Position.Line, at.Position.Column, err)
		}
	}
	return nil
}

// Check says what is wrong with the settings as a whole, and reads the
// password file.
func (c *Config) Check() error {
	if c.Data == "" {
		return errors.New("data must name a directory")
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		return errors.New("tls.cert and tls.key must be given together")
	}
	if c.Session.Timeout < time.Minute {
		return fmt.Errorf("session.timeout must be at least 1m, not %s", c.Session.Timeout)
	}
	switch c.Log.Level {
	case "debug", "info", "warn", "error":
	default:
		return fmt.Errorf("log.level must be debug, info, warn or error, not %q", c.Log.Level)
	}
	switch c.Log.Format {
	case "", "text", "json":
	default:
		return fmt.Errorf("log.format must be text or json, not %q", c.Log.Format)
	}
	if c.Admin.PasswordFile == "" || c.Admin.Password != "" {
		return nil
	}
	text, err := os.ReadFile(c.Admin.PasswordFile)
	if err != nil {
		return fmt.Errorf("admin.passwordFile: %w", err)
	}
	c.Admin.Password = strings.TrimRight(string(text), "\r\n")
	return nil
}
