package snapshots

import (
	"slices"
	"testing"

	"github.com/palisade/palisade/services/findings/columns"
)

// Packed reads equal reads by row: with refs of all characters, ids far apart, and many events.
func TestPackedRows(t *testing.T) {
	st := openEmpty(t)
	_, writer := st.DB()
	for _, statement := range []string{
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
		 INSERT INTO findings (id, deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint, issue_type, severity, state,
			triage_state, status, policy_mode, created_at, relevant_since, state_updated_at, content_hash, content)
		 SELECT i * (1 + i / 500 * 700), 1 + i % 7 / 6, 1 + i / 30, 1 + i * i % 40, 1,
			CASE i / 10 % 8 WHEN 1 THEN 'a"b' WHEN 2 THEN 'a\b\' WHEN 3 THEN 'line' || char(10) || ',]' WHEN 4 THEN '' WHEN 5 THEN 'müll/ast' WHEN 6 THEN 'a"' ELSE 'refs/heads/main' END,
			'gosec', '', 'print-' || i, CASE i % 3 WHEN 0 THEN 'sca' WHEN 1 THEN 'secrets' ELSE 'sast' END, 'critical', 'unresolved', 'untriaged', 'open',
			CASE i % 5 WHEN 0 THEN 'rule-board-block' WHEN 1 THEN 'other' END, 1, 1780000000000000 + i * 777, 1, 1, x'' FROM n`,
		`INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, actor_kind, actor_id, at)
		 SELECT f.deployment_id, f.id, 'updated', '', CASE e.value % 3 WHEN 0 THEN 'open' WHEN 1 THEN 'removed' ELSE 'fixing' END, 'scan', 1,
			CASE WHEN f.id % 50 = 0 THEN -9000000 WHEN f.id % 51 = 0 THEN 99000000000000000 ELSE 1780000000000000 + e.value * 1000000 END
		 FROM findings f JOIN json_each('[3,1,4,1,5,9,2,6]') e WHERE e.key <= f.id % 9`,
	} {
		if _, err := writer.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for deployment := range int64(4) { // 0 and 3 have none
		l := loader{st, deployment}
		var rows, packedRows cursor[columns.Row]
		var events, packedEvents cursor[event]
		table, packedTable := columns.NewTable(), columns.NewTable()
		for _, err := range []error{
			l.findings(t.Context(), table, "", nil, rows.add), l.packedFindings(t.Context(), packedTable, packedRows.add),
			l.events(t.Context(), "", nil, events.add), l.packedEvents(t.Context(), packedEvents.add),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if wanted := deployment == 1 || deployment == 2; (len(rows.batch) > 500 && len(events.batch) > 1000) != wanted {
			t.Fatalf("deployment %d: %d findings, %d events", deployment, len(rows.batch), len(events.batch))
		}
		equal := func(a, b columns.Row) bool {
			return a.ID == b.ID && a.Place == b.Place && a.Rule == b.Rule && a.Kind == b.Kind && a.Attr == b.Attr && a.Since == b.Since
		}
		if !slices.EqualFunc(rows.batch, packedRows.batch, equal) || !slices.Equal(events.batch, packedEvents.batch) {
			t.Errorf("deployment %d: packed rows differ", deployment)
		}
		of, packedOf := table.Build(joined(&rows, &events)), packedTable.Build(joined(&packedRows, &packedEvents))
		if !slices.Equal(of.Places(), packedOf.Places()) || !slices.Equal(of.Rules(), packedOf.Rules()) || !slices.Equal(of.Kinds(), packedOf.Kinds()) {
			t.Errorf("deployment %d: places or rules differ", deployment)
		}
	}
}

// A truncated list is an error.
func TestPackedListsAreWhole(t *testing.T) {
	for _, list := range []string{"", `"a`, `"a\"`, `"a"`, "1]"} {
		refs := refList{rest: list}
		if _, err := refs.next(); err == nil {
			t.Errorf("refs %s: no error", list)
		}
	}
	for _, list := range []string{"", ",1", "x", "1x", "99999999999999999999"} {
		if n, _, err := number(list); err == nil {
			t.Errorf("number %s: got %d", list, n)
		}
	}
}
