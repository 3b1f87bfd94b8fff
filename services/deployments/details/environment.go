package details

import (
	"net/url"
	"strings"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
)

// Environment detects a CI system by the format of its job URL.
func Environment(jobURL string) deploymentsv1.ScanEnvironment {
	job, err := url.Parse(jobURL)
	if jobURL == "" || err != nil {
		return deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_LOCAL
	}
	host, path := job.Hostname(), job.Path
	under := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	switch {
	case strings.Contains(path, "/actions/runs/"):
		return deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_GITHUB_ACTIONS
	case strings.Contains(path, "/-/jobs/"), strings.Contains(path, "/-/pipelines/"):
		return deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_GITLAB_CI
	case under("bitbucket.org"):
		return deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_BITBUCKET
	case under("circleci.com"):
		return deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_CIRCLECI
	case under("buildkite.com"):
		return deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_BUILDKITE
	case under("dev.azure.com"), under("visualstudio.com"):
		return deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_AZURE_PIPELINES
	case strings.Contains(path, "/job/"):
		return deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_JENKINS
	}
	return deploymentsv1.ScanEnvironment_SCAN_ENVIRONMENT_UNSPECIFIED
}
