package findings_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// explain reads the explanation of a finding over HTTP and gRPC.
func (l *fixture) explain(t testing.TB, s *apitest.Server, label string) string {
	t.Helper()
	id := l.findings[label]
	body := s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/findings/%d/identity", l.DeploymentID, id))
	response, err := findingsv1.NewFindingIdentityServiceClient(s.Conn).ExplainMatch(s.Context(t, l.Token),
		&findingsv1.ExplainMatchRequest{DeploymentId: l.DeploymentID, FindingId: id})
	if err != nil {
		t.Fatal(err)
	}
	apitest.Same(t, response, body)
	return body
}

func TestExplainMatch(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedJoined(t, s)
		apitest.Golden(t, "identity_explained", l.explain(t, s, "a"))
		if body := l.explain(t, s, "b"); !strings.Contains(body, `"outcome":"new"`) || !strings.Contains(body, `"scanId":"411"`) {
			t.Errorf("a finding with one sighting: %s", body)
		}
		// A later scan reports it again, or does not cover it.
		covers := func(scan int64, about *storev1.ScanCoverage) {
			t.Helper()
			raw, err := proto.Marshal(about)
			if err != nil {
				t.Fatal(err)
			}
			encoder, err := zstd.NewWriter(nil)
			if err != nil {
				t.Fatal(err)
			}
			err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				return tx.ScanCoverage.Create().SetDeploymentID(l.DeploymentID).SetScanID(scan).SetProjectID(l.projects["acme/web"]).SetRef(mainRef).
					SetTool("test").SetAnalysisCategory("").SetIsFullScan(true).SetContent(encoder.EncodeAll(raw, nil)).SetAt(base).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		covers(413, &storev1.ScanCoverage{RulesKnown: true, Rules: []string{"py.sqli"}, FilesKnown: true, Files: []string{"app/db.py"}})
		if body := l.explain(t, s, "a"); !strings.Contains(body, `"scanId":"413"`) || !strings.Contains(body, `by the same evidence: the matched lines.`) ||
			!strings.Contains(body, `"earlier":[{"scanId":"412"`) {
			t.Errorf("seen again: %s", body)
		}
		covers(414, &storev1.ScanCoverage{Skipped: []string{"app/db.py"}})
		if body := l.explain(t, s, "a"); !strings.Contains(body, `"outcome":"not_looked_at"`) || !strings.Contains(body, "it could not examine the file") {
			t.Errorf("skipped: %s", body)
		}
		l.split(t, s, http.StatusOK, "a")
		if body := l.explain(t, s, "a"); strings.Contains(body, `"latest"`) || !strings.Contains(body, `"kind":"IDENTITY_CHANGE_KIND_SPLIT"`) {
			t.Errorf("split: %s", body)
		}
	})
}

// An explanation never shows a part of a secret, for any evidence.
func TestExplainHidesSecrets(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		secret := code("deploy.env", 4, "API_KEY=correct-horse-battery")
		secret.Message, secret.ToolFingerprint = "found correct-horse-battery", "key:correct-horse-battery"
		l.seedEvidence(t, s, fact{label: "key", kind: "secrets", content: secret})
		if body := l.explain(t, s, "key"); strings.Contains(body, "correct-horse") || !strings.Contains(body, `"rung":"snippet"`) ||
			!strings.Contains(body, `"rung":"tool_fingerprint"`) || strings.Count(body, `"hash":""`) != strings.Count(body, `"hash"`) {
			t.Errorf("explained: %s", body)
		}
	})
}

func TestExplainMerged(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMerge(t, s)
		l.merge(t, s, http.StatusOK, "new", "old")
		var answer struct {
			MergedInto int64 `json:"mergedInto,string"`
			OtherRefs  []struct{ Ref string }
			Changes    []struct{ Note string }
		}
		if err := json.Unmarshal([]byte(l.explain(t, s, "new")), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.MergedInto != l.findings["old"] || len(answer.OtherRefs) != 0 || len(answer.Changes) != 1 || answer.Changes[0].Note != "the same" {
			t.Errorf("the merged finding: %+v", answer)
		}
		if body := l.explain(t, s, "old"); strings.Count(body, `"ref":"refs/pull/7/merge"`) != 1 || strings.Contains(body, "mergedInto") {
			t.Errorf("the remaining finding: %s", body)
		}
	})
}

func TestListIdentityChanges(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMerge(t, s)
		l.merge(t, s, http.StatusOK, "new", "old")
		l.split(t, s, http.StatusOK, "old-dev")
		path := fmt.Sprintf("/api/v1/deployments/%d/identity-changes", l.DeploymentID)
		l.undo(t, s, http.StatusOK, 2)
		apitest.Golden(t, "identity_changes", s.Get(t, path))
		first := s.Get(t, path+"?limit=1")
		var answer struct {
			Changes []struct {
				ID int64 `json:"id,string"`
			}
			Cursor string
		}
		if err := json.Unmarshal([]byte(first), &answer); err != nil || len(answer.Changes) != 1 || answer.Changes[0].ID != 2 || answer.Cursor == "" {
			t.Fatalf("%v: %s", err, first)
		}
		second := s.Get(t, path+"?limit=1&cursor="+answer.Cursor)
		if !strings.Contains(second, `"id":"1"`) || !strings.Contains(second, `"cursor":""`) {
			t.Errorf("second page: %s", second)
		}
		if got := s.Do(t, s.Token, http.MethodGet, path+"?projectId=1&cursor="+answer.Cursor, ""); got.Status != 400 {
			t.Errorf("the cursor of another list: %d %s", got.Status, got.Body)
		}
		if got := s.Do(t, s.Token, http.MethodGet, path+"?limit=0", ""); got.Status != 400 {
			t.Errorf("limit 0: %d %s", got.Status, got.Body)
		}
		if got := s.Get(t, fmt.Sprintf("%s?findingId=%d", path, l.findings["old-dev"])); strings.Count(got, `"kind"`) != 1 {
			t.Errorf("of one finding: %s", got)
		}
		if got := s.Get(t, fmt.Sprintf("%s?projectId=%d", path, l.projects["acme/api"])); got != `{"changes":[],"cursor":""}` {
			t.Errorf("of another project: %s", got)
		}
	})
}
