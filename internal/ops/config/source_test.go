package config_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/ops/config"
)

// values returns three right values of a setting that differ from each other
// and from its default.
func values(t *testing.T, s config.Setting) []string {
	t.Helper()
	var right []string
	for _, text := range []string{
		"one", "two", "three", // texts and lists
		"h:1", "h:2", "h:3", // addresses
		"http://h/1", "https://h/2", "https://h/3", // URLs
		"debug", "warn", "error", "text", "json", "P-384", "RSA-2048", "Ed25519", // enumerations
		"true", "auto", // switches
		"1h", "20s", "7s", "3s", "2h", "25h", "48h", // durations
		"128KiB", "256KiB", "70000", "32MiB", "64MiB", // sizes
		"10", "20", "30", // numbers
		"[{name: a, url: http://h/1, secretFile: s}]", "[{name: b, url: http://h/2, secretFile: s, on: [c, d]}]", "[{name: a, url: http://h/3, secretFile: \"s t\", ca: u}, {name: b, url: http://h/4, secretFile: s}]",
	} {
		if text != s.Default && s.Set(text) == nil {
			right = append(right, text)
		}
	}
	switch {
	case len(right) >= 3:
		return right[:3]
	case len(right) == 2: // two right values and the default's place between them
		return []string{right[0], right[1], right[0]}
	case len(right) == 1:
		return []string{right[0], s.Default, right[0]}
	}
	t.Fatalf("%s: no value is right", s.Key)
	return nil
}

// inFile writes one setting as a file.
func inFile(key, text string) string {
	if section, leaf, ok := strings.Cut(key, "."); ok {
		return fmt.Sprintf("\n%s:\n  %s: %s\n", section, leaf, text)
	}
	return fmt.Sprintf("\n\n%s: %s\n", key, text)
}

// TestSources gives every setting in every way, and checks that the later way
// wins, that nothing else changes, and that its origin is told.
func TestSources(t *testing.T) {
	none := config.Default()
	for s := range none.Settings() {
		c := config.Default()
		v := values(t, find(t, &c, s.Key))
		path := write(t, inFile(s.Key, v[0]))
		env, flag := []string{s.Env + "=" + v[1]}, map[string]string{s.Flag: v[2]}
		for _, test := range []struct {
			src        config.Sources
			want, from string
		}{
			{config.Sources{}, s.Default, ""},
			{config.Sources{File: path}, v[0], path + ":3"},
			{config.Sources{Environ: env}, v[1], "environment variable " + s.Env},
			{config.Sources{Flags: flag}, v[2], "flag --" + s.Flag},
			{config.Sources{File: path, Environ: env}, v[1], "environment variable " + s.Env},
			{config.Sources{File: path, Flags: flag}, v[2], "flag --" + s.Flag},
			{config.Sources{Environ: env, Flags: flag}, v[2], "flag --" + s.Flag},
			{config.Sources{File: path, Environ: env, Flags: flag}, v[2], "flag --" + s.Flag},
			{config.Sources{Environ: append(env, config.FileEnv+"="+path)}, v[1], "environment variable " + s.Env},
			{config.Sources{Environ: []string{config.FileEnv + "=" + path}}, v[0], path + ":3"},
			{config.Sources{File: path, Environ: []string{config.FileEnv + "=/nonexistent/file"}}, v[0], path + ":3"},
		} {
			got, from, err := config.Load(test.src)
			if err != nil {
				t.Errorf("%s from %+v: %v", s.Key, test.src, err)
				continue
			}
			if value := find(t, &got, s.Key).Get(); value != test.want || from[s.Key] != test.from {
				t.Errorf("%s from %+v is %q by %q, want %q by %q", s.Key, test.src, value, from[s.Key], test.want, test.from)
			}
			if err := find(t, &got, s.Key).Set(s.Default); err != nil || !reflect.DeepEqual(got, none) || len(from) > 1 {
				t.Errorf("%s from %+v changes other settings too: %+v from %v (%v)", s.Key, test.src, got, from, err)
			}
		}
	}
}

func find(t testing.TB, c *config.Config, key string) config.Setting {
	t.Helper()
	for s := range c.Settings() {
		if s.Key == key {
			return s
		}
	}
	t.Fatalf("there is no setting %s", key)
	return config.Setting{}
}

