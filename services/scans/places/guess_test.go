package places_test

import (
	"slices"
	"testing"

	"github.com/palisade/palisade/services/scans/places"
)

func TestGuess(t *testing.T) {
	for uri, want := range map[string]places.Guessed{
		"/home/runner/work/web/web/a/b.go":                        {"/home/runner/work/web/web", "GitHub Actions"},
		"file:///Users/runner/work/web/web/a/b.go":                {"/Users/runner/work/web/web", "GitHub Actions"},
		"/github/workspace/a/b.go":                                {"/github/workspace", "GitHub Actions"},
		"/__w/web/web/a/b.go":                                     {"/__w/web/web", "GitHub Actions"},
		`D:\a\web\web\a\b.go`:                                     {"D:/a/web/web", "GitHub Actions"},
		"/opt/actions-runner/_work/web/web/a/b.go":                {"/opt/actions-runner/_work/web/web", "GitHub Actions"},
		"/workspaces/web/a/b.go":                                  {"/workspaces/web", "GitHub Codespaces"},
		"/home/vsts/work/1/s/a/b.go":                              {"/home/vsts/work/1/s", "Azure Pipelines"},
		"/Users/runner/work/1/s/a/b.go":                           {"/Users/runner/work/1/s", "Azure Pipelines"},
		"/__w/1/s/a/b.go":                                         {"/__w/1/s", "Azure Pipelines"},
		"file:///C:/a/1/s/a/b.go":                                 {"C:/a/1/s", "Azure Pipelines"},
		"file:///C:/a2/_work/6/s/a/b.go":                          {"C:/a2/_work/6/s", "Azure Pipelines"},
		"/agent/_work/12/s/a/b.go":                                {"/agent/_work/12/s", "Azure Pipelines"},
		"/builds/acme/web/a/b.go":                                 {"/builds/acme/web", "GitLab CI"},
		"/builds/acme/tools/web/a/b.go":                           {"/builds/acme/tools/web", "GitLab CI"},
		"/builds/acme/site/a/b.go":                                {"/builds/acme/site", "GitLab CI"},
		"/home/gitlab-runner/builds/x7Yz/0/acme/web/a/b.go":       {"/home/gitlab-runner/builds/x7Yz/0/acme/web", "GitLab CI"},
		"C:/GitLab-Runner/builds/acme/web/a/b.go":                 {"C:/GitLab-Runner/builds/acme/web", "GitLab CI"},
		"/var/lib/jenkins/workspace/job/a/b.go":                   {"/var/lib/jenkins/workspace/job", "Jenkins"},
		"/var/jenkins_home/workspace/folder/web/a/b.go":           {"/var/jenkins_home/workspace/folder/web", "Jenkins"},
		"/home/jenkins/agent/workspace/job@2/a/b.go":              {"/home/jenkins/agent/workspace/job@2", "Jenkins"},
		`C:\ProgramData\Jenkins\.jenkins\workspace\job\a\b.go`:    {"C:/ProgramData/Jenkins/.jenkins/workspace/job", "Jenkins"},
		"/opt/atlassian/pipelines/agent/build/a/b.go":             {"/opt/atlassian/pipelines/agent/build", "Bitbucket Pipelines"},
		"/var/bamboo/xml-data/build-dir/WEB-JOB1/a/b.go":          {"/var/bamboo/xml-data/build-dir/WEB-JOB1", "Bamboo"},
		"/home/circleci/project/a/b.go":                           {"/home/circleci/project", "CircleCI"},
		"/root/project/a/b.go":                                    {"/root/project", "CircleCI"},
		"/home/travis/build/acme/web/a/b.go":                      {"/home/travis/build/acme/web", "Travis CI"},
		`C:\projects\web\a\b.go`:                                  {"C:/projects/web", "AppVeyor"},
		"/home/appveyor/projects/web/a/b.go":                      {"/home/appveyor/projects/web", "AppVeyor"},
		"/opt/buildagent/work/74efd952ef63049f/a/b.go":            {"/opt/buildagent/work/74efd952ef63049f", "TeamCity"},
		`C:\BuildAgent\work\74efd952ef63049f\a\b.go`:              {"C:/BuildAgent/work/74efd952ef63049f", "TeamCity"},
		"/codebuild/output/src123/src/a/b.go":                     {"/codebuild/output/src123/src", "AWS CodeBuild"},
		"/codebuild/output/src123/src/github.com/acme/web/a/b.go": {"/codebuild/output/src123/src/github.com/acme/web", "AWS CodeBuild"},
		"/codebuild/output/src123/src/web/a/b.go":                 {"/codebuild/output/src123/src/web", "AWS CodeBuild"},
		"/var/lib/buildkite-agent/builds/agent-1/acme/web/a/b.go": {"/var/lib/buildkite-agent/builds/agent-1/acme/web", "Buildkite"},
		"/drone/src/a/b.go":                                       {"/drone/src", "Drone"},
		"/src/a/b.go":                                             {"/src", "a container"},
		"/usr/src/app/a/b.go":                                     {"/usr/src/app", "a container"},
		"/home/kim/web/a/b.go":                                    {},
		"/home/runner/work/web/other/a/b.go":                      {},
		"/srv/a/b.go":                                             {},
		"/src":                                                    {},
		"file://src/a/b.go":                                       {},
		"src/a/b.go":                                              {},
		"/builds/b.go":                                            {},
		"D:/a/web/site/b.go":                                      {},
	} {
		r := places.New(places.Given{Project: "acme/Web"})
		got, ok := r.Guess([]string{places.Decode(uri)})
		if ok != (want != places.Guessed{}) || got != want {
			t.Errorf("%s: %v %v, want %v", uri, got, ok, want)
		}
		if path, _ := resolve(r, uri); ok && path != "a/b.go" {
			t.Errorf("%s is %q after the guess", uri, path)
		}
	}
}

// A guess needs a share of the paths. A directory with a common name needs nearly all.
func TestGuessIsSafe(t *testing.T) {
	many := func(n int, path string) []string { return slices.Repeat([]string{path}, n) }
	ci, mount, other := "/builds/acme/web/a.go", "/src/a.go", "/usr/include/a.h"
	for name, c := range map[string]struct {
		sample []string
		want   string
	}{
		"most are of a service":       {slices.Concat(many(6, ci), many(5, other)), "/builds/acme/web"},
		"half are of a service":       {slices.Concat(many(5, ci), many(5, other)), ""},
		"two projects":                {slices.Concat(many(5, ci), many(5, "/builds/acme/api/a.go")), ""},
		"nearly all are in a mount":   {slices.Concat(many(9, mount), many(1, other)), "/src"},
		"most are in a mount":         {slices.Concat(many(8, mount), many(2, other)), ""},
		"relative paths do not count": {slices.Concat(many(1, mount), many(50, "a.go")), "/src"},
		"the report's root counts":    {slices.Concat(many(9, "/declared/a.go"), many(1, ci)), "/builds/acme/web"},
		"nothing":                     {nil, ""},
	} {
		r := places.New(places.Given{Project: "acme/web"})
		r.AddRoot("/declared")
		if got, _ := r.Guess(c.sample); got.Root != c.want {
			t.Errorf("%s: guessed %q, want %q", name, got.Root, c.want)
		}
	}
}
