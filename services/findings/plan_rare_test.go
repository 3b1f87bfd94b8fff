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
	"github.com/palisade/palisade/services/internal/store"
)

// A rare value is found by its own index, also in combination with a frequent value. SQLite knows the selectivity from
// index samples.
func TestRareValuesAreFoundByTheirIndex(t *testing.T) {
	lists := []struct {
		name, index string
		request     *findingsv1.ListFindingsRequest
	}{
		{"a value that none has", "findings_list_click_to_fix_state", &findingsv1.ListFindingsRequest{ClickToFixPrState: []string{"merged"}}},
		{"a rare tag", "findings_list_component_tag", &findingsv1.ListFindingsRequest{
			Status: []string{"open"}, Severities: []string{"low"}, ComponentTags: []string{"payments"},
		}},
		{"a rare status", "findings_list_status_severity", &findingsv1.ListFindingsRequest{Status: []string{"fixed"}, Severities: []string{"low"}}},
		{"a rare severity", "findings_list_status_severity", &findingsv1.ListFindingsRequest{Status: []string{"open"}, Severities: []string{"critical"}}},
		{"a ref without findings, of two projects", "findings_list_ref", &findingsv1.ListFindingsRequest{Ref: []string{"nothing"}, Repos: []string{"acme/p06", "acme/p09"}}},
		{"siblings", "findings_list_policy_mode", &findingsv1.ListFindingsRequest{Policies: []string{"rule-board-block"}, Dedup: true}},
	}
	s := apitest.Start(t, nil)
	l := seedForPlans(t, s)
	if knows, err := s.Store.KnowsFrequentValues(t.Context()); err != nil || !knows {
		t.Skipf("built without -tags=%s, which make adds (%v)", store.BuildTag, err)
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
		if !strings.Contains(plan, "SEARCH findings USING INDEX "+c.index+" ") {
			t.Errorf("%s: want %s:\n%s\n%s", c.name, c.index, pages[0].Text, plan)
		}
	}
}
