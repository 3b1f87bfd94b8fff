package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// load reads a configuration from arguments, environment and the text of a file ("" for none).
func load(t *testing.T, args, environ []string, file string) (Config, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "palisade.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(fs, environ)
}

// samples are three values of each type, in the form that get writes. None is a default.
var samples = map[string][3]string{
	"string":   {"one", "two", "three"},
	"bool":     {"true", "true", "true"},
	"int":      {"11", "22", "33"},
	"number":   {"1.5", "2.5", "3.5"},
	"duration": {"1h1m0s", "2h2m0s", "3h3m0s"},
	"size":     {"11MiB", "22KiB", "33"},
}

func TestEveryKeyByFileEnvironmentAndFlag(t *testing.T) {
	for _, f := range Fields() {
		t.Run(f.Name, func(t *testing.T) {
			s := samples[f.Type]
			file := f.Name + ": " + s[0] + "\n"
			env := []string{"HOME=/", f.Env + "=" + s[1]}
			flag := []string{"--" + f.Name + "=" + s[2]}
			for _, c := range []struct {
				from      string
				args, env []string
				file      string
				want      string
			}{
				{"default", nil, nil, "", defaultText(t, f)},
				{"file", nil, nil, file, s[0]},
				{"environment over file", nil, env, file, s[1]},
				{"flag over environment and file", flag, env, file, s[2]},
				{"flag alone", flag, nil, "", s[2]},
				{"empty variable is not set", nil, []string{f.Env + "="}, file, s[0]},
				{"key without value is not set", nil, nil, f.Name + ":\n", defaultText(t, f)},
			} {
				got, err := load(t, c.args, c.env, c.file)
				if err != nil {
					t.Fatalf("%s: %v", c.from, err)
				}
				if got.get(f) != c.want {
					t.Errorf("%s: got %q, want %q", c.from, got.get(f), c.want)
				}
			}
		})
	}
}

func defaultText(t *testing.T, f Field) string {
	t.Helper()
	c := Default()
	return c.get(f)
}

