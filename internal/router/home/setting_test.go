package home

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/lang/document/documenttest"
	"netkeep.internal/internal/ops/config"
)

// TestBombs refuses settings that would fill the memory.
func TestBombs(t *testing.T) {
	dir := t.TempDir()
	documenttest.Refused(t, func(text string) error {
		if err := os.WriteFile(filepath.Join(dir, settingsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadSettings(dir, config.Sources{})
		return err
	})
}

// TestSettings has settings come from the file, from variables and from flags,
// each over the one before, and tells mistakes as those of a controller are.
func TestSettings(t *testing.T) {
	dir := t.TempDir()
	read := func(text string, over config.Sources) (Settings, error) {
		if err := os.WriteFile(filepath.Join(dir, settingsFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSettings(dir, over)
	}
	got, err := read("listen: 127.0.0.1:1\nlog: {level: warn}\n", config.Sources{
		Environ: []string{"NETKEEP_LOG_LEVEL=error", "NETKEEP_DRAIN=3s", "NETKEEP_LINK_GROUPS=a,b"}, Flags: map[string]string{"drain": "4s"},
	})
	want := Settings{
		Listen: "127.0.0.1:1", Advertise: []string{"127.0.0.1"}, LinkGroups: []string{"a", "b"}, Metrics: MetricsAuto, Drain: 4 * time.Second,
		Log: LogSettings{Level: "error"},
	}
	if !reflect.DeepEqual(got, want) || err != nil {
		t.Errorf("settings are %+v (%v), want %+v", got, err, want)
	}
	for text, want := range map[string]string{
		"listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n": "router.yml:2: listen is given twice",
		"listne: 127.0.0.1:1\n":                      `router.yml:1: unknown key "listne"`,
		"listen: nowhere\n":                          "router.yml:1: listen must be a host and port",
		"drain: 2h\n":                                "drain must be a duration from 0s to 1h",
		"log:\n  level: loud\n":                      "router.yml:2: log.level must be debug, info, warn or error",
		"listen: 0.0.0.0:1\n":                        "advertise is missing",
		"advertise: [a/b]\n":                         "must be a name or an address that leads here",
		"advertise: [a]\nlinkGroups: [\"a b\"]\n":    "linkGroups must be a list of words",
	} {
		if _, err := read(text, config.Sources{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	// What is written can be read.
	file, err := disk.NewFile(filepath.Join(dir, settingsFile), true)
	if err == nil {
		err = want.write(file)
		file.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadSettings(dir, config.Sources{}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("what was written is read as %+v (%v)", got, err)
	}
}
