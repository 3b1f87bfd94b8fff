package services_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

const (
	// rowsPerRow is how many rows a statement may read for each row that it is about. rowsAnyway is the allowance for
	// small tables.
	rowsPerRow, rowsAnyway = 25, 8000
	// inEachTable is the number of rows of each of two deployments in every table.
	inEachTable = 2000
)

// mayReadMore are statements that may read more, with the reason: patterns in the order of the list.
var mayReadMore = []struct{ pattern, why string }{
	{`"findings"\."id" > \$1 ORDER BY "findings"\."id" ASC LIMIT 1 OFFSET`, "finds the end of a part of 20,000 findings"},
	{`FROM dependencies d WHERE NOT EXISTS|FROM dependency_packages WHERE NOT EXISTS`, "compares two tables once an hour"},
	{`^DELETE FROM \w+ WHERE deployment_id = \$1 AND finding_id IN`, "deletes what all findings of a project have"},
	{`"findings"\."fingerprint" (= |IN ).*"findings"\."project_id" = |"findings"\."project_id" = .*"findings"\."fingerprint" (= |IN )`, "people change identities: reads the project once, whatever the request"},
	{`"findings"\."project_id" = .* AND "findings"\."analysis_category" = `, "a person moves a category: reads the project once"},
	{`"findings"\."issue_type" = .* ORDER BY "findings"\."relevant_since" DESC`, "chooses the newest that a filter chooses"},
	{`^SELECT MIN\("findings"\."rule_id"\)`, "a note about chosen findings reads the findings of the deployment once"},
	{`^SELECT issue_type, status, triage_state, count|^SELECT count\(\*\) FROM \(SELECT DISTINCT project_id, fingerprint`, "counts what a bulk update chooses: reads the deployment once, whatever the filter"},
	{`^SELECT "findings"\."id", "findings"\."rule_id", "findings"\."status" FROM`, "the findings of reviewed requests, from a covering index"},
	{`SUM\(CASE WHEN "findings"\."ignored_by_pattern"`, "counts what patterns would ignore: reads the findings of the products once"},
	{`^UPDATE triage_change_findings SET triage_state = ''`, "forgets what was decided about all findings of a deleted project"},
	{`^UPDATE ai_analyses SET finding_id = 0`, "the analyses of the month, once for a deleted project"},
	{`^UPDATE freshnesses SET due_at`, "compares two tables once an hour"},
	{`GROUP BY "findings"\."project_id", "findings"\."ref"$`, "finds the refs with open findings every six hours"},
	{`ORDER BY "finding_events"\."at" DESC LIMIT`, "a simulation of an automation searches the last 5,000 events"},
	{`FROM "scans" WHERE "scans"\."deployment_id" = \$1 AND EXISTS`, "ends at the first project that was scanned twice"},
}

// TestWritesOfTablesNeverAnalysed runs all writes, in tables with many rows of other deployments, projects and runs,
// for which PostgreSQL has no statistics. Regardless of its estimates, no statement reads many more rows than it is
// about. The test checks the executed plans, including generic ones.
func TestWritesOfTablesNeverAnalysed(t *testing.T) {
	testrun.Deep(t) // walks all plans
	if testrun.On(testrun.Postgres) {
		t.Run(testrun.Postgres, writesOfTablesNeverAnalysed)
	}
}

func writesOfTablesNeverAnalysed(t *testing.T) {
	database, data := storetest.Postgres(t), t.TempDir()
	on := func(c *config.Config) { c.Database, c.Data, c.EgressAllow = database, data, "127.0.0.1" }
	neverAnalyse(t, database)
	ours := fillProjects(t, on)
	s, seen := apitest.StartExplained(t, on)
	ours.writeAll(t, s)
	executed := seen.Take(t)
	if len(executed) < 5000 {
		t.Errorf("only %d plans were seen", len(executed))
	}
	worst := map[string]apitest.Executed{}
	for _, e := range executed {
		if shape := shapeOf(e.Text); e.Looked > rowsPerRow*e.Concerned+rowsAnyway && e.Looked > worst[shape].Looked {
			worst[shape] = e
		}
	}
	for _, e := range worst {
		if !slices.ContainsFunc(mayReadMore, func(m struct{ pattern, why string }) bool { return regexp.MustCompile(m.pattern).MatchString(e.Text) }) {
			t.Errorf("%s looks at %d rows, and is about %d:\n%s\n%.4000s", e.Method, e.Looked, e.Concerned, e.Text, e.Plan)
		}
	}
}