func TestFixedNamesAndDefaults(t *testing.T) {
	c := Default()
	want := map[string][2]string{ // scripts rely on these
		"http":            {"PALISADE_HTTP", "127.0.0.1:8080"},
		"grpc":            {"PALISADE_GRPC", "127.0.0.1:9090"},
		"metrics":         {"PALISADE_METRICS", "127.0.0.1:9091"},
		"data":            {"PALISADE_DATA", "./data"},
		"database":        {"PALISADE_DATABASE", ""},
		"deployment":      {"PALISADE_DEPLOYMENT", "default"},
		"bootstrap-token": {"PALISADE_BOOTSTRAP_TOKEN", ""},
		"key-file":        {"PALISADE_KEY_FILE", ""},
	}
	for _, f := range Fields() {
		w, fixed := want[f.Name]
		if fixed && (f.Env != w[0] || c.get(f) != w[1]) {
			t.Errorf("%s: %s=%q, want %s=%q", f.Name, f.Env, c.get(f), w[0], w[1])
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if err := c.Validate(); err != nil {
		t.Errorf("the defaults must start: %v", err)
	}
}

func TestFileNamedByEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(path, []byte("log-format: json\nrate-limit: 7\npprof: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, nil, []string{"PALISADE_CONFIG=" + path}, "")
	if err != nil || c.LogFormat != "json" || c.RateLimit != 7 || !c.Pprof {
		t.Fatalf("got %v, %v", c, err)
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		file string
		want []string // parts of the text
	}{
		{"unknown key", nil, "tls-crt: x\n", []string{"tls-crt", "nearest is tls-cert"}},
		{"underscore", nil, "tls_cert: x\n", []string{"tls_cert", "nearest is tls-cert"}},
		{"section", nil, "tls:\n  cert: x\n", []string{"tls in", "nearest is"}},
		{"list", nil, "http: [a, b]\n", []string{"http in", "want one string"}},
		{"wrong type", nil, "max-streams: many\n", []string{"max-streams", `got "many"`, "whole number"}},
		{"no YAML", nil, "http: [\n", []string{"palisade.yaml"}},
		{"unknown variable", []string{"PALISADE_BEHIND_TLS_PROXI=true"}, "", []string{"PALISADE_BEHIND_TLS_PROXI", "nearest is PALISADE_BEHIND_TLS_PROXY"}},
		{"unknown empty variable", []string{"PALISADE_TLSCERT="}, "", []string{"PALISADE_TLSCERT", "PALISADE_TLS_CERT"}},
		{"near a client variable", []string{"PALISADE_TOKENS=x"}, "", []string{"nearest is PALISADE_TOKEN"}},
		{"wrong value", []string{"PALISADE_IDLE_TIMEOUT=soon"}, "", []string{"PALISADE_IDLE_TIMEOUT", `got "soon"`, "60s"}},
		{"wrong bool", []string{"PALISADE_PPROF=maybe"}, "", []string{"PALISADE_PPROF", "true or false"}},
		{"not a number", []string{"PALISADE_RATE_LIMIT=NaN"}, "", []string{"PALISADE_RATE_LIMIT", "want a number"}},
		{"two at once", []string{"PALISADE_X=1"}, "y: 1\n", []string{"2 problems", "PALISADE_X", "y in"}},
		{"missing file", []string{"PALISADE_CONFIG=/nonexistent/p.yaml"}, "", []string{"/nonexistent/p.yaml", "no such file"}},
		{"directory", []string{"PALISADE_CONFIG=/"}, "", []string{"is a directory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, nil, c.env, c.file)
			var config *Error
			if !errors.As(err, &config) {
				t.Fatalf("got %v, want a Error", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestForeignVariablesAreIgnored(t *testing.T) {
	env := []string{
		"PALISADE_URL=http://x", "PALISADE_TOKEN=t", "PALISADE_TEST_POSTGRES=postgres://x",
		"PALISADE_SERVICE_HOST=10.0.0.1", "PALISADE_SERVICE_PORT=8080", "PALISADE_SERVICE_PORT_HTTP=8080",
		"PALISADE_PORT=tcp://10.0.0.1:8080", "PALISADE_PORT_8080_TCP=tcp://10.0.0.1:8080",
		"PALISADE_PORT_8080_TCP_PROTO=tcp", "PALISADE_PORT_8080_TCP_PORT=8080", "PALISADE_PORT_8080_TCP_ADDR=10.0.0.1",
		"PALISADE_WEB_SERVICE_HOST=10.0.0.2", "PALISADE_WEB_PORT_80_TCP_ADDR=10.0.0.2",
		"NOT_PALISADE_HTTP=x",
	}
	if c, err := load(t, nil, env, ""); err != nil || c != Default() {
		t.Fatalf("got %v, %v", c, err)
	}
	for _, f := range Fields() {
		if serviceLinkEnv.MatchString(f.Env) {
			t.Errorf("%s looks like a variable of Kubernetes and would be ignored when misspelt", f.Env)
		}
	}
}

func TestFlagsOfOneCommand(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(fs, "data", "database")
	if fs.Lookup("http") != nil || fs.Lookup("data") == nil || fs.Lookup("config") == nil {
		t.Fatal("want --data, --database and --config alone")
	}
	if err := fs.Parse([]string{"--data", "/x", "--database", ""}); err != nil {
		t.Fatal(err)
	}
	c, err := Load(fs, []string{"PALISADE_HTTP=127.0.0.1:1", "PALISADE_DATABASE=postgres://h/d"})
	if err != nil || c.Data != "/x" || c.HTTP != "127.0.0.1:1" || c.Database != "" {
		t.Fatalf("got %v, %v", c, err)
	}
}

func TestWrongFlagNamesItself(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(fs)
	err := fs.Parse([]string{"--max-body", "huge"})
	if err == nil || !strings.Contains(err.Error(), "--max-body") || !strings.Contains(err.Error(), "16MiB") {
		t.Fatalf("got %v", err)
	}
}

// FuzzLoadFile loads arbitrary files. Load must accept or refuse them, and accepted values must fit their types.
func FuzzLoadFile(f *testing.F) {
	f.Add("http: 127.0.0.1:1\nbootstrap-token: abc\n")
	f.Add("a: &a [*a]\n")
	f.Add("http:\n  - x\n? [1]\n: 2\n")
	f.Add("'': 1\n1: 2\n~: 3\nmax-upload: 0x10\nrate-limit: .inf\n")
	path := filepath.Join(f.TempDir(), "palisade.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := Default()
		if len(c.loadFile(path)) > 0 {
			return
		}
		again := Default()
		for _, field := range Fields() {
			if err := again.set(field, c.get(field)); err != nil {
				t.Fatalf("%s: %v", field.Name, err)
			}
		}
		if again != c {
			t.Fatalf("got %v, and from its own text %v", c, again)
		}
	})
}
