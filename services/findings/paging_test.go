package findings_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
)

// many returns n facts. Three facts share each time, and are ordered by id, newest first.
func many(n int, adjust func(i int, f *fact)) []fact {
	facts := make([]fact, n)
	for i := range facts {
		facts[i] = fact{label: fmt.Sprintf("f%04d", i), at: -int64(1 + i/3)}
		if adjust != nil {
			adjust(i, &facts[i])
		}
	}
	return facts
}

func seedMany(t *testing.T, s *apitest.Server, n int, adjust func(i int, f *fact)) *fixture {
	t.Helper()
	l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
	l.seed(t, s, many(n, adjust)...)
	return l
}

// inOrder returns the labels of many(n) in the order of lists.
func inOrder(n int) []string {
	facts := many(n, nil)
	index := make([]int, n)
	for i := range index {
		index[i] = i
	}
	slices.SortFunc(index, func(a, b int) int {
		if facts[a].at != facts[b].at {
			return int(facts[b].at - facts[a].at)
		}
		return b - a
	})
	labels := make([]string, n)
	for i, n := range index {
		labels[i] = facts[n].label
	}
	return labels
}

func TestPagesCoverEachFindingOnce(t *testing.T) {
	t.Parallel()
	const n = 730
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedMany(t, s, n, nil)
		want := inOrder(n)
		for _, size := range []int{100, 243, 365, 730, 3000} {
			var got []string
			for page := 0; ; page++ {
				part := strings.Fields(labels(t, s, fmt.Sprintf("page=%d&page_size=%d", page, size)))
				if len(part) == 0 {
					break
				}
				got = append(got, part...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: %d findings, want %d; first difference at %d", size, len(got), len(want), differsAt(got, want))
			}
		}
	})
}

// A listing session sees each finding once while an upload adds findings.
func TestPagesWhileFindingsArrive(t *testing.T) {
	t.Parallel()
	const n = 450
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMany(t, s, n, nil)
		var got []string
		for page := range 7 {
			got = append(got, strings.Fields(labels(t, s, fmt.Sprintf("page=%d", page)))...)
			newer := make([]fact, 37)
			for i := range newer {
				newer[i] = fact{label: fmt.Sprintf("new%d-%d", page, i), at: int64(1 + page)}
			}
			l.seed(t, s, newer...)
		}
		if want := inOrder(n); !slices.Equal(got, want) {
			t.Errorf("%d findings, want %d; first difference at %d", len(got), n, differsAt(got, want))
		}
		// The next session begins with the newest finding.
		if first := strings.Fields(labels(t, s, "page=0"))[0]; first != "new6-36" {
			t.Errorf("the newest finding is %s", first)
		}
	})
}

// A jump to a deep page returns the same page as a listing session.
func TestJumpToAPage(t *testing.T) {
	t.Parallel()
	const n = 730
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedMany(t, s, n, nil)
		want := inOrder(n)
		for _, c := range []struct{ page, size, from, to int }{
			{7, 100, 700, 730}, {3, 100, 300, 400}, {4, 100, 400, 500}, {1, 365, 365, 730}, {2, 365, 730, 730}, {100, 100, 730, 730},
		} {
			got := strings.Fields(labels(t, s, fmt.Sprintf("page=%d&page_size=%d", c.page, c.size)))
			if !slices.Equal(got, want[c.from:c.to]) {
				t.Errorf("page %d of %d: %d findings, want %d to %d", c.page, c.size, len(got), c.from, c.to)
			}
		}
		for _, page := range []string{"1099511627776", "92233720368547758", "9223372036854775807"} {
			if got := labels(t, s, "page="+page); got != "" {
				t.Errorf("page %s: %s", page, got)
			}
		}
	})
}

// A jump counts from the nearest cursor before it, and belongs to the same listing session.
func TestJumpFromAServedPage(t *testing.T) {
	t.Parallel()
	const n = 730
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMany(t, s, n, nil)
		want := inOrder(n)
		page := func(number, from int, more string) {
			t.Helper()
			got := strings.Fields(labels(t, s, fmt.Sprintf("page=%d%s", number, more)))
			if !slices.Equal(got, want[min(from, n):min(from+100, n)]) {
				t.Errorf("page %d%s: %v, want the findings from %d on", number, more, got, from)
			}
		}
		for _, more := range []string{"", "&dedup=true", "&since=1", "&severities=high&severities=critical&severities=medium&severities=low"} {
			for _, number := range []int{0, 4, 2, 6, 5, 7, 8, 90} {
				page(number, 100*number, more)
			}
		}
		page(3, 300, "&status=open")
		l.seed(t, s, many(20, func(i int, f *fact) { f.label, f.at = fmt.Sprintf("new%d", i), int64(1+i) })...)
		page(6, 600, "&status=open") // the session continues
		for number, want := range map[string][]string{"page=6&page_size=101": want[606:707], "page=2&page_size=300": want[600:]} {
			if got := strings.Fields(labels(t, s, "status=open&"+number)); !slices.Equal(got, want) {
				t.Errorf("%s in the same session: %v", number, got)
			}
		}
	})
}