// TestLists checks the ways to write a list.
func TestLists(t *testing.T) {
	for _, text := range []string{"a,b", "[a, b]", "\n    - a\n    - b", "\"a,b\""} {
		c, _, err := config.Load(config.Sources{File: write(t, "store:\n  endpoints: "+text+"\n")})
		if err != nil || !reflect.DeepEqual(c.Store.Endpoints, []string{"a", "b"}) {
			t.Errorf("%s: %q, %v", text, c.Store.Endpoints, err)
		}
	}
	c, _, err := config.Load(config.Sources{
		File: write(t, "store:\n  endpoints: [a]\n"), Flags: map[string]string{"store-endpoints": ""},
	})
	if err != nil || c.Store.Endpoints != nil {
		t.Errorf("an empty flag: %q, %v", c.Store.Endpoints, err)
	}
}

// TestPlainValues checks that a text is taken as it is written, whatever YAML
// would make of it.
func TestPlainValues(t *testing.T) {
	for text, want := range map[string]string{
		"0123": "0123", "0x1F": "0x1F", "1_000": "1_000", "1e3": "1e3", "true": "true", "yes": "yes", ".inf": ".inf", "2026-11-15": "2026-11-15",
		`"a # b"`: "a # b", "'it''s'": "it's", "|\n    two\n    lines": "two\nlines\n", ">-\n    one\n    line": "one line",
		`"\u00e9\n"`: "é\n", "a#b": "a#b", "p@ss:word": "p@ss:word",
	} {
		c, _, err := config.Load(config.Sources{File: write(t, "admin:\n  password: "+text+"\n")})
		if err != nil || c.Admin.Password != want {
			t.Errorf("%s: %q, want %q (%v)", text, c.Admin.Password, want, err)
		}
	}
}

const printed = `data: "a directory" # FILE:1
listen: 127.0.0.1:1280 # default
advertise: "" # default
names: [] # default
router: "" # default
routerAdvertise: "" # default
join: "" # default
management:
  listen: "" # default
  advertise: "" # default
routers:
  listen: "" # default
  advertise: "" # default
  reserve: "" # default
  reserveAdvertise: "" # default
admin:
  username: boss # environment variable NETKEEP_ADMIN_USERNAME
  # password: hidden # environment variable NETKEEP_ADMIN_PASSWORD
  passwordFile: "" # default
tls:
  cert: "" # default
  key: "" # default
keys:
  algorithm: P-256 # default
store:
  endpoints: [https://a:1, "b c"] # flag --store-endpoints
`

func TestPrint(t *testing.T) {
	path := write(t, "data: a directory\nadmin:\n  password: hush\n  username: other\n")
	c, from, err := config.Load(config.Sources{
		File: path, Environ: []string{"NETKEEP_ADMIN_USERNAME=boss", "NETKEEP_ADMIN_PASSWORD=hush hush"},
		Flags: map[string]string{"store-endpoints": "https://a:1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Store.Endpoints = append(c.Store.Endpoints, "b c")
	var out bytes.Buffer
	if err := c.Print(&out, from); err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(printed, "FILE", path); !strings.HasPrefix(out.String(), want) {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if strings.Contains(out.String(), "hush") {
		t.Error("it shows the password")
	}
}

// TestPrintedSettings checks that what is printed can be read again, with
// texts of any kind.
func TestPrintedSettings(t *testing.T) {
	path := write(t, "")
	rapid.Check(t, func(rt *rapid.T) {
		c := config.Default()
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[-.:#~|>"'\[\]{}, \\a0\n\t]{0,6}`), rapid.SampledFrom([]string{
			"null", "Null", "~", "-", "---", "...", "true", "1:2", "0o7", ".nan", "=", "<<", "a: b", "a #b", "!x", "&x", "*x", "%x", "@x", "?",
		}))
		c.Admin.Username = "x" + text.Draw(rt, "username")
		c.Admin.PasswordFile = text.Draw(rt, "passwordFile")
		c.Store.Prefix = text.Draw(rt, "prefix")
		c.Admin.Password = rapid.StringMatching(`hush[a-z]{8}`).Draw(rt, "password")
		origin := text.Draw(rt, "origin")
		var out bytes.Buffer
		if err := c.Print(&out, config.Origins{"data": origin}); err != nil {
			rt.Fatal(err)
		}
		if strings.Contains(out.String(), c.Admin.Password) {
			rt.Fatalf("the password is shown:\n%s", out.String())
		}
		rewrite(rt, path, out.String())
		again, _, err := config.Load(config.Sources{File: path})
		if err != nil {
			rt.Fatalf("%v\n%s", err, out.String())
		}
		c.Admin.Password = ""
		if !reflect.DeepEqual(again, c) {
			rt.Fatalf("read again as\n%+v\nwant\n%+v\n%s", again, c, out.String())
		}
	})
}
