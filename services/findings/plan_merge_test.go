package findings_test

import (
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings"
	"github.com/palisade/palisade/services/internal/apitest"
)

// A list with several values of a column reads about as many findings as it shows. Without the merge, PostgreSQL scans
// findings of other values, or sorts all matching findings.
func TestSeveralValuesAreMerged(t *testing.T) {
	t.Parallel()
	size := int64(100)
	lists := []struct {
		name    string
		merged  bool
		most    int // findings that may be read
		request *findingsv1.ListFindingsRequest
	}{
		{"rules", true, 102, &findingsv1.ListFindingsRequest{Rules: []string{"js.xss", "bare"}, Status: []string{"open"}}},
		{"severities", true, 150, &findingsv1.ListFindingsRequest{Severities: []string{"low", "medium"}}},
		{"statuses", true, 150, &findingsv1.ListFindingsRequest{Status: []string{"open", "fixed"}}},
		{"statuses of a severity", true, 102, &findingsv1.ListFindingsRequest{
			Status: []string{"fixed", "ignored"}, Severities: []string{"low"},
		}},
		{"refs", true, 102, &findingsv1.ListFindingsRequest{Ref: []string{"r6", "r12"}}},
		{"a severity, twice", false, 150, &findingsv1.ListFindingsRequest{Severities: []string{"low", "low"}}},
		{"exposures", true, 102, &findingsv1.ListFindingsRequest{IssueType: []string{"sca"}, Exposures: []string{"reachable", "unknown"}}},
		{"projects", true, 350, &findingsv1.ListFindingsRequest{Repos: []string{"acme/p01", "acme/p02", "acme/p04"}}},
		{"projects and severities", true, 350, &findingsv1.ListFindingsRequest{
			Repos: []string{"acme/p01", "acme/p02", "acme/p04"}, Severities: []string{"low", "medium"},
		}},
		{"the next page", true, 150, &findingsv1.ListFindingsRequest{Severities: []string{"low", "medium"}, Page: 1, PageSize: &size}},
		{"a jump", true, 1500, &findingsv1.ListFindingsRequest{Severities: []string{"low", "medium"}, Page: 10, PageSize: &size}},
		{"severities of a rare tag", false, 400, &findingsv1.ListFindingsRequest{
			ComponentTags: []string{"payments"}, Severities: []string{"low", "medium"},
		}},
		{"projects of a rare tag", false, 400, &findingsv1.ListFindingsRequest{
			ComponentTags: []string{"payments"}, Repos: []string{"acme/p01", "acme/p02"},
		}},
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		if !s.Store.Postgres() {
			t.Skip("this form is PostgreSQL's")
		}
		l := seedForPlans(t, s)
		st, seen := recorded(t, s)
		reader, _ := st.DB()
		ctx := tenant.NewContext(t.Context(), l.DeploymentID)
		list := findings.NewFindings(st, slog.New(slog.DiscardHandler))
		for _, c := range lists {
			if _, err := list.ListFindings(ctx, c.request); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for _, query := range seen.Take() {
				plan := apitest.Explain(t, st, reader, query, "ANALYZE", "TIMING OFF", "SUMMARY OFF")
				if read := rowsRead(t, plan); read > c.most || strings.Contains(plan, "Merge Append") != c.merged {
					t.Errorf("%s: %d findings are read, want at most %d, merged: %t\n%s\n%s", c.name, read, c.most, c.merged, query.Text, plan)
				}
			}
		}
	})
}

// scanOfFindings matches the line of a plan with the number of findings from an index. leftOut matches a line below it
// with the number of discarded findings. Rows of other tables do not count.
var (
	scanOfFindings = regexp.MustCompile(`Scan.* on findings.*\(actual rows=(\d+)`)
	leftOut        = regexp.MustCompile(`Rows Removed by (?:Filter|Index Recheck): (\d+)`)
)

func rowsRead(t *testing.T, plan string) (rows int) {
	t.Helper()
	ofFindings := false
	for line := range strings.Lines(plan) {
		match := scanOfFindings.FindStringSubmatch(line)
		if strings.Contains(line, "(cost=") {
			ofFindings = match != nil
		} else if ofFindings {
			match = leftOut.FindStringSubmatch(line)
		}
		if match == nil {
			continue
		}
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		rows += n
	}
	return rows
}