// A request for page 0 starts a new session without cursors of finished sessions. An older session continues with the
// findings that existed when it started.
func TestPageZeroBeginsAnew(t *testing.T) {
	t.Parallel()
	const n, more = 450, 250
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMany(t, s, n, nil)
		want := inOrder(n)
		page := func(query string, number int) []string {
			return strings.Fields(labels(t, s, fmt.Sprintf("page=%d%s", number, query)))
		}
		const ended, going = "&status=open", "&severities=high&severities=critical&severities=medium&severities=low"
		for number := range 6 {
			page(ended, number)
		}
		for number := range 3 {
			page(going, number)
		}
		l.seed(t, s, many(more, func(i int, f *fact) { f.label, f.at = fmt.Sprintf("new%d", i), int64(1+i) })...)
		for _, query := range []string{ended, going} {
			if first := page(query, 0)[0]; first != fmt.Sprintf("new%d", more-1) {
				t.Errorf("%s: page 0 begins with %s", query, first)
			}
		}
		for _, number := range []int{6, 4, 2, 3, 5} {
			from := 100*number - more
			if got := page(ended, number); number > 2 && !slices.Equal(got, want[from:min(from+100, n)]) || len(got) != min(100, n+more-100*number) {
				t.Errorf("page %d has %d findings, from %s on", number, len(got), got[0])
			}
		}
		for number := 3; number < 6; number++ { // the older session continues
			if got := page(going, number); !slices.Equal(got, want[min(100*number, n):min(100*number+100, n)]) {
				t.Errorf("the older session: page %d has %d findings", number, len(got))
			}
		}
	})
}

// A jump shows findings that were reopened after page 0, even if page 0 is unchanged.
func TestPageZeroUnchanged(t *testing.T) {
	t.Parallel()
	const n = 950
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedMany(t, s, n, nil)
		decide := func(status string) {
			t.Helper()
			if err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				rows, err := tx.Finding.Query().Order(ent.Desc(finding.FieldRelevantSince), ent.Desc(finding.FieldID)).IDs(ctx)
				if err != nil {
					return err
				}
				return tx.Finding.Update().Where(finding.IDIn(rows[150:850]...)).SetStatus(status).Exec(ctx)
			}); err != nil {
				t.Fatal(err)
			}
		}
		page := func(number int) []string {
			return strings.Fields(labels(t, s, fmt.Sprintf("status=open&page=%d", number)))
		}
		decide("ignored")
		for number := range 4 {
			page(number)
		}
		decide("open")
		pages := make([][]string, 10)
		for _, number := range []int{0, 9, 8, 7, 6, 5, 4, 3, 2, 1} {
			pages[number] = page(number)
		}
		if got := slices.Concat(pages...); !slices.Equal(got, inOrder(n)) {
			t.Errorf("%d findings, want %d in their order", len(got), n)
		}
	})
}

