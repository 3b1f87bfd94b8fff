package findings_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
)

// A list is read along the index of the condition that chooses the fewest findings, also where the database has no
// statistics, or none that know the value, and other conditions are looked at in an index, too.
func TestFewestFindingsLead(t *testing.T) {
	lists := []struct {
		name, index, also string
		request           *findingsv1.ListFindingsRequest
	}{
		{"a value that none has", "findings_list_click_to_fix_state", "", &findingsv1.ListFindingsRequest{ClickToFixPrState: []string{"merged"}}},
		{"a rare tag", "findings_list_component_tag", "findings_report", &findingsv1.ListFindingsRequest{
			Status: "open", Severities: []string{"critical"}, ComponentTags: []string{"payments"},
		}},
		{"a rare status", "findings_list_status_severity", "", &findingsv1.ListFindingsRequest{Status: "fixed", Severities: []string{"low"}}},
		{"a rare severity", "findings_list_status_severity", "", &findingsv1.ListFindingsRequest{Status: "open", Severities: []string{"critical"}}},
		{"a rare status of several severities", "findings_list_status", "findings_report", &findingsv1.ListFindingsRequest{
			Status: "fixed", Severities: []string{"low", "medium"},
		}},
		{"two rare values", "findings_list_", "entry USING COVERING INDEX findings_list_", &findingsv1.ListFindingsRequest{
			ComponentTags: []string{"payments"}, ClickToFixPrState: []string{"open"},
		}},
		{"a ref without findings, of two projects", "findings_list_ref", "", &findingsv1.ListFindingsRequest{
			Ref: "nothing", Repos: []string{"acme/p06", "acme/p09"},
		}},
		{"twins", "findings_list_policy_mode", "twin USING INDEX findings_by_identity", &findingsv1.ListFindingsRequest{
			Policies: []string{"rule-board-block"}, Dedup: true,
		}},
	}
	s := apitest.Start(t, nil)
	l := seedForPlans(t, s)
	if _, err := s.Store.Pools()["writer"].ExecContext(t.Context(), "DELETE FROM sqlite_stat1"); err != nil {
		t.Fatal(err)
	}
	st, seen := recorded(t, s)
	reader, _ := st.DB()
	ctx := tenant.NewContext(t.Context(), l.DeploymentID)
	list := findings.NewFindings(st, slog.New(slog.DiscardHandler))
	for _, c := range lists {
		if _, err := list.ListFindings(ctx, c.request); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		pages := slices.DeleteFunc(seen.Take(), func(s apitest.Statement) bool { return !strings.Contains(s.Text, "ORDER BY") })
		if len(pages) != 1 {
			t.Errorf("%s: got %d queries for a page, want 1", c.name, len(pages))
			continue
		}
		plan := apitest.Explain(t, st, reader, pages[0])
		if !strings.Contains(plan, "SEARCH findings USING INDEX "+c.index) || !strings.Contains(plan, c.also) || strings.Contains(plan, "FOR ORDER BY") {
			t.Errorf("%s: want %s and %q and no sort:\n%s\n%s", c.name, c.index, c.also, pages[0].Text, plan)
		}
	}
}
