package supplychain_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// vulnerable is an OSV-Scanner report with a vulnerable package for each name.
func vulnerable(advisory string, packages ...string) []byte {
	list := make([]string, len(packages))
	for i, name := range packages {
		list[i] = fmt.Sprintf(`{"package":{"name":%q,"version":"1.0.0","ecosystem":"npm"},"vulnerabilities":[{"id":%q,"summary":"bad"}],"groups":[{"ids":[%q]}]}`, name, advisory, advisory)
	}
	return []byte(`{"results":[{"source":{"path":"package-lock.json","type":"lockfile"},"packages":[` + strings.Join(list, ",") + `]}]}`)
}

// TestFindingsForAdvisory: projects with an advisory, most findings first, with their branches; pages meet.
func TestFindingsForAdvisory(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/a", "main", vulnerable("CVE-2026-1", "x"))
		s.Upload(t, "acme/b", "main", vulnerable("CVE-2026-1", "x", "y"))
		s.Upload(t, "acme/b", "dev", vulnerable("CVE-2026-1", "x"))
		s.Upload(t, "acme/c", "main", vulnerable("CVE-2026-1", "x"))
		s.Upload(t, "acme/d", "main", vulnerable("CVE-2026-2", "x"))
		s.Upload(t, "acme/e", "main", vulnerable("CVE-2026-1", "x", "y", "z"))
		s.Body(t, s.Token, http.MethodPatch, "/api/v1/deployments/acme/projects/acme/e", `{"archived":true}`, http.StatusOK)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Finding.Update().Where(finding.Package("y"), finding.Status("open")).SetStatus("fixed").SetState("fixed").Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		path := fmt.Sprintf("/api/sca/deployments/%d/advisories/cve-2026-1/findings", s.DeploymentID)
		body := s.Body(t, s.Token, http.MethodPost, path, `{"pageSize":2}`, http.StatusOK)
		const first = `{"projects":[{"projectName":"acme/b","totalFindingCount":2,"branchFindings":[{"branchName":"refs/heads/dev","findingCount":1},{"branchName":"refs/heads/main","findingCount":1}]},` +
			`{"projectName":"acme/a","totalFindingCount":1,"branchFindings":[{"branchName":"refs/heads/main","findingCount":1}]}],"hasMore":true,"cursorFindingCount":1,"cursorProjectName":"acme/a","ruleId":"`
		if !strings.HasPrefix(body, first) {
			t.Errorf("first page\n%s, want\n%s", body, first)
		}
		size := int32(2)
		out, err := supplychainv1.NewSupplyChainServiceClient(s.Conn).ListFindingsForAdvisory(s.Context(t, s.Token),
			&supplychainv1.ListFindingsForAdvisoryRequest{DeploymentId: s.DeploymentID, AdvisoryId: "cve-2026-1", PageSize: &size})
		same(t, body)(out, err)
		last := s.Body(t, s.Token, http.MethodPost, path, `{"pageSize":2,"cursorFindingCount":1,"cursorProjectName":"acme/a"}`, http.StatusOK)
		if !strings.HasPrefix(last, `{"projects":[{"projectName":"acme/c","totalFindingCount":1,`) || !strings.Contains(last, `"hasMore":false,"cursorFindingCount":0,"cursorProjectName":""`) {
			t.Errorf("last page %s", last)
		}
		none := s.Body(t, s.Token, http.MethodPost, strings.Replace(path, "2026-1", "1999-9", 1), `{}`, http.StatusOK)
		if none != `{"projects":[],"hasMore":false,"cursorFindingCount":0,"cursorProjectName":"","ruleId":""}` {
			t.Errorf("unknown advisory %s", none)
		}
		for _, bad := range []string{`{"pageSize":-1}`, `{"pageSize":101}`, `{"cursorFindingCount":-1}`} {
			s.Body(t, s.Token, http.MethodPost, path, bad, http.StatusBadRequest)
		}
	})
}
