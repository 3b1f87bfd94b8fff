package workflows_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A run continues and stays visible if its workflow is deleted while it runs. It cannot be retried, and neither can a
// run of a disabled workflow.
func TestRunOfDeletedWorkflow(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, strings.Replace(waiting, "repository", "deployment", 1))
		job := f.trigger(t, `{"workflowType":"waiting"}`)
		claim, some := f.claim(t, `{"waitSeconds":30}`)
		if !some {
			t.Fatal("no task")
		}
		f.do(t, http.MethodDelete, f.path("/registry/waiting"), "", 200)
		f.do(t, http.MethodPost, f.path("/jobs"), `{"workflowType":"waiting"}`, 404)
		f.do(t, http.MethodPost, f.path("/tasks/"+claim.TaskID+"/complete"), claim.body(`,"result":"WORKFLOW_TASK_RESULT_SUCCEEDED"`), 200)
		f.ended(t, job, "COMPLETED")
		graph := f.graph(t, job)
		if got := graph.places(); !slices.Equal(got, []string{"end SUCCEEDED", "outside SUCCEEDED"}) || len(graph.Steps) != 2 {
			t.Errorf("tasks %q of %d steps", got, len(graph.Steps))
		}
		if body := f.do(t, http.MethodGet, f.path("/jobs/id/"+job+"/overview"), "", 200); !strings.Contains(body, `"stepSkeleton":{"schemaVersion":"1","steps":[],"tasks":[]}`) {
			t.Errorf("overview: %s", body)
		}
		retry := func(want int) string {
			t.Helper()
			return f.do(t, http.MethodPost, f.path("/jobs/id/"+job+"/retry"), `{}`, want)
		}
		if body := retry(400); !strings.Contains(body, `job 1 is a run of workflow \"waiting\", which no longer exists`) {
			t.Errorf("retry: %s", body)
		}
		// A new workflow with the same name is another workflow.
		f.publish(t, strings.Replace(waiting, "repository", "deployment", 1)+"# again\n")
		retry(400)

		job = f.trigger(t, `{"workflowType":"waiting"}`)
		f.do(t, http.MethodPost, f.path("/jobs/id/"+job+"/cancel"), `{}`, 200)
		f.do(t, http.MethodPatch, f.path("/registry/waiting"), `{"enabled":false}`, 200)
		if body := retry(400); !strings.Contains(body, "workflow waiting is disabled") {
			t.Errorf("retry of a disabled one: %s", body)
		}
		f.do(t, http.MethodPatch, f.path("/registry/waiting"), `{"enabled":true}`, 200)
		retry(200)
	})
}
