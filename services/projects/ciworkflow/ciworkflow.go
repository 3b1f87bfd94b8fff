// Package ciworkflow writes the workflow with which GitHub Actions scan a repository and send the results to this
// server.
package ciworkflow

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

const (
	// Path is the file of the workflow.
	Path = ".github/workflows/semgrep.yml"
	// Secret is the name of the secret with the token.
	Secret = "SEMGREP_APP_TOKEN"
)

// Options say when and how the workflow scans.
type Options struct {
	// Server is the URL of this server for the scanner.
	Server string
	// PullRequests, Pushes and Daily are when it scans. Without any, it scans at all three.
	PullRequests, Pushes, Daily bool
	// Comments gives the workflow the permission to comment on pull requests.
	Comments bool
	// Branches and Paths limit the pushes, as patterns of GitHub. Without branches, pushes to the default branch count.
	Branches, Paths []string
	// SelfHosted runs on self-hosted runners.
	SelfHosted bool
}

// Check returns what is wrong with the URL of the server; "" if it is valid. GitHub evaluates expressions in values, so
// the URL must not contain any.
func (o Options) Check() string {
	u, err := url.Parse(o.Server)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "",
		strings.ContainsAny(o.Server, "{}$`\"'\\"), strings.ContainsFunc(o.Server, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }):
		return "must be the URL of this server, as https://palisade.acme.test, without user, query and fragment"
	}
	return ""
}

// workflow and the types after it are the parts of GitHub's format that are needed, in the order of the file.
type workflow struct {
	Name        string            `yaml:"name"`
	On          triggers          `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]job    `yaml:"jobs"`
}

type triggers struct {
	Manual       struct{}    `yaml:"workflow_dispatch"`
	PullRequests *struct{}   `yaml:"pull_request,omitempty"`
	Pushes       *pushes     `yaml:"push,omitempty"`
	Schedule     []cronEntry `yaml:"schedule,omitempty"`
}

type pushes struct {
	Branches []string `yaml:"branches"`
	Paths    []string `yaml:"paths,omitempty"`
}

type cronEntry struct {
	Cron string `yaml:"cron"`
}

type job struct {
	Runner    any               `yaml:"runs-on"`
	Container map[string]string `yaml:"container"`
	Env       map[string]string `yaml:"env"`
	Steps     []step            `yaml:"steps"`
}

type step struct {
	Uses string         `yaml:"uses,omitempty"`
	With map[string]int `yaml:"with,omitempty"`
	Run  string         `yaml:"run,omitempty"`
}

// Render returns the file for a repository with this default branch. The seed spreads the daily scans of many
// repositories over the night.
func (o Options) Render(defaultBranch string, seed int64) ([]byte, error) {
	if !o.PullRequests && !o.Pushes && !o.Daily {
		o.PullRequests, o.Pushes, o.Daily = true, true, true
	}
	w := workflow{Name: "Semgrep", Permissions: map[string]string{"contents": "read"}, Jobs: map[string]job{"semgrep": o.job()}}
	if o.PullRequests {
		w.On.PullRequests = &struct{}{}
	}
	if o.Comments {
		w.Permissions["pull-requests"] = "write"
	}
	if o.Pushes {
		w.On.Pushes = &pushes{Branches: slices.Clone(o.Branches), Paths: o.Paths}
		if len(o.Branches) == 0 {
			w.On.Pushes.Branches = []string{defaultBranch}
		}
	}
	if o.Daily {
		minute := uint64(seed) % (6 * 60)
		w.On.Schedule = []cronEntry{{fmt.Sprintf("%d %d * * *", minute%60, minute/60)}}
	}
	return yaml.Marshal(w)
}

func (o Options) job() job {
	var runner any = "ubuntu-latest"
	if o.SelfHosted {
		runner = []string{"self-hosted", "linux"}
	}
	return job{
		Runner:    runner,
		Container: map[string]string{"image": "semgrep/semgrep"},
		Env: map[string]string{
			"SEMGREP_URL": o.Server, Secret: "${{ secrets." + Secret + " }}",
			"SEMGREP_ENABLE_VERSION_CHECK": "0", "SEMGREP_SEND_METRICS": "off",
		},
		Steps: []step{
			{Uses: "actions/checkout@v4", With: map[string]int{"fetch-depth": 0}}, // pull requests are compared with their merge base
			{Run: `git config --global --add safe.directory "$GITHUB_WORKSPACE"`},
			{Run: "semgrep ci --oss-only --no-suppress-errors"},
		},
	}
}
