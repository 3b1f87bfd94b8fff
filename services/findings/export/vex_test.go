package export_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/apitest"
)

// TestVEXRoundTrip: another installation that gets the VEX document knows the decisions about its own findings. An
// accepted risk is no decision about others.
func TestVEXRoundTrip(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seed(t, s)
		for _, format := range []string{"OPENVEX", "CYCLONEDX"} {
			document := export(t, s, s.Tenant, s.Token, `{"format":"EXPORT_FORMAT_`+format+`","issueType":"ISSUE_TYPE_SCA"}`).text
			other := s.AddTenant(t, strings.ToLower(format))
			path := fmt.Sprintf("/api/v1/deployments/%s/reports?project=acme/mirror&ref=main", other.Slug)
			s.Body(t, other.Token, http.MethodPost, path, string(vulnerable("CVE-2026-1 lodash 4.17.4", "CVE-2026-2 @acme/ui 1.0.0", "CVE-2026-3 tar 1.0.0")), http.StatusOK)
			s.Body(t, other.Token, http.MethodPost, path, document, http.StatusOK)
			var got []string
			for _, f := range s.Store.Reader.Finding.Query().Where(finding.DeploymentID(other.DeploymentID)).AllX(s.System(t)) {
				reason := ""
				if f.TriageReason != nil {
					reason = *f.TriageReason
				}
				got = append(got, strings.TrimSpace(*f.Package+" "+f.Status+" "+reason))
			}
			slices.Sort(got)
			if want := []string{"@acme/ui open", "lodash ignored false_positive", "tar reviewing"}; !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", format, got, want)
			}
		}
	})
}

// TestSARIFRoundTrip: another installation that gets the SARIF report has the ignored findings with reason and note.
func TestSARIFRoundTrip(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seed(t, s)
		document := export(t, s, s.Tenant, s.Token, `{"format":"EXPORT_FORMAT_SARIF","filter":{"repositoryNames":["acme/web"]}}`).text
		other := s.AddTenant(t, "other")
		path := fmt.Sprintf("/api/v1/deployments/%s/reports?project=acme/mirror&ref=main", other.Slug)
		for range 2 {
			s.Body(t, other.Token, http.MethodPost, path, document, http.StatusOK)
		}
		var got []string
		for _, f := range s.Store.Reader.Finding.Query().Where(finding.DeploymentID(other.DeploymentID), finding.TriageState("ignored")).AllX(s.System(t)) {
			note := ""
			if f.TriageComment != nil {
				note = *f.TriageComment
			}
			got = append(got, s.Store.Reader.Rule.GetX(s.System(t), f.RuleID).Name+"|"+f.TriageState+"|"+*f.TriageReason+"|"+note)
		}
		slices.Sort(got)
		want := []string{"CVE-2026-1|ignored|false_positive|not called", "CVE-2026-2|ignored|acceptable_risk|", "sql|ignored|false_positive|=HYPERLINK(1)"}
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
