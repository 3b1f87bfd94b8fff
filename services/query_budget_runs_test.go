package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/agenticissue"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// branching has many parallel tasks, which this test completes.
const branching = `
name: branching
targetType: deployment
steps:
  - {name: list, with: {output: [ITEMS]}, next: [each]}
  - {name: each, type: foreach, foreach: steps.list.output, next: [work], matchingJoin: all}
  - {name: work, uses: external, with: {payload: "${{ item }}"}, next: [all]}
  - {name: all, type: join, with: {output: "${{ branches.map(b, b.output) }}"}, next: [end]}
  - {name: end, with: {output: "${{ steps.all.output }}"}}
`

// finds stores the issues of its input, and ends when this test completes its last task.
const finds = `
name: finding
targetType: deployment
inputs:
  - {name: found, type: object, required: true}
steps:
  - {name: keep, uses: issue.upsert, with: {issues: "${{ inputs.found.issues }}", files: ["app/db.py"]}, next: [end]}
  - {name: end, uses: external, with: {payload: 1}}
`

// claim is a task that this test has claimed.
type claim struct {
	flows  *flows
	TaskID string
	Token  string `json:"claimToken"`
}

// target and body belong to a request about the task.
func (c claim) target(verb string) string { return c.flows.jobs("tasks/" + c.TaskID + "/" + verb) }

func (c claim) body(more string) string { return `{"claimToken":"` + c.Token + `"` + more + `}` }

const succeeded = `,"result":"WORKFLOW_TASK_RESULT_SUCCEEDED","output":1`

// spendComplete completes the task and measures the cost.
func (c claim) spendComplete(t *testing.T, what string) {
	t.Helper()
	c.flows.spend(t, workflowsv1.WorkflowTasksService_CompleteWorkflowTask_FullMethodName, what, http.MethodPost, c.target("complete"), c.body(succeeded), nil)
}

// job is a response about a run.
type job struct {
	Summary struct {
		JobID  string `json:"jobId"`
		Status string
	}
}

func (f *flows) jobs(more string) string {
	return fmt.Sprintf("/api/workflows/v1/deployments/%d/%s", f.tenant.DeploymentID, more)
}

func (f *flows) publish(t *testing.T, definition string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"definition": definition})
	if err != nil {
		t.Fatal(err)
	}
	f.do(t, http.MethodPut, f.jobs("registry"), string(body), nil)
}

// claims claims tasks as soon as they exist.
func (f *flows) claims(t *testing.T, number int64) (list []claim) {
	t.Helper()
	apitest.Eventually(t, "the tasks are claimed", func() bool {
		var answer struct{ Task *claim }
		f.do(t, http.MethodPost, f.jobs("tasks/claim"), `{"waitSeconds":30,"leaseSeconds":600}`, &answer)
		if answer.Task != nil {
			answer.Task.flows = f
			list = append(list, *answer.Task)
		}
		return int64(len(list)) == number
	})
	return list
}

// branches runs a workflow with many branches, measures the first and the last, and restarts it.
func (f *flows) branches(t *testing.T) {
	f.publish(t, strings.Replace(branching, "ITEMS", f.each("#", ", "), 1))
	var run job
	f.spend(t, workflowsv1.WorkflowRunsService_TriggerWorkflowJob_FullMethodName, "", http.MethodPost, f.jobs("jobs"), `{"workflowType":"branching"}`, &run)
	tasks := f.claims(t, f.rows)
	for n := range f.rows {
		f.do(t, http.MethodPost, tasks[0].target("artifacts"), tasks[0].body(fmt.Sprintf(`,"name":"log%d","content":"eA=="`, n)), nil)
	}
	f.spend(t, workflowsv1.WorkflowTasksService_PutWorkflowArtifact_FullMethodName, "", http.MethodPost, tasks[0].target("artifacts"),
		tasks[0].body(`,"name":"log0","content":"eQ=="`), nil)
	f.spend(t, workflowsv1.WorkflowTasksService_HeartbeatWorkflowTask_FullMethodName, "", http.MethodPost, tasks[0].target("heartbeat"),
		tasks[0].body(""), nil)
	tasks[0].spendComplete(t, "first of the branches")
	last := len(tasks) - 1
	for _, task := range tasks[1:last] {
		f.do(t, http.MethodPost, task.target("complete"), task.body(succeeded), nil)
	}
	tasks[last].spendComplete(t, "last of the branches")
	of := f.jobs("jobs/id/" + run.Summary.JobID)
	apitest.Eventually(t, "the run is completed", func() bool {
		f.do(t, http.MethodGet, of+"/overview", "", &run)
		return strings.HasSuffix(run.Summary.Status, "_COMPLETED")
	})
	f.spend(t, workflowsv1.WorkflowRunsService_RetryWorkflowJob_FullMethodName, "", http.MethodPost, of+"/retry", "{}", &run)
	f.claims(t, f.rows)
	f.spend(t, workflowsv1.WorkflowRunsService_CancelWorkflowJob_FullMethodName, "with branches", http.MethodPost,
		f.jobs("jobs/id/"+run.Summary.JobID+"/cancel"), "{}", nil)
}

// issues runs workflows that find many issues, that no longer find them, and that are cancelled after finding them.
func (f *flows) issues(t *testing.T) {
	f.publish(t, finds)
	found := f.each(`{"title":"SQL injection #","class":"sqli","file":"app/db.py","startLine":1#,"evidence":"q(a#)","severity":"high"}`, ",")
	begin := func(list string) (string, claim) {
		var run job
		f.do(t, http.MethodPost, f.jobs("jobs"), `{"workflowType":"finding","inputs":{"found":{"issues":[`+list+`]}}}`, &run)
		return run.Summary.JobID, f.claims(t, 1)[0]
	}
	_, task := begin(found)
	task.spendComplete(t, "with issues")
	_, task = begin("")
	task.spendComplete(t, "issues are gone")
	if n := f.server.Store.Reader.AgenticIssue.Query().Where(agenticissue.DetectionState("not_detected")).CountX(f.inside(t)); n != int(f.rows) {
		t.Errorf("%d issues are no longer found, want %d", n, f.rows)
	}
	id, _ := begin(found)
	f.spend(t, workflowsv1.WorkflowRunsService_CancelWorkflowJob_FullMethodName, "with issues", http.MethodPost,
		f.jobs("jobs/id/"+id+"/cancel"), "{}", nil)
}
