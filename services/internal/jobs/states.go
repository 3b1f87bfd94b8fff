package jobs

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/services/internal/store"
)

// States returns the states of some jobs of a deployment. Jobs that are not there, or belong to another deployment, are
// missing in it: the queue deletes jobs a day after their end, failed ones after a week.
func (j *Jobs) States(ctx context.Context, deploymentID int64, ids []int64) (map[int64]rivertype.JobState, error) {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = strconv.FormatInt(id, 10)
	}
	deployment, _ := store.JobOwner(j.store.Postgres())
	reader, _ := j.store.DB()
	query := "SELECT id, CAST(state AS text) FROM river_job WHERE id IN (" + strings.Join(names, ", ") + ") AND " + deployment + " = ?"
	rows, err := reader.QueryContext(ctx, j.store.Placeholders(query), deploymentID)
	if err != nil {
		return nil, fmt.Errorf("read the states of jobs: %w", err)
	}
	defer func() { _ = rows.Close() }()
	states := make(map[int64]rivertype.JobState, len(ids))
	for rows.Next() {
		var id int64
		var state rivertype.JobState
		if err := rows.Scan(&id, &state); err != nil {
			return nil, fmt.Errorf("read the states of jobs: %w", err)
		}
		states[id] = state
	}
	return states, rows.Err()
}
