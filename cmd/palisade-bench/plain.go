package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

// plainReader is the least program that answers the same question from the same database: net/http, database/sql, the
// same filter and order, and JSON that was made before for each row. It knows no callers, rules or projects.
type plainReader struct {
	db        *database
	statement string
	arguments []any
	ready     map[int64][]byte // JSON by id
}

func servePlain(ctx context.Context, s childSettings) (serving, error) {
	reader := &plainReader{db: &database{dir: s.Data, url: s.Database}, ready: map[int64][]byte{}}
	if err := reader.db.open(); err != nil {
		return serving{}, err
	}
	if err := reader.prepare(ctx, s); err != nil {
		return serving{}, err
	}
	return serveHandler(ctx, reader)
}

func (p *plainReader) prepare(ctx context.Context, s childSettings) error {
	raw, err := os.ReadFile(s.Page)
	if err != nil {
		return err
	}
	var page struct {
		Findings []json.RawMessage `json:"findings"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	for _, finding := range page.Findings {
		var named struct {
			ID int64 `json:"id"`
		}
		if err := json.Unmarshal(finding, &named); err != nil {
			return fmt.Errorf("finding: %w", err)
		}
		p.ready[named.ID] = finding
	}
	var deploymentID int64
	if err := p.db.QueryRowContext(ctx, "SELECT MIN(id) FROM deployments").Scan(&deploymentID); err != nil {
		return err
	}
	p.arguments = []any{deploymentID, s.Query.Status, s.Query.Severity, pageSize}
	p.statement = `SELECT id, content FROM findings WHERE deployment_id = ? AND issue_type = 'sast' AND status = ? AND severity = ?
		ORDER BY relevant_since DESC, id DESC LIMIT ?`
	if p.db.postgres() {
		p.statement = `SELECT id, content FROM findings WHERE deployment_id = $1 AND issue_type = 'sast' AND status = $2 AND severity = $3
			ORDER BY relevant_since DESC, id DESC LIMIT $4`
	}
	return nil
}

// ServeHTTP answers with the page.
func (p *plainReader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := p.page(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client counts what it gets
}

func (p *plainReader) page(ctx context.Context) ([]byte, error) {
	rows, err := p.db.QueryContext(ctx, p.statement, p.arguments...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	body := append(make([]byte, 0, 256<<10), `{"findings":[`...)
	for n := 0; rows.Next(); n++ {
		var id int64
		var content []byte
		if err := rows.Scan(&id, &content); err != nil {
			return nil, err
		}
		ready, ok := p.ready[id]
		if !ok {
			return nil, fmt.Errorf("finding %d is not on the page", id)
		}
		if n > 0 {
			body = append(body, ',')
		}
		body = append(body, ready...)
	}
	return append(body, "]}"...), rows.Err()
}
