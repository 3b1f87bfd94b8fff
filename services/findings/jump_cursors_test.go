package findings_test

import (
	"fmt"
	"testing"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// A jump counts from the cursor that an earlier jump stored. All jumps belong to one listing session, until a request
// for page 0 starts another one.
func TestJumpsStoreCursors(t *testing.T) {
	t.Parallel()
	const n, more = 50_000, 300
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil})
		seedBulk(t, s, l, n, 1)
		newest := s.Store.Reader.Finding.Query().Order(ent.Desc("relevant_since", "id")).FirstIDX(s.System(t))
		// first requires that the page begins with the finding that has the given number of newer findings. Findings that
		// are added later do not count.
		first := func(r *findingsv1.ListFindingsRequest, page, size, newer int64) {
			t.Helper()
			r.DeploymentSlug, r.Page, r.PageSize = "acme", page, &size
			answer, err := findingsv1.NewFindingsServiceClient(s.Conn).ListFindings(s.Context(t, s.Token), r)
			if err != nil {
				t.Fatal(err)
			}
			got := answer.GetFindings()
			if newer >= n {
				if len(got) > 0 {
					t.Errorf("page %d of %d has %d findings", page, size, len(got))
				}
				return
			}
			if want := min(size, n-newer); int64(len(got)) != want {
				t.Fatalf("page %d of %d has %d findings, want %d", page, size, len(got), want)
			}
			if want := int64(newest) - newer; int64(got[0].GetId()) != want {
				t.Errorf("page %d of %d begins with %d, want %d", page, size, got[0].GetId(), want)
			}
		}
		lists := map[string]func() *findingsv1.ListFindingsRequest{
			"all": func() *findingsv1.ListFindingsRequest { return &findingsv1.ListFindingsRequest{} },
			"open": func() *findingsv1.ListFindingsRequest {
				return &findingsv1.ListFindingsRequest{Status: []string{"open"}}
			},
			"issue types": func() *findingsv1.ListFindingsRequest {
				return &findingsv1.ListFindingsRequest{IssueType: []string{"sast", "sca"}}
			},
			"merged": func() *findingsv1.ListFindingsRequest {
				return &findingsv1.ListFindingsRequest{Severities: []string{"low", "medium", "high", "critical"}}
			},
		}
		for name, list := range lists {
			for _, page := range []int64{450, 250, 499, 500, 130, 9999, 60, 370} {
				first(list(), page, 100, 100*page)
			}
			first(list(), 70, 333, 70*333)
			if t.Failed() {
				t.Fatalf("list of %s", name)
			}
		}
		l.seed(t, s, many(more, func(i int, f *fact) { f.label, f.at = fmt.Sprintf("new%d", i), int64(1+i) })...)
		for _, list := range lists {
			first(list(), 310, 100, 31_000) // after the cursor at 25,000 rows
			r, size := list(), int64(more)
			r.DeploymentSlug, r.PageSize = "acme", &size
			answer, err := findingsv1.NewFindingsServiceClient(s.Conn).ListFindings(s.Context(t, s.Token), r)
			if err != nil || len(answer.GetFindings()) != more {
				t.Fatalf("page 0: %d findings, %v", len(answer.GetFindings()), err)
			}
			first(list(), 200, 100, 20_000-more)
		}
	})
}
