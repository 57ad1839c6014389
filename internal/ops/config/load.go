package config

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/spell"
)

const (
	// envPrefix begins the name of every variable that is ours.
	envPrefix = "NETKEEP_"
	// FileEnv is the variable that names the file where no flag does.
	FileEnv = envPrefix + "CONFIG"
)

// Sources is where settings come from, each over the one before it.
type Sources struct {
	// File is the name of a YAML file. If it is empty, FileEnv may name one of a
	// controller.
	File string
	// Environ is variables as "name=value". An empty value is as good as none.
	Environ []string
	// Flags is the flags that were given, by name.
	Flags map[string]string
}

// Origins says where settings came from, by key: a line of a file, a variable
// or a flag. A setting that is not in it has its default.
type Origins map[string]string

// Load returns the default settings with what the sources say over them, and
// where each came from. Its error tells every mistake that was found. Whether
// the settings go together is left to Check.
func Load(src Sources) (Config, Origins, error) {
	c := Default()
	if src.File == "" {
		src.File = ours(src.Environ)[FileEnv]
	}
	from, err := src.Over(c.Settings())
	return c, from, err
}

// Over puts what the sources say over settings, and returns where each came from.
// Its error tells every mistake that was found.
func (src Sources) Over(settings iter.Seq[Setting]) (Origins, error) {
	from, env := Origins{}, ours(src.Environ)
	var errs []error
	if src.File != "" {
		errs = append(errs, readFile(settings, src.File, from))
	}
	for s := range settings {
		if text := env[s.Env]; text != "" {
			if err := s.Set(text); err != nil {
				errs = append(errs, fmt.Errorf("environment variable %s: %w", s.Env, err))
			}
			from[s.Key] = "environment variable " + s.Env
		}
		if text, ok := src.Flags[s.Flag]; ok {
			if err := s.Set(text); err != nil {
				errs = append(errs, fmt.Errorf("flag --%s: %w", s.Flag, err))
			}
			from[s.Key] = "flag --" + s.Flag
		}
	}
	return from, errors.Join(errs...)
}

// ours returns the variables whose names begin as those of settings do.
func ours(environ []string) map[string]string {
	env := map[string]string{}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, envPrefix) {
			env[name] = value
		}
	}
	return env
}

// elsewhere are variables that other commands than run read.
var elsewhere = []string{"NETKEEP_CONTROLLER", "NETKEEP_CONTROLLER_CA", "NETKEEP_CONTROLLER_FINGERPRINT", "NETKEEP_PASSWORD", "NETKEEP_PROFILE", "NETKEEP_TOKEN"}

// Ignored says of each variable that looks like a setting and is none what may
// have been meant. It is no mistake: people keep such variables for scripts of
// their own.
func Ignored(environ []string) (warnings []string) {
	known := slices.Concat([]string{FileEnv}, elsewhere)
	for s := range new(Config).Settings() {
		known = append(known, s.Env)
	}
	env := ours(environ)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !slices.Contains(known, name) && !describesService(name, env) {
			warnings = append(warnings, fmt.Sprintf("environment variable %q is no setting and is ignored; the nearest that is one is %s",
				excerpt(name), spell.Nearest(name, known)))
		}
	}
	return warnings
}

// describesService reports whether a variable is one of those in which
// Kubernetes tells every container where a service is: of a service called
// netkeep or netkeep-something they begin as ours do. Such a service always
// has a variable for its host.
func describesService(name string, env map[string]string) bool {
	const host = "_SERVICE_HOST"
	for other := range env {
		service, ok := strings.CutSuffix(other, host)
		if ok && (strings.HasPrefix(name, service+"_SERVICE_") || name == service+"_PORT" || strings.HasPrefix(name, service+"_PORT_")) {
			return true
		}
	}
	return false
}
