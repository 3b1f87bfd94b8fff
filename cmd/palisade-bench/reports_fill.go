package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
)

// fillReports fills the server's tables with one statement per table: uploading a million findings would take minutes.
func (b *bench) fillReports(ctx context.Context, db *database) error {
	statements, err := fillStatements(b.reportFindings)
	if err != nil {
		return err
	}
	return db.withoutIndexes(ctx, []string{"findings", "finding_events"}, func() error {
		for _, statement := range statements {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("fill for reports: %w", err)
			}
		}
		return nil
	})
}

// fillStore lets a server create the tables of a separate SQLite store, and fills them.
func (b *bench) fillStore(ctx context.Context, settings childSettings, fill func(*database) error) (err error) {
	server, err := start(ctx, rolePalisade, settings, b.stderr)
	if err != nil {
		return err
	}
	if err := server.stop(); err != nil {
		return err
	}
	db := &database{dir: settings.Data, drop: func() error { return nil }}
	if err := db.open(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if err := fill(db); err != nil {
		return err
	}
	return db.settle(ctx)
}

// withoutIndexes fills tables and creates their indexes afterwards, which is several times faster.
func (d *database) withoutIndexes(ctx context.Context, tables []string, fill func() error) error {
	indexes, err := d.indexesOf(ctx, tables...)
	if err != nil {
		return err
	}
	for name := range indexes {
		if _, err := d.ExecContext(ctx, "DROP INDEX "+name); err != nil {
			return err
		}
	}
	if err := fill(); err != nil {
		return err
	}
	for name, statement := range indexes {
		if _, err := d.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("index %s: %w", name, err)
		}
	}
	return nil
}

// indexesOf returns the statements that create the indexes of tables, by name.
func (d *database) indexesOf(ctx context.Context, tables ...string) (map[string]string, error) {
	statements := map[string]string{}
	for _, table := range tables {
		rows, err := d.QueryContext(ctx, "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL", table)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var name, statement string
			if err := rows.Scan(&name, &statement); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			statements[name] = statement
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return statements, nil
}

// fillStatements creates findings over the two years before July 2026, in scans of 500 findings, every third on another
// branch than the primary one. Half of them were fixed, and a tenth were reopened.
func fillStatements(findings int) ([]string, error) {
	content, err := proto.Marshal(&storev1.FindingContent{Message: strings.Repeat("x", 297)})
	if err != nil {
		return nil, err
	}
	evidence := identity.EvidenceOf(identity.Text{Rule: "fill", Path: "fill.go", Message: "fill", Line: 1}).Encode()
	const (
		begin   = "1720224000" // 2024-07-06
		numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d - 1) "
		event   = `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, actor_name, at)
			SELECT 1, id, '%s', '%s', '%s', '', '', 'scan', 1, '', created_at + %s FROM findings WHERE %s ORDER BY id`
		days = "86400000000"
	)
	return []string{
		fmt.Sprintf(numbers+`INSERT INTO projects (deployment_id, name, name_key, default_branch, created_at)
			SELECT 1, printf('bench/report-%%03d', i), printf('bench/report-%%03d', i), 'refs/heads/main', 1 FROM n`, reportProjects),
		fmt.Sprintf(numbers+`INSERT INTO rules (deployment_id, tool, name, category, confidence, content)
			SELECT 1, 'fill', printf('fill.rule-%%03d', i), 'security', 'high', x'' FROM n`, ruleCount),
		fmt.Sprintf(numbers+`INSERT INTO findings (deployment_id, project_id, rule_id, first_seen_scan_id, ref, tool, analysis_category, fingerprint,
			issue_type, severity, state, triage_state, status, exposure, validation_state, created_at, relevant_since, state_updated_at, content_hash, evidence, match_key, content)
			SELECT 1, 1 + i / 500 %% %d, 1 + i %% %d, 0, CASE i / 500 %% 3 WHEN 0 THEN 'refs/heads/release' ELSE 'refs/heads/main' END, 'fill', '', printf('%%032x', i * 7919),
			CASE i %% 10 WHEN 0 THEN 'secrets' WHEN 1 THEN 'sca' WHEN 2 THEN 'sca' ELSE 'sast' END,
			CASE i %% 4 WHEN 0 THEN 'low' WHEN 1 THEN 'medium' WHEN 2 THEN 'high' ELSE 'critical' END,
			'unresolved', 'untriaged', 'open', CASE WHEN i %% 10 IN (1, 2) THEN 'unknown' END, CASE i %% 10 WHEN 0 THEN 'no_validator' END,
			CAST((%s + 63072000.0 * (i / 500) * 500 / %d) * 1000000 AS INTEGER), 1, 1, 1, x'%x', i, x'%x' FROM n`, findings, reportProjects, ruleCount, begin, findings, evidence, content),
		fmt.Sprintf(event, "created", "", "open", "0", "1 = 1"),
		fmt.Sprintf(event, "fixed", "open", "fixed", "id % 180 * "+days, "id % 2 = 0"),
		fmt.Sprintf(event, "reopened", "fixed", "open", "id % 360 * "+days, "id % 10 = 0"),
	}, nil
}
