package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

const (
	configFlag = "config"
	configEnv  = EnvPrefix + "CONFIG"
)

// clientEnv are variables with our prefix that are not keys of Config. The configuration file, the client commands and
// the test suites use them, and they may be set where a server starts.
var clientEnv = []string{configEnv, EnvPrefix + "URL", EnvPrefix + "TOKEN", EnvPrefix + "WEBHOOK_SECRET", EnvPrefix + "TEST_POSTGRES", EnvPrefix + "TEST_EVENTS", EnvPrefix + "TEST_UPGRADE_FROM"}

// serviceLinkEnv matches the variables that Kubernetes (and Docker links) set in every container when a service is
// named "palisade" or "palisade-…": PALISADE_SERVICE_HOST, PALISADE_PORT_8080_TCP_ADDR. The configuration ignores them.
var serviceLinkEnv = regexp.MustCompile(`^PALISADE_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// Error lists every problem of a configuration, so that one start reports all of them.
type Error struct {
	Problems []string // one sentence each, starting with the name of the key; no secrets
}

// Error returns one problem as a line, several as a list.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return "configuration: " + e.Problems[0]
	}
	return fmt.Sprintf("configuration: %d problems\n  - %s", len(e.Problems), strings.Join(e.Problems, "\n  - "))
}

func configError(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return &Error{Problems: problems}
}

// flagValue is the command-line flag of one key. It parses the value at once, so that a wrong flag is a usage error,
// and keeps the text for Load.
type flagValue struct {
	config *Config
	field  Field
}

func (v *flagValue) Set(text string) error { return v.config.set(v.field, text) }
func (v *flagValue) Type() string          { return v.field.Type }

// String returns the default that help texts print. Secrets have none.
func (v *flagValue) String() string {
	if v.config == nil || v.field.Secret {
		return ""
	}
	return v.config.get(v.field)
}

// AddFlags adds --config and a flag for each named key, or for all keys when none is named. A command that only uses
// the store names few keys; the other keys still come from the environment and the file.
func AddFlags(fs *pflag.FlagSet, names ...string) {
	fs.String(configFlag, "", "YAML `file` with any of the keys of docs/configuration.md (env "+configEnv+")")
	defaults := Default()
	for _, f := range Fields() {
		if len(names) > 0 && !slices.Contains(names, f.Name) {
			continue
		}
		flag := fs.VarPF(&flagValue{config: &defaults, field: f}, f.Name, "", f.Doc+" (env "+f.Env+")")
		if f.Type == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

// Load reads the settings. A flag in fs overrides the variable in environ ("NAME=value", as [os.Environ] returns them);
// the variable overrides the file named by --config or PALISADE_CONFIG; the file overrides the default. An empty
// variable counts as not set.
//
// Unknown keys and variables are errors: a misspelled security setting must not start a server without it. The error is
// a [*Error]. Load checks types only; [Config.Validate] checks the values.
func Load(fs *pflag.FlagSet, environ []string) (Config, error) {
	env := palisadeEnv(environ)
	path := env[configEnv]
	if flag := fs.Lookup(configFlag); flag != nil && flag.Changed {
		path = flag.Value.String()
	}
	c := Default()
	problems := c.loadFile(path)
	problems = append(problems, c.loadEnv(env)...)
	for _, f := range Fields() {
		flag := fs.Lookup(f.Name)
		if flag == nil || !flag.Changed {
			continue
		}
		if v, ours := flag.Value.(*flagValue); ours {
			if err := c.set(f, v.config.get(f)); err != nil {
				problems = append(problems, fmt.Sprintf("--%s: %v", f.Name, err))
			}
		}
	}
	return c, configError(problems)
}

func (c *Config) loadFile(path string) (problems []string) {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return []string{path + ": is a directory, want a YAML file"}
	}
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		return []string{fmt.Sprintf("file %s: %v", path, err)}
	}
	fields := fieldsBy(func(f Field) string { return f.Name })
	raw := k.Raw()
	for _, key := range sortedKeys(raw) {
		f, known := fields[key]
		if !known {
			problems = append(problems, fmt.Sprintf("%s in %s is not a known key; the nearest is %s", key, path, nearest(key, sortedKeys(fields))))
			continue
		}
		switch value := raw[key].(type) {
		case nil: // "key:" without a value leaves the default
		case string, bool, int, int64, uint64, float64:
			if err := c.set(f, fmt.Sprint(value)); err != nil {
				problems = append(problems, fmt.Sprintf("%s in %s: %v", key, path, err))
			}
		default:
			problems = append(problems, fmt.Sprintf("%s in %s: got a list or a section, want one %s", key, path, f.Type))
		}
	}
	return problems
}

func (c *Config) loadEnv(env map[string]string) (problems []string) {
	fields := fieldsBy(func(f Field) string { return f.Env })
	names := append(sortedKeys(fields), clientEnv...)
	for _, name := range sortedKeys(env) {
		f, known := fields[name]
		switch {
		case !known && slices.Contains(clientEnv, name):
		case !known && serviceLinkEnv.MatchString(name):
		case !known:
			problems = append(problems, fmt.Sprintf("%s is not a known environment variable; the nearest is %s", name, nearest(name, names)))
		case env[name] == "":
		default:
			if err := c.set(f, env[name]); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", name, err))
			}
		}
	}
	return problems
}

func palisadeEnv(environ []string) map[string]string {
	env := map[string]string{}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, EnvPrefix) {
			env[name] = value
		}
	}
	return env
}

func fieldsBy(key func(Field) string) map[string]Field {
	fields := map[string]Field{}
	for _, f := range Fields() {
		fields[key(f)] = f
	}
	return fields
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// nearest returns the candidate with the smallest edit distance to name.
func nearest(name string, candidates []string) string {
	return slices.MinFunc(candidates, func(a, b string) int {
		return levenshtein.Distance(name, a, nil) - levenshtein.Distance(name, b, nil)
	})
}
