package scans_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestBitbucketDataCenterLinks: the URL of the repository shows which host it is.
func TestBitbucketDataCenterLinks(t *testing.T) {
	t.Parallel()
	const base = "https://bitbucket.corp.test/projects/PR/repos/r"
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for name, address := range map[string]string{"web": base, "clone": "https://bitbucket.corp.test/scm/PR/r.git"} {
			s.Upload(t, name, "main", sarifResults(`{"id":"R"}`, located("R", "app/a.go", ``)), "commit", "3f2a", "repo_url", address)
			body := s.Get(t, "/api/v1/deployments/acme/findings?repos="+name)
			if want := `"line_of_code_url":"` + base + `/browse/app/a.go?at=3f2a#1"`; !strings.Contains(body, want) {
				t.Errorf("%s: no %s in %s", name, want, body)
			}
		}
	})
}
