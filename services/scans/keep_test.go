package scans_test

import (
	"context"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Data that the assistant added survives a scan that changes the text of a finding, and does not count as a change
// afterwards.
func TestWhatWasAddedSurvivesScans(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := func(level string) []byte {
			return sarifOf(t, run{Tool: "T", Results: []result{{Rule: "a", File: "app/db.py", Line: 3, Code: "run(x)", Level: level}, {Rule: "b", File: "app/db.py", Line: 9, Code: "run(y)"}}})
		}
		wantCounts(t, "first", upload(t, s, "main", report("warning")), [6]int32{2, 0, 0, 0, 0, 0})
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		id := s.Store.Reader.Finding.Query().Order(ent.Asc("id")).FirstX(ctx).ID
		err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			_, err := verdict.Apply(ctx, s.Store, tx, verdict.Verdict{FindingID: id, Value: verdict.FalsePositive, Reason: "a constant", ComponentTag: "db", ActorKind: verdict.ActorJob})
			if err != nil {
				return err
			}
			return verdict.Amend(ctx, s.Store, tx, id, func(c *storev1.FindingContent, u *ent.FindingUpdate) {
				c.ClickToFixPrs = []*findingsv1.ClickToFixPr{{Url: "https://git.acme.test/acme/web/pull/1"}}
				c.ReviewComments = []*findingsv1.ReviewComment{{}}
				u.SetClickToFixState("open")
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "another severity", upload(t, s, "main", report("error")), [6]int32{0, 1, 1, 0, 0, 0})
		wantCounts(t, "the same", upload(t, s, "main", report("error")), [6]int32{0, 0, 2, 0, 0, 0})
		wantCounts(t, "gone", upload(t, s, "main", sarifOf(t, run{Tool: "T"})), [6]int32{0, 0, 0, 0, 2, 0})
		wantCounts(t, "back", upload(t, s, "main", report("error")), [6]int32{0, 0, 0, 2, 0, 0})
		row := s.Store.Reader.Finding.GetX(ctx, id)
		content, err := blob.Decode(row.Content)
		if err != nil {
			t.Fatal(err)
		}
		if content.GetAssistant().GetAutotriage().GetReason() != "a constant" || content.GetAssistant().GetComponent().GetTag() != "db" ||
			len(content.GetClickToFixPrs()) != 1 || len(content.GetReviewComments()) != 1 || content.GetSnippet() != "run(x)" {
			t.Errorf("%v", content)
		}
		if *row.AutotriageVerdict != "false_positive" || row.TriageState != "provisionally_ignored" || row.Status != "provisionally_ignored" || *row.ClickToFixState != "open" {
			t.Errorf("%v", row)
		}
	})
}
