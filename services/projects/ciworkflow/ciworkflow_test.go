package ciworkflow_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/palisade/palisade/services/projects/ciworkflow"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestRender(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]ciworkflow.Options{
		"default":       {Server: "https://palisade.acme.test"},
		"pull_requests": {Server: "https://palisade.acme.test", PullRequests: true, Comments: true},
		"pushes": {
			Server: "https://acme.test/palisade", Pushes: true, SelfHosted: true, Branches: []string{"main", "release/**", `- "odd": #x`},
			Paths: []string{"src/**", "!docs/**", "${{ github.token }}"},
		},
		"daily": {Server: "https://palisade.acme.test", Daily: true},
	} {
		got, err := options.Render("trunk", 1007)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".yml")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, want)
		}
		var read struct {
			On struct {
				Push struct{ Branches, Paths []string }
			}
		}
		if err := yaml.Unmarshal(got, &read); err != nil {
			t.Fatal(err)
		}
		if len(options.Branches) > 0 && strings.Join(read.On.Push.Branches, "|")+strings.Join(read.On.Push.Paths, "|") != strings.Join(options.Branches, "|")+strings.Join(options.Paths, "|") {
			t.Errorf("%s reads back as %q", name, read.On.Push)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for server, valid := range map[string]bool{
		"https://palisade.acme.test": true, "http://10.0.0.7:8080/palisade": true, "": false, "palisade.acme.test": false, "https://": false,
		"https://u:p@acme.test": false, "https://acme.test/?a=b": false, "https://acme.test/${{ github.token }}": false, "https://acme.test/\nrun: x": false,
		"ftp://acme.test": false, "https://acme.test/#x": false,
	} {
		if got := (ciworkflow.Options{Server: server}).Check(); (got == "") != valid {
			t.Errorf("%q: %q", server, got)
		}
	}
}
