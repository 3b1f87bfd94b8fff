package reporting

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/reporting/columns"
)

func TestR4Fill(t *testing.T) {
	dir := os.Getenv("R4DIR")
	if dir == "" {
		t.Skip()
	}
	st, err := store.Open(t.Context(), store.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, w := st.DB()
	type ix struct{ n, s string }
	var list []ix
	rows, err := w.Query("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name IN ('findings','finding_events') AND sql IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var i ix
		rows.Scan(&i.n, &i.s)
		list = append(list, i)
	}
	rows.Close()
	for _, i := range list {
		if _, err := w.Exec("DROP INDEX " + i.n); err != nil {
			t.Fatal(err)
		}
	}
	const findings, days, begin, rp, rc = 1000000, "86400000000", "1720224000", 200, 500
	const event = `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, actor_name, at)
			SELECT 1, id, '%s', '%s', '%s', '', '', 'scan', 1, '', created_at + %s FROM findings WHERE %s ORDER BY id`
	for _, s := range []string{
		fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d - 1) INSERT INTO findings (deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint,
			issue_type, severity, state, triage_state, status, exposure, validation_state, created_at, relevant_since, state_updated_at, content_hash, content)
			SELECT 1, 1 + i / 500 %% %d, 1 + i %% %d, 0, CASE i / 500 %% 3 WHEN 0 THEN 'refs/heads/release' ELSE 'refs/heads/main' END, 'fill', '', printf('%%032x', i * 7919),
			CASE i %% 10 WHEN 0 THEN 'secrets' WHEN 1 THEN 'sca' WHEN 2 THEN 'sca' ELSE 'sast' END,
			CASE i %% 4 WHEN 0 THEN 'low' WHEN 1 THEN 'medium' WHEN 2 THEN 'high' ELSE 'critical' END,
			'unresolved', 'untriaged', 'open', CASE WHEN i %% 10 IN (1, 2) THEN 'unknown' END, CASE i %% 10 WHEN 0 THEN 'no_validator' END,
			CAST((%s + 63072000.0 * (i / 500) * 500 / %d) * 1000000 AS INTEGER), 1, 1, 1, zeroblob(300) FROM n`, findings, rp, rc, begin, findings),
		fmt.Sprintf(event, "created", "", "open", "0", "1 = 1"),
		fmt.Sprintf(event, "fixed", "open", "fixed", "id % 180 * "+days, "id % 2 = 0"),
		fmt.Sprintf(event, "reopened", "fixed", "open", "id % 360 * "+days, "id % 10 = 0"),
	} {
		if _, err := w.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range list {
		if _, err := w.Exec(i.s); err != nil {
			t.Fatal(err)
		}
	}
	w.Exec("ANALYZE")
	w.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
}

func TestR4Load(t *testing.T) {
	dir := os.Getenv("R4LOAD")
	if dir == "" {
		t.Skip()
	}
	for range 4 {
		st, err := store.Open(t.Context(), store.Options{DataDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		s, err := loader{st, 1}.all(t.Context(), columns.NewTable())
		if err != nil {
			t.Fatal(err)
		}
		t.Log(time.Since(began), s.Len(), s.Bytes())
		st.Close()
	}
}
