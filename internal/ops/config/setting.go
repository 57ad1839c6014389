package config

import (
	"errors"
	"fmt"
	"iter"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Setting is one field of a Config, or of another struct with such tags.
type Setting struct {
	Key     string // in the file: "admin.passwordFile"
	Env     string // NETKEEP_ADMIN_PASSWORD_FILE
	Flag    string // admin-password-file
	Doc     string
	Default string
	// Secret keeps the value out of everything that is shown. There is no flag
	// for it either: everybody on a machine sees the flags of a process.
	Secret bool

	value reflect.Value
	tag   reflect.StructTag
}

// Settings yields the settings of c in the order of its fields.
func (c *Config) Settings() iter.Seq[Setting] { return Of(c) }

// Of yields the settings of the struct that v points to, in the order of its
// fields.
func Of(v any) iter.Seq[Setting] {
	return func(yield func(Setting) bool) { walk(reflect.ValueOf(v).Elem(), "", yield) }
}

// SetDefaults gives each of the settings the value that it has if nobody says
// another.
func SetDefaults(settings iter.Seq[Setting]) {
	for s := range settings {
		if err := s.parse(s.Default); err != nil {
			panic(fmt.Sprintf("config: default: %v", err))
		}
	}
}

// Check says everything that is wrong with settings, each by itself.
func Check(settings iter.Seq[Setting]) error {
	var errs []error
	for s := range settings {
		errs = append(errs, s.check())
	}
	return errors.Join(errs...)
}

func walk(v reflect.Value, prefix string, yield func(Setting) bool) bool {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		key := prefix + name
		if f.Type.Kind() == reflect.Struct {
			if !walk(v.Field(i), key+".", yield) {
				return false
			}
			continue
		}
		words := split(key)
		s := Setting{
			Key: key, Env: envPrefix + strings.ToUpper(strings.Join(words, "_")), Flag: strings.Join(words, "-"),
			Doc: f.Tag.Get("doc"), Default: f.Tag.Get("default"), Secret: f.Tag.Get("secret") == "true",
			value: v.Field(i), tag: f.Tag,
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

// Set gives the setting the value that a text means. One that is not right
// leaves it as it was.
func (s Setting) Set(text string) error {
	before := reflect.New(s.value.Type()).Elem()
	before.Set(s.value)
	err := s.parse(text)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		s.value.Set(before)
	}
	return err
}

// parse sets the value without a look at what the tags say of it.
func (s Setting) parse(text string) error {
	switch p := s.value.Addr().Interface().(type) {
	case *string:
		*p = text
	case *[]string:
		*p = nil
		if text != "" {
			*p = strings.Split(text, ",")
		}
	case *[]Webhook:
		all, err := parseWebhooks(text)
		if err != nil {
			return fmt.Errorf("%s %w", s.Key, err)
		}
		*p = all
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return s.wrong(text)
		}
		*p = b
	case *Switch:
		is, err := parseSwitch(text)
		if err != nil {
			return s.wrong(text)
		}
		*p = is
	default:
		n, err := s.number(text)
		if err != nil {
			return s.wrong(text)
		}
		s.value.SetInt(n)
	}
	return nil
}

// number reads a text as the value of a setting that counts something.
func (s Setting) number(text string) (int64, error) {
	switch s.value.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(text)
		return int64(d), err
	case Size:
		size, err := parseSize(text)
		return int64(size), err
	case int:
		n, err := strconv.Atoi(text)
		return int64(n), err
	}
	panic(fmt.Sprintf("config: %s has a type without a text form", s.Key))
}

// check says what is wrong with the value.
func (s Setting) check() error {
	if hooks, ok := s.value.Interface().([]Webhook); ok {
		if err := checkWebhooks(hooks); err != nil {
			return fmt.Errorf("%s %w", s.Key, err)
		}
		return nil
	}
	if s.right() {
		return nil
	}
	return s.wrong(s.Get())
}

func (s Setting) right() bool {
	switch v := s.value.Interface().(type) {
	case string:
		if v == "" {
			return s.Default == ""
		}
		if enum := s.tag.Get("enum"); enum != "" {
			return slices.Contains(strings.Split(enum, "|"), v)
		}
		return forms[s.tag.Get("form")].right(v)
	case []string:
		right := forms[s.tag.Get("form")].right
		return !slices.ContainsFunc(v, func(item string) bool { return item == "" || strings.ContainsAny(item, ", ") || !right(item) })
	case bool:
		return true
	case Switch:
		return v == Off || v.Maybe()
	}
	low, high := s.bounds()
	n := s.value.Int()
	return (low == "" || n >= s.bound(low)) && (high == "" || n <= s.bound(high))
}

