package jobs

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river/rivertype"
)

// Output returns the state of a job of a kind, and what it recorded with river.RecordOutput; nil if it recorded
// nothing. ok is false if there is no such job: the queue deletes jobs a day after their end, failed ones after a week.
func (j *Jobs) Output(ctx context.Context, kind string, id int64) (state rivertype.JobState, output json.RawMessage, ok bool, err error) {
	recorded := "CAST(metadata->'output' AS text)"
	if !j.store.Postgres() {
		recorded = "json_extract(metadata, '$.output')"
	}
	reader, _ := j.store.DB()
	var text sql.NullString
	err = reader.QueryRowContext(ctx, j.store.Placeholders("SELECT CAST(state AS text), "+recorded+" FROM river_job WHERE id = ? AND kind = ?"), id, kind).
		Scan(&state, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, false, nil
	}
	if err != nil {
		return "", nil, false, fmt.Errorf("read the output of a job: %w", err)
	}
	if text.Valid {
		output = json.RawMessage(text.String)
	}
	return state, output, true, nil
}

// Since counts the jobs of a kind that were enqueued since a time, at most up to most. The time must not be more than a
// day ago, because jobs are deleted a day after their end.
func (j *Jobs) Since(ctx context.Context, kind string, since time.Time, most int) (n int, err error) {
	reader, _ := j.store.DB()
	query := "SELECT COUNT(*) FROM (SELECT 1 FROM river_job WHERE kind = ? AND created_at >= " + j.at(since) + " LIMIT ?) AS counted"
	if err := reader.QueryRowContext(ctx, j.store.Placeholders(query), kind, most).Scan(&n); err != nil {
		return 0, fmt.Errorf("count jobs: %w", err)
	}
	return n, nil
}
