package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
)

// plainReader is the minimal program that answers the same question from the same database: net/http, database/sql, the
// same filter and order, and the precomputed JSON of each finding in the side table bench_pages. It has no
// authentication, rules or projects, and its rows do not change with them.
type plainReader struct {
	first, skip *sql.Stmt
	bodies      sync.Pool // of *[]byte
}

func servePlain(ctx context.Context, s childSettings) (serving, error) {
	db := &database{dir: s.Data, url: s.Database}
	if err := db.open(); err != nil {
		return serving{}, err
	}
	var deploymentID int64
	if err := db.QueryRowContext(ctx, "SELECT MIN(id) FROM deployments").Scan(&deploymentID); err != nil {
		return serving{}, err
	}
	where := fmt.Sprintf("deployment_id = %d AND issue_type = 'sast' AND status = '%s'", deploymentID, s.Query.Status)
	if s.Query.Severity != "" {
		where += fmt.Sprintf(" AND severity = '%s'", s.Query.Severity)
	}
	const order = "ORDER BY relevant_since DESC, id DESC LIMIT "
	debug.SetGCPercent(300) // like the server
	reader, err := &plainReader{}, error(nil)
	reader.bodies.New = func() any { return new([]byte) }
	if reader.first, err = db.PrepareContext(ctx, "SELECT body FROM bench_pages WHERE "+where+" "+order+db.parameter(1)); err != nil {
		return serving{}, err
	}
	// A deep page: only the index is scanned, then the rows of the page are read. Jumps have a "since" before all
	// findings, which makes each of them a new list.
	reader.skip, err = db.PrepareContext(ctx, "SELECT body FROM (SELECT id, relevant_since FROM findings WHERE "+where+" AND relevant_since >= 1 "+order+db.parameter(1)+" OFFSET "+
		db.parameter(2)+") page JOIN bench_pages USING (id) ORDER BY page.relevant_since DESC, page.id DESC")
	if err != nil {
		return serving{}, err
	}
	return serveHandler(ctx, reader)
}

// ServeHTTP returns a page: page_size rows after offset rows.
func (p *plainReader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	size, _ := strconv.Atoi(query.Get("page_size"))
	statement, arguments := p.first, []any{size}
	if offset, _ := strconv.Atoi(query.Get("offset")); offset > 0 {
		statement, arguments = p.skip, []any{size, offset}
	}
	body := p.bodies.Get().(*[]byte)
	defer p.bodies.Put(body)
	if err := readPage(statement, arguments, body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(*body)))
	_, _ = w.Write(*body) // the client checks the size
}

// readPage ignores the request's context, because checking it costs time per row.
func readPage(statement *sql.Stmt, arguments []any, body *[]byte) error {
	rows, err := statement.Query(arguments...)
	if err != nil {
		return err
	}
	defer rows.Close()
	*body = append((*body)[:0], `{"findings":[`...)
	for n := 0; rows.Next(); n++ {
		var finding sql.RawBytes
		if err := rows.Scan(&finding); err != nil {
			return err
		}
		if n > 0 {
			*body = append(*body, ',')
		}
		*body = append(*body, finding...)
	}
	*body = append(*body, "]}"...)
	return rows.Err()
}