// bounds are the ends of the setting's range, empty where it has none.
func (s Setting) bounds() (low, high string) {
	low, high, _ = strings.Cut(s.tag.Get("range"), "..")
	return low, high
}

func (s Setting) bound(text string) int64 {
	n, err := s.number(text)
	if err != nil {
		panic(fmt.Sprintf("config: range of %s: %v", s.Key, err))
	}
	return n
}

// form is a kind of text.
type form struct {
	noun  string
	right func(string) bool
}

// maxWord is how long a word may be.
const maxWord = 64

func anything(string) bool { return true }

var forms = map[string]form{
	"":          {"a text", anything},
	"file":      {"the path of a file", anything},
	"directory": {"the path of a directory", anything},
	"address":   {"a host and port", isAddress},
	"metrics": {"a host and port, auto or off", func(s string) bool {
		return s == MetricsAuto || s == MetricsOff || isAddress(s)
	}},
	"url":     {"a URL without a user name", isURL},
	"words":   {"words", func(s string) bool { return len(s) <= maxWord && !strings.ContainsFunc(s, unicode.IsSpace) }},
	"cluster": {"addresses without user names", isMember},
	"host":    {"names and IP addresses", func(s string) bool { return !strings.ContainsAny(s, "/\t\r\n[]@") }},
	"place": {"a host and port", func(s string) bool {
		host, port, err := splitAddress(s)
		return err == nil && host != "" && port != 0
	}},
}

// isMember reports whether a text may be the address of a member of a cluster.
func isMember(s string) bool {
	host := strings.TrimPrefix(strings.TrimPrefix(s, secureScheme), "http://")
	return host != "" && !strings.ContainsAny(host, "@/?#")
}

// isURL reports whether a text may be a place to send something to.
func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

func isAddress(s string) bool {
	_, _, err := splitAddress(s)
	return err == nil
}

func splitAddress(s string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, err
	}
	if strings.ContainsAny(host, " \t\r\n/") {
		return "", 0, errors.New("no host")
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return host, int(n), err
}

// Kind says what values are right: "a duration from 1s to 1h".
func (s Setting) Kind() string {
	switch s.value.Interface().(type) {
	case string:
		if enum := s.tag.Get("enum"); enum != "" {
			all := strings.Split(enum, "|")
			last := len(all) - 1
			return strings.Join(all[:last], ", ") + " or " + all[last]
		}
		return forms[s.tag.Get("form")].noun
	case []string:
		return "a list of " + forms[s.tag.Get("form")].noun
	case []Webhook:
		return "a list of webhooks"
	case bool:
		return "true or false"
	case Switch:
		return "auto, true or false"
	case time.Duration:
		return "a duration" + s.within()
	case Size:
		return "a size" + s.within()
	}
	return "a number" + s.within()
}

func (s Setting) within() string {
	low, high := s.bounds()
	switch {
	case low != "" && high != "":
		return " from " + low + " to " + high
	case low != "":
		return " of at least " + low
	}
	return ""
}

// Example is a value that is right.
func (s Setting) Example() string {
	if eg := s.tag.Get("eg"); eg != "" {
		return eg
	}
	if s.Default != "" {
		return s.Default
	}
	first, _, _ := strings.Cut(s.tag.Get("enum"), "|")
	return first
}

// wrong is the error of a text that is not right. It does not repeat secrets,
// nor addresses with a password in them.
func (s Setting) wrong(text string) error {
	if s.Secret || strings.Contains(text, "@") {
		return fmt.Errorf("%s must be %s, such as %s", s.Key, s.Kind(), s.Example())
	}
	return s.not(strconv.Quote(excerpt(text)))
}

// not is the error of something that the setting cannot be.
func (s Setting) not(what string) error {
	return fmt.Errorf("%s must be %s, such as %s, not %s", s.Key, s.Kind(), s.Example(), what)
}

// excerpt is as much of a text as an error should repeat.
func excerpt(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Get returns the setting as a text that Set understands.
func (s Setting) Get() string {
	switch v := s.value.Interface().(type) {
	case []string:
		return strings.Join(v, ",")
	case []Webhook:
		return webhooksText(v)
	case time.Duration:
		return duration(v)
	default:
		return fmt.Sprint(v)
	}
}

// duration writes a duration as people do, without parts that are nought.
func duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
