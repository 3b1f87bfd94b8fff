package workflows_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowrun"
	"github.com/palisade/palisade/ent/workflowtask"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// noisy finds numbers with the noise of a float sum, as 1.7999999999999998.
var noisy = regexp.MustCompile(`\d\.\d{10,}`)

// Sums of costs are shown without float noise: of a run in the list, the overview and its graph, and of its steps.
func TestMoneyHasNoNoise(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := runFixture{s}
		run := w.addAudit(t, s.DeploymentID, w.addVersion(t, s.DeploymentID, 1, true))
		w.write(t, s.DeploymentID, func(ctx context.Context, tx *ent.Tx) error {
			if err := tx.WorkflowRun.Update().Where(workflowrun.ID(run)).SetCostUsd(0.017999999999999998).SetCostCredits(1.7999999999999998).Exec(ctx); err != nil {
				return err
			}
			return tx.WorkflowTask.Update().Where(workflowtask.RunID(run)).SetCostUsd(0.30000000000000004).SetCostCredits(1.7999999999999998).Exec(ctx)
		})
		bodies := map[string]string{
			"list": s.Get(t, jobsPath(s.DeploymentID, "")), "overview": s.Get(t, jobsPath(s.DeploymentID, fmt.Sprintf("/id/%d/overview", run))),
			"graph": s.Get(t, graphPath(s.DeploymentID, run, "")),
		}
		for name, body := range bodies {
			if noise := noisy.FindString(body); noise != "" {
				t.Errorf("%s: %s", name, noise)
			}
		}
		if !strings.Contains(bodies["list"], `"totalCostCredits":1.8`) || !strings.Contains(bodies["graph"], `"costCredits":1.8`) {
			t.Errorf("%s\n%s", bodies["list"], bodies["graph"])
		}
		response, err := workflowsv1.NewWorkflowJobsServiceClient(s.Conn).GetWorkflowJobGraph(s.Context(t, s.Token),
			&workflowsv1.GetWorkflowJobGraphRequest{DeploymentId: s.DeploymentID, JobId: fmt.Sprint(run)})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, bodies["graph"])
	})
}
