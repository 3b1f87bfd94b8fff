package ai

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// droppedPeriod is how long the sweep looks back for jobs that ended without ending their work.
	droppedPeriod = time.Hour
	// staleInterval is how often a node looks for old work without a job.
	staleInterval = time.Hour
	// staleBatch is the number of old analyses, and of old fixes, that one look checks in a deployment.
	staleBatch = 1000
)

// work names an analysis or a fix, as the arguments of its job do.
type work struct {
	AnalysisID int64 `json:"analysis_id"`
	FixID      int64 `json:"fix_id"`
	Round      int32 `json:"round"`
}

func analysisWork(row *ent.AiAnalysis) work { return work{AnalysisID: row.ID, Round: row.Round} }
func fixWork(row *ent.AiFix) work           { return work{FixID: row.ID, Round: row.Round} }

// worksOf returns the work of jobs by their arguments.
func worksOf(args []json.RawMessage) (map[work]bool, error) {
	out := make(map[work]bool, len(args))
	for _, raw := range args {
		var w work
		if err := json.Unmarshal(raw, &w); err != nil {
			return nil, fmt.Errorf("arguments of a job: %w", err)
		}
		out[w] = true
	}
	return out, nil
}

// endDropped ends the work of jobs that were cancelled, or that failed without ending it: the database may have been
// away at the last attempt.
func (a *Assistant) endDropped(ctx context.Context, queue *jobs.Jobs) error {
	args, err := queue.Dropped(ctx, []string{analysisArgs{}.Kind(), fixArgs{}.Kind()}, time.Now().Add(-droppedPeriod))
	if err != nil || len(args) == 0 {
		return err
	}
	dropped, err := worksOf(args)
	if err != nil {
		return err
	}
	var analysisIDs, fixIDs []int64
	for w := range dropped {
		if w.AnalysisID != 0 {
			analysisIDs = append(analysisIDs, w.AnalysisID)
		} else {
			fixIDs = append(fixIDs, w.FixID)
		}
	}
	system := tenant.System(ctx)
	analyses, err := a.store.Reader.AiAnalysis.Query().Where(store.WithIDs[predicate.AiAnalysis](analysisIDs), aianalysis.Status(pending)).All(system)
	if err != nil {
		return err
	}
	fixes, err := a.store.Reader.AiFix.Query().Where(store.WithIDs[predicate.AiFix](fixIDs), aifix.Status(fixRequested)).All(system)
	if err != nil {
		return err
	}
	return a.endAbandoned(ctx, analyses, fixes, func(w work) bool { return dropped[w] })
}

// endStale ends old work that has no job, in all deployments: somebody deleted the job.
func (a *Assistant) endStale(ctx context.Context, queue *jobs.Jobs) error {
	deployments, err := a.store.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).IDs(tenant.System(ctx))
	for _, id := range deployments {
		if err := a.endStaleOf(tenant.NewContext(ctx, id), queue, id); err != nil {
			return fmt.Errorf("end stale work of deployment %d: %w", id, err)
		}
	}
	return err
}

func (a *Assistant) endStaleOf(ctx context.Context, waiting *jobs.Jobs, deploymentID int64) error {
	before := store.Micros(time.Now().Add(-staleAfter))
	analyses, err := a.store.Reader.AiAnalysis.Query().Where(aianalysis.Status(pending), aianalysis.CreatedAtLT(before)).
		Order(ent.Asc(aianalysis.FieldID)).Limit(staleBatch).All(ctx)
	if err != nil {
		return err
	}
	fixes, err := a.store.Reader.AiFix.Query().Where(aifix.Status(fixRequested), aifix.RequestedAtLT(before)).
		Order(ent.Asc(aifix.FieldRequestedAt)).Limit(staleBatch).All(ctx)
	if err != nil || len(analyses) == 0 && len(fixes) == 0 {
		return err
	}
	args, err := waiting.Unfinished(ctx, queue, deploymentID)
	if err != nil {
		return err
	}
	live, err := worksOf(args)
	if err != nil {
		return err
	}
	return a.endAbandoned(ctx, analyses, fixes, func(w work) bool { return !live[w] })
}

// endAbandoned ends the work that is abandoned.
func (a *Assistant) endAbandoned(ctx context.Context, analyses []*ent.AiAnalysis, fixes []*ent.AiFix, abandoned func(work) bool) error {
	text := errorText(errAbandoned, "")
	for _, row := range analyses {
		if !abandoned(analysisWork(row)) {
			continue
		}
		err := a.store.Write(tenant.NewContext(ctx, row.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			return a.failAnalysis(ctx, tx, row, row.Round, analysed{}, text)
		})
		if err != nil {
			return err
		}
	}
	for _, row := range fixes {
		if !abandoned(fixWork(row)) {
			continue
		}
		if err := a.failFix(tenant.NewContext(ctx, row.DeploymentID), row, row.Round, text); err != nil {
			return err
		}
	}
	return nil
}