// TestWritesWithoutStatistics does the same on SQLite, which does not count rows. It explains each statement as a
// database without statistics would. None reads all findings, or all findings of a deployment or type.
func TestWritesWithoutStatistics(t *testing.T) {
	testrun.Deep(t) // walks all plans
	data := t.TempDir()
	on := func(c *config.Config) { c.Data, c.EgressAllow = data, "127.0.0.1" }
	ours := fillProjects(t, on)
	s, seen := apitest.StartRecorded(t, on)
	ours.writeAll(t, s)
	db, err := sql.Open("sqlite3", "file:"+s.Config.SQLitePath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	forget := []string{"ANALYZE sqlite_master", "DELETE FROM sqlite_stat1", "ANALYZE sqlite_master"}
	var samples int
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'sqlite_stat4'").Scan(&samples); err != nil {
		t.Fatal(err)
	}
	if samples > 0 {
		forget = slices.Insert(forget, 1, "DELETE FROM sqlite_stat4")
	}
	for _, statement := range forget {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	explained := map[string]bool{}
	for _, statement := range seen.TakeAll() {
		shape := shapeOf(statement.Text)
		if explained[shape] || isFrame.MatchString(statement.Text) || !strings.Contains(statement.Text, "findings") || len(statement.Args) == 0 {
			continue
		}
		explained[shape] = true
		plan := apitest.Explain(t, s.Store, db, statement)
		for line := range strings.SplitSeq(plan, "\n") {
			if name, is := strings.CutPrefix(line, "SCAN "); is && strings.Contains(plan, "CO-ROUTINE "+name+"\n") {
				continue // an earlier result
			}
			if allFindings.MatchString(line) && !slices.ContainsFunc(mayReadMore, func(m struct{ pattern, why string }) bool {
				return regexp.MustCompile(m.pattern).MatchString(strings.ReplaceAll(statement.Text, "`", `"`))
			}) {
				t.Errorf("%s reads too many findings:\n%s\n%s", statement.Method, statement.Text, plan)
			}
		}
	}
	if len(explained) < 40 {
		t.Errorf("only %d different statements were seen", len(explained))
	}
}

// allFindings matches reads of all findings, or of all findings of a deployment or of one type.
var allFindings = regexp.MustCompile(`^SCAN (findings|chosen|twin|sibling)\b|^SEARCH (findings|chosen|twin|sibling) .*\(deployment_id=\?( AND issue_type=\?)?\)$`)

// neverAnalyse keeps PostgreSQL and the server from analysing the tables of a database, by holding the lock that
// servers take for it.
func neverAnalyse(t *testing.T, database string) {
	t.Helper()
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	storetest.StopAutovacuum(t, db)
	if _, err := db.ExecContext(t.Context(), "SELECT pg_advisory_lock(7210463915)"); err != nil {
		t.Fatal(err)
	}
}

// fillProjects stores rows of two deployments in every table, and many findings in three projects. Its server then
// ends; the next one begins with its background work.
func fillProjects(t *testing.T, on func(*config.Config)) (ours *flows) {
	t.Helper()
	t.Run("fill", func(t *testing.T) {
		s := apitest.Start(t, on)
		ours = &flows{filling: newFilling(t, s, "ours", 1, inEachTable), seen: &apitest.Statements{}}
		theirs := newFilling(t, s, "theirs", 2, inEachTable)
		ours.fillProject(t, s, ours.base+1, 30_000)
		ours.fillProject(t, s, ours.base+2, 10_000)
		theirs.fillProject(t, s, theirs.base+1, 20_000)
	})
	return ours
}

// fillProject inserts findings of one project, each on five refs.
func (f *filling) fillProject(t *testing.T, s *apitest.Server, project int64, rows int) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return s.Store.Exec(ctx, tx, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO findings (id, deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint, issue_type,
				severity, state, triage_state, status, file_path, created_at, relevant_since, state_updated_at, content_hash, content)
			SELECT %d + i, %d, %d, %d + i %% 400, %d + i / 100, 'refs/heads/r' || (i %% 5), 'test', '', 'print-' || (i / 5), 'sast', 'low',
				'unresolved', 'untriaged', 'open', 'src/app' || i || '.py', 1, 1000000 + i, 1, 1, ? FROM n`,
			rows-1, firstIn(project), f.tenant.DeploymentID, project, project, project), []byte{})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// firstIn is the id of the first finding that fillProject stores.
func firstIn(project int64) int64 { return project * 1_000_000 }

// writeAll runs all writes, with fifty rows each.
func (f *flows) writeAll(t *testing.T, s *apitest.Server) {
	t.Helper()
	of := *s
	of.Tenant = f.tenant
	f.server, f.rows = &of, 50
	for _, flow := range []func(*testing.T){f.identities, f.scanner, f.rules, f.branches, f.issues, f.policies, f.deliveries, f.triages} {
		flow(t)
	}
	for _, rpc := range inOrder(operations()) {
		if rpc.descriptor.IsStreamingClient() || rpc.descriptor.IsStreamingServer() || onlyReads(rpc) {
			continue
		}
		answer, _ := f.call(t, rpc, f.request(t, rpc))
		if answer.Code() == codes.Internal || answer.Code() == codes.Unknown {
			t.Errorf("%s: %v", rpc.name, answer.Message())
		}
	}
	reader, _ := s.Store.DB()
	apitest.Eventually(t, "background work has been done", func() bool {
		var waiting int
		err := reader.QueryRowContext(t.Context(),
			"SELECT COUNT(*) FROM river_job WHERE state IN ('available', 'running') AND kind <> 'refresh_statistics'").Scan(&waiting)
		return err == nil && waiting == 0
	})
}

// triages triages findings by their ids and by filters.
func (f *flows) triages(t *testing.T) {
	ids := func(first int64, n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint(first + int64(i)*7)
		}
		return strings.Join(list, ",")
	}
	path := "/api/v1/deployments/" + f.tenant.Slug + "/triage"
	for i := range 7 { // from the sixth execution on, a connection may use a generic plan
		of := fmt.Sprintf(`{"issue_type":"sast","new_triage_state":%q,"new_note":"note %d",`, []string{"ignored", "reviewing"}[i%2], i)
		for _, n := range []int{1, 3, 50, 120, 1200} {
			f.do(t, http.MethodPost, path, of+`"issue_ids":[`+ids(firstIn(f.base+1)+int64(i), n)+`]}`, nil)
		}
		f.do(t, http.MethodPost, path, of+fmt.Sprintf(`"limit":50,"ref":"refs/heads/r3","repos":["name%d"]}`, f.base+2), nil)
	}
	f.do(t, http.MethodPost, path, `{"issue_type":"sast","new_triage_state":"fixing","limit":3000}`, nil)
}
