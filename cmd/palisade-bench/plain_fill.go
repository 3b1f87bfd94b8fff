package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// wirePage is a page as the server returns it.
type wirePage struct {
	Findings []json.RawMessage `json:"findings"`
}

// walkSize is the page size for reading all findings.
const walkSize = 3000

// fillPlain creates the plain reader's side table in the server's own database: the JSON of each finding exactly as the
// server returns it, with the same filter columns and indexes.
func (b *bench) fillPlain(ctx context.Context) error {
	if b.plain {
		return nil
	}
	// A half-filled table of an earlier part would be measured otherwise.
	if _, err := b.db.ExecContext(ctx, "DROP TABLE IF EXISTS bench_pages"); err != nil {
		return err
	}
	bytesType := "BLOB"
	if b.db.postgres() {
		bytesType = "bytea"
	}
	if _, err := b.db.ExecContext(ctx, "CREATE TABLE bench_pages (deployment_id BIGINT NOT NULL, issue_type TEXT NOT NULL, status TEXT NOT NULL, severity TEXT NOT NULL, "+
		"relevant_since BIGINT NOT NULL, id INTEGER NOT NULL PRIMARY KEY, body "+bytesType+" NOT NULL)"); err != nil {
		return err
	}
	total := 0
	for page := 0; ; page++ {
		if page%20 == 0 {
			b.progress("plain reader: %d findings", total)
		}
		body, err := b.client.page(ctx, pageQuery{Size: walkSize, Page: page})
		if err != nil {
			return err
		}
		var answer wirePage
		if err := json.Unmarshal(body, &answer); err != nil {
			return fmt.Errorf("page %d: %w", page, err)
		}
		if err := b.keepBodies(ctx, answer.Findings); err != nil {
			return err
		}
		total += len(answer.Findings)
		if len(answer.Findings) < walkSize {
			break
		}
	}
	indexes, err := b.db.listIndexes(ctx)
	if err != nil {
		return err
	}
	for i, columns := range indexes {
		if _, err := b.db.ExecContext(ctx, fmt.Sprintf("CREATE INDEX bench_pages_%d ON bench_pages (%s)", i, columns)); err != nil {
			return err
		}
	}
	if err := b.db.settle(ctx, "bench_pages"); err != nil {
		return err
	}
	b.plain = true
	return nil
}

// keepBodies stores the findings of a page in one transaction.
func (b *bench) keepBodies(ctx context.Context, findings []json.RawMessage) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	statement, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO bench_pages SELECT deployment_id, issue_type, status, severity, relevant_since, id, %s FROM findings WHERE id = %s",
		b.db.parameter(1), b.db.parameter(2)))
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, finding := range findings {
		var named struct {
			ID int64 `json:"id"`
		}
		if err := json.Unmarshal(finding, &named); err != nil {
			return fmt.Errorf("finding: %w", err)
		}
		if _, err := statement.ExecContext(ctx, []byte(finding), named.ID); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// dropPlain removes the side table, because its findings change from now on.
func (b *bench) dropPlain(ctx context.Context) error {
	if !b.plain {
		return nil
	}
	b.plain = false
	if _, err := b.db.ExecContext(ctx, "DROP TABLE bench_pages"); err != nil {
		return err
	}
	return b.db.checkpoint(ctx)
}

// sideColumns are the filter and sort columns of the side table.
var sideColumns = []string{"deployment_id", "issue_type", "status", "severity", "relevant_since", "id"}

// listIndexes returns the columns of the finding indexes that the side table can have, too.
func (d *database) listIndexes(ctx context.Context) (list []string, err error) {
	query := "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'findings' AND sql IS NOT NULL"
	if d.postgres() {
		query = "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() AND tablename = 'findings' AND indexname <> 'findings_pkey'"
	}
	rows, err := d.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var statement string
		if err := rows.Scan(&statement); err != nil {
			return nil, err
		}
		_, columns, _ := strings.Cut(statement, "(")
		columns, condition, _ := strings.Cut(columns, ")")
		known := condition == "" // no partial index
		for column := range strings.SplitSeq(strings.NewReplacer("`", "", `"`, "").Replace(columns), ",") {
			name, _, _ := strings.Cut(strings.TrimSpace(column), " ") // DESC
			known = known && slices.Contains(sideColumns, name)
		}
		if known {
			list = append(list, columns)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no index of findings serves a list by issue type, status and severity")
	}
	return list, rows.Err()
}
