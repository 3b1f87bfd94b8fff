package jobs

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/riverqueue/river/rivertype"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// onceOwned is a job that merges with one that waits.
type onceOwned struct {
	DeploymentID int64 `json:"deployment_id"`
}

func (onceOwned) Kind() string { return "once_note" }

// TestStates: a watcher sees every state of the jobs of its own deployment, and merged requests watch one job.
func TestStates(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		log, _ := newLogger(t)
		st := storetest.Open(t, o)
		j := newJobs(t, st, log, Work{Register: newNotes().register})
		_, writer := st.DB()
		task := func(deploymentID int64) (id int64) {
			opts := OnceWaiting()
			err := st.Write(tenant.System(t.Context()), func(ctx context.Context, _ *ent.Tx) (err error) {
				id, err = j.EnqueueTask(ctx, onceOwned{deploymentID}, &opts)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		mine, again, other := task(7), task(7), task(8)
		if mine != again || mine == other || mine == 0 {
			t.Fatalf("the jobs are %d, %d and %d", mine, again, other)
		}
		for _, want := range rivertype.JobStates() {
			ended := "NULL"
			if want == rivertype.JobStateCancelled || want == rivertype.JobStateCompleted || want == rivertype.JobStateDiscarded {
				ended = "CURRENT_TIMESTAMP"
			}
			if _, err := writer.ExecContext(t.Context(), fmt.Sprintf("UPDATE river_job SET state = '%s', finalized_at = %s WHERE id = %d", want, ended, mine)); err != nil {
				t.Fatal(err)
			}
			states, err := j.States(t.Context(), 7, []int64{mine, other, 99})
			if err != nil || !maps.Equal(states, map[int64]rivertype.JobState{mine: want}) {
				t.Errorf("%s: %v, %v", want, states, err)
			}
		}
		if _, err := j.EnqueueTask(t.Context(), onceOwned{7}, nil); err == nil {
			t.Error("a job without a transaction")
		}
	})
}