// A read-only database serves lists, although it cannot store cursors.
func TestPagesWithoutCursors(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, func(c *config.Config) { c.Database = storetest.Postgres(t) })
	seedMany(t, s, 250, nil)
	_, db := s.Store.DB()
	if _, err := db.ExecContext(t.Context(), `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TRIGGER full_disk BEFORE INSERT ON page_boundaries EXECUTE FUNCTION full_disk()"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for page := range 4 {
		got = append(got, strings.Fields(labels(t, s, fmt.Sprintf("page=%d", page)))...)
	}
	if !slices.Equal(got, inOrder(250)) {
		t.Errorf("%d findings", len(got))
	}
}

// Different nodes may serve the pages of one session.
func TestSessionAcrossNodes(t *testing.T) {
	t.Parallel()
	const n = 950
	s := apitest.Start(t, func(c *config.Config) { c.Database = storetest.Postgres(t) })
	l := seedMany(t, s, n, nil)
	nodes := []*apitest.Server{s}
	for range 2 {
		nodes = append(nodes, apitest.Start(t, func(c *config.Config) {
			c.Database, c.KeyFile = s.Config.Database, filepath.Join(s.Config.Data, "palisade.key")
		}))
	}
	at := int64(0)
	for _, query := range []string{"", "&dedup=true", "&status=open"} {
		want := strings.Fields(labels(t, s, "page_size=3000"+query)) // page 0 of a session of its own
		var got []string
		for page := 0; ; page++ {
			part := strings.Fields(labels(t, nodes[page%len(nodes)], fmt.Sprintf("page=%d%s", page, query)))
			if len(part) == 0 {
				break
			}
			got = append(got, part...)
			at++
			l.seed(t, s, many(37, func(i int, f *fact) { f.label, f.at = fmt.Sprintf("new%d-%d", at, i), at })...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d findings, want %d; first difference at %d", query, len(got), len(want), differsAt(got, want))
		}
	}
}

// Many sessions of one list and one token may run, and restart while the list changes. No request fails.
func TestConcurrentSessions(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMany(t, s, 650, nil)
		var walkers errgroup.Group
		for range 12 {
			walkers.Go(func() error {
				for page := range 30 {
					path := fmt.Sprintf("%s?page=%d&page_size=%d", listPath, page%6, 100+100*(page/18))
					if answer := s.Do(t, s.Token, http.MethodGet, path, ""); answer.Status != http.StatusOK {
						return fmt.Errorf("page %d: %d %s", page%6, answer.Status, answer.Body)
					}
				}
				return nil
			})
		}
		for i := range 20 {
			l.seed(t, s, fact{label: fmt.Sprintf("new%d", i), at: int64(1 + i)})
		}
		if err := walkers.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// Cursors belong to a caller and a filter. Other callers and filters do not use them.
func TestCursorsOfOtherLists(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedMany(t, s, 230, func(i int, f *fact) {
			if i%2 == 1 {
				f.severity = "low"
			}
		})
		other := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		path := "/api/v1/deployments/acme/findings?page=1"
		s.Get(t, "/api/v1/deployments/acme/findings?page=0")
		l.seed(t, s, many(100, func(i int, f *fact) { f.label, f.at = fmt.Sprintf("new%d", i), int64(1+i) })...)
		if first := strings.Fields(labels(t, s, "page=1"))[0]; first != inOrder(230)[100] {
			t.Errorf("the session continues with %s", first)
		}
		if body := s.Do(t, other, "GET", path, "").Body; !strings.Contains(body, `"rule_message":"`+inOrder(230)[0]+`"`) {
			t.Error("page 1 of another caller does not begin after its own page 0")
		}
		if got := len(strings.Fields(labels(t, s, "page=1&severities=low"))); got != 15 {
			t.Errorf("another filter's page 1 has %d findings, want 15", got)
		}
	})
}

// With dedup, an identity on several refs is listed once: its oldest finding that the filter selects.
func TestDedup(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
		l.seed(t, s,
			fact{label: "gone", print: "x", ref: "refs/heads/z", at: 9, state: "removed"},
			fact{label: "dev", print: "x", ref: "refs/heads/dev", at: 5, triage: "reviewing", severity: "low"},
			fact{label: "main", print: "x", at: 4, severity: "critical"},
			fact{label: "old", print: "x", ref: "refs/heads/old", at: 3, severity: "critical"},
			fact{label: "other-project", print: "x", project: "acme/api", at: 2, severity: "critical"},
			fact{label: "tie1", print: "y", ref: "refs/heads/a", at: 1},
			fact{label: "tie2", print: "y", ref: "refs/heads/b", at: 1},
			fact{label: "same-ref", print: "y", ref: "refs/heads/b", category: "second", at: 1},
			fact{label: "sca", kind: "sca", print: "y", ref: "refs/heads/c", at: 8},
		)
		for query, want := range map[string]string{
			"":                               "dev main old other-project same-ref tie2 tie1",
			"dedup=true":                     "old other-project tie1",
			"dedup=true&status=open":         "old other-project tie1",
			"dedup=true&severities=critical": "old other-project",
			"dedup=true&ref=old":             "old",
			"dedup=true&ref=_default":        "main other-project",
			"dedup=true&ref=a":               "tie1",
			"dedup=true&issue_type=sca":      "sca",
			"dedup=true&rules=py.sqli&categories=security&repos=acme/WEB&policies=rule-board-audit": "old tie1",
		} {
			if got := labels(t, s, query); got != want {
				t.Errorf("%s:\n got %s\nwant %s", query, got, want)
			}
		}
	})
}

func TestDedupPages(t *testing.T) {
	t.Parallel()
	const identities = 310
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seedMany(t, s, 3*identities, func(i int, f *fact) {
			f.print, f.ref = fmt.Sprint(i%identities), fmt.Sprintf("refs/heads/%d", i/identities)
		})
		seen := map[string]bool{}
		for page := range 4 {
			for label := range strings.FieldsSeq(labels(t, s, fmt.Sprintf("dedup=true&page=%d", page))) {
				if seen[label] {
					t.Errorf("%s is listed twice", label)
				}
				seen[label] = true
			}
		}
		if len(seen) != identities {
			t.Errorf("%d findings, want %d", len(seen), identities)
		}
		if got := labels(t, s, "dedup=true&page=4"); got != "" {
			t.Errorf("a page past the end: %s", got)
		}
	})
}

// With dedup, a new ref with the same findings does not move findings that a session has not read yet.
func TestDedupWhileAnotherRefArrives(t *testing.T) {
	t.Parallel()
	const n = 450
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		same := func(ref string, at int64) []fact {
			return many(n, func(i int, f *fact) { f.print, f.ref, f.at = fmt.Sprint(i), ref, at })
		}
		l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
		l.seed(t, s, same("refs/heads/main", 1)...)
		var got []string
		for page := range 6 {
			got = append(got, strings.Fields(labels(t, s, fmt.Sprintf("dedup=true&page=%d", page)))...)
			l.seed(t, s, same(fmt.Sprintf("refs/pull/%d/merge", page), 2)...)
		}
		slices.Sort(got)
		if len(got) != n || len(slices.Compact(got)) != n {
			t.Errorf("%d findings, %d of them different, want %d", len(got), len(slices.Compact(got)), n)
		}
	})
}

func differsAt(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
