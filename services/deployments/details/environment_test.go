package details

import "testing"

func TestEnvironment(t *testing.T) {
	for job, want := range map[string]string{
		"": "LOCAL",
		"https://github.com/acme/web/actions/runs/123/job/456":                    "GITHUB_ACTIONS",
		"https://git.acme.test/acme/web/actions/runs/123":                         "GITHUB_ACTIONS",
		"https://gitlab.com/acme/web/-/jobs/123":                                  "GITLAB_CI",
		"https://gitlab.acme.test/acme/web/-/pipelines/9":                         "GITLAB_CI",
		"https://bitbucket.org/acme/web/addon/pipelines/home#!/results/12":        "BITBUCKET",
		"https://app.circleci.com/pipelines/github/acme/web/1/workflows/2/jobs/3": "CIRCLECI",
		"https://buildkite.com/acme/web/builds/12#job":                            "BUILDKITE",
		"https://dev.azure.com/acme/web/_build/results?buildId=12":                "AZURE_PIPELINES",
		"https://acme.visualstudio.com/web/_build/results?buildId=12":             "AZURE_PIPELINES",
		"https://jenkins.acme.test/job/web/job/main/12/":                          "JENKINS",
		"https://ci.acme.test/builds/12":                                          "UNSPECIFIED",
		"https://notbuildkite.com/acme/web":                                       "UNSPECIFIED",
		"://":                                                                     "LOCAL",
	} {
		if got := Environment(job).String(); got != "SCAN_ENVIRONMENT_"+want {
			t.Errorf("%q: %s, want %s", job, got, want)
		}
	}
}
