package workflows

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowrun"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/workflows/definition"
)

// maxInputName is the maximum length of an input's name, in bytes.
const maxInputName = 63

// findPrevious returns the run that an earlier request with the same idempotency key started; nil if there is none. It
// rejects a request with the same key and other content, because the caller would take the first run for its own.
func (s *Runs) findPrevious(ctx context.Context, r *workflowsv1.TriggerWorkflowJobRequest) (*ent.WorkflowRun, error) {
	if r.GetIdempotencyKey() == "" {
		return nil, nil
	}
	row, err := s.store.Reader.WorkflowRun.Query().Where(workflowrun.IdempotencyKey(r.GetIdempotencyKey())).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	field, err := s.changedField(ctx, row, r)
	if err == nil && field != "" {
		err = apierr.Conflict("idempotencyKey was used already, for job %d of workflow %q, and this request has another %s: "+
			"repeat the first request as it was to get that job, or use another key", row.ID, row.Workflow, field)
	}
	if err != nil {
		return nil, err
	}
	return row, nil
}

// changedField returns the first field with a difference between a request and the one that started a run; "" if they
// are equal. An explicit default equals an absent value.
func (s *Runs) changedField(ctx context.Context, row *ent.WorkflowRun, r *workflowsv1.TriggerWorkflowJobRequest) (string, error) {
	project := int64(0)
	if row.ProjectID != nil {
		project = *row.ProjectID
	}
	switch {
	case row.Workflow != r.GetWorkflowType():
		return "workflowType", nil
	case project != r.GetRepoId():
		return "repoId", nil
	case !sameRef(row, r.GetGitRef()):
		return "gitRef", nil
	case row.PrID != r.GetPrId():
		return "prId", nil
	case row.JobName != r.GetJobName():
		return "jobName", nil
	}
	budget := r.GetBudgetCredits()
	if budget == 0 {
		var err error
		if budget, err = s.engine.Budget(ctx, row.VersionID); err != nil {
			return "", err
		}
	}
	if row.BudgetCredits != budget {
		return "budgetCredits", nil
	}
	return s.changedInput(ctx, row, r)
}

// sameRef compares the requested refs, not the refs they resolved to: the primary branch may have changed since. Runs
// older than this rule do not record whether a ref was requested.
func sameRef(row *ent.WorkflowRun, given string) bool {
	if row.RequestedRef != nil {
		return *row.RequestedRef == given
	}
	return given == "" || given == row.GitRef
}

// changedInput returns the first input with a difference between a request and a run. Absent inputs get the defaults of
// the run's workflow version.
func (s *Runs) changedInput(ctx context.Context, row *ent.WorkflowRun, r *workflowsv1.TriggerWorkflowJobRequest) (string, error) {
	version, err := readVersion(ctx, s.store.Reader, row.VersionID)
	if err != nil {
		return "", err
	}
	entry := &workflowsv1.WorkflowCatalogEntry{}
	if version != nil {
		if entry, err = storedEntry(version); err != nil {
			return "", err
		}
	}
	var first map[string]any
	if err := json.Unmarshal(row.Inputs, &first); err != nil {
		return "", fmt.Errorf("inputs of run %d: %w", row.ID, err)
	}
	given := definition.WithDefaults(entry.GetInputs(), r.GetInputs().AsMap())
	names := maps.Clone(given)
	maps.Copy(names, first)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, was := first[name]
		now, is := given[name]
		if was != is || !reflect.DeepEqual(before, now) {
			if len(name) > maxInputName { // too long for an input name
				return "inputs", nil
			}
			return "inputs." + name, nil
		}
	}
	return "", nil
}
