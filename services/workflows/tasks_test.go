package workflows_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/workflowartifact"
	"github.com/palisade/palisade/ent/workflowattempt"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

const outside = `
name: outside
targetType: deployment
steps:
  - {name: list, with: {output: [1, 2, 3, 4, 5, 6]}, next: [each]}
  - {name: each, type: foreach, foreach: steps.list.output, next: [work], matchingJoin: all}
  - {name: work, uses: external, with: {payload: {n: "${{ item }}"}}, retries: 1, next: [all]}
  - {name: all, type: join, with: {output: "${{ branches.map(b, b.output) }}"}, next: [end]}
  - {name: end, with: {output: "${{ steps.all.output }}"}}
`

// claimOf is a claimed task in the API's form.
type claimOf struct {
	TaskID       string `json:"taskId"`
	ClaimToken   string
	JobID        string `json:"jobId"`
	StepName     string
	LogicalPath  string
	AttemptIndex int
	Payload      struct{ N int }
}

// claim claims a task; false if there is none.
func (f flow) claim(t testing.TB, body string) (claimOf, bool) {
	t.Helper()
	for deadline := time.Now().Add(runTimeout); ; {
		var answer struct{ Task *claimOf }
		if err := json.Unmarshal([]byte(f.do(t, http.MethodPost, f.path("/tasks/claim"), body, http.StatusOK)), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Task != nil {
			return *answer.Task, true
		}
		if !strings.Contains(body, `"waitSeconds"`) || time.Now().After(deadline) {
			return claimOf{}, false
		}
	}
}

func (c claimOf) body(more string) string { return `{"claimToken":"` + c.ClaimToken + `"` + more + `}` }

func TestExternalTasks(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, outside)
		if _, some := f.claim(t, `{}`); some {
			t.Fatal("a task without a run")
		}
		job := f.trigger(t, `{"workflowType":"outside"}`)
		if _, some := f.claim(t, `{"workflowType":"other"}`); some {
			t.Fatal("a task of another workflow")
		}
		first, some := f.claim(t, `{"workflowType":"outside","stepNames":["work"],"workerName":"w1","waitSeconds":30}`)
		if !some || first.JobID != job || first.StepName != "work" || first.LogicalPath != "each[0]" || first.Payload.N != 1 {
			t.Fatalf("claimed: %+v", first)
		}
		task := "/tasks/" + first.TaskID
		f.do(t, http.MethodPost, f.path(task+"/heartbeat"), first.body(`,"leaseSeconds":120`), 200)
		content := base64.StdEncoding.EncodeToString([]byte("log of the work"))
		f.do(t, http.MethodPost, f.path(task+"/artifacts"), first.body(`,"name":"log.txt","content":"`+content+`"`), 200)
		f.do(t, http.MethodPost, f.path(task+"/artifacts"), first.body(`,"name":"log.txt","content":"`+content+`"`), 200)
		f.do(t, http.MethodPost, f.path(task+"/artifacts"), first.body(`,"name":"output","content":"`+content+`"`), 400)
		f.do(t, http.MethodPost, f.path(task+"/complete"), first.body(``), 400)
		f.do(t, http.MethodPost, f.path(task+"/complete"), first.body(`,"result":"WORKFLOW_TASK_RESULT_SUCCEEDED","output":{"n":1},"costUsd":0.25`), 200)
		f.do(t, http.MethodPost, f.path(task+"/complete"), first.body(`,"result":"WORKFLOW_TASK_RESULT_SUCCEEDED"`), 400)
		f.do(t, http.MethodPost, f.path(task+"/heartbeat"), first.body(``), 400)
		id, _ := strconv.ParseInt(first.TaskID, 10, 64)
		if n := f.Store.Reader.WorkflowArtifact.Query().Where(workflowartifact.TaskID(id)).CountX(f.System(t)); n != 2 {
			t.Errorf("%d artifacts, want the log and the output", n)
		}

		second, _ := f.claim(t, `{}`)
		f.do(t, http.MethodPost, f.path("/tasks/"+second.TaskID+"/complete"), second.body(`,"result":"WORKFLOW_TASK_RESULT_FAILED","errorSummary":"no\nluck"`), 200)
		others := map[string]bool{}
		for range 4 {
			claim, some := f.claim(t, `{}`)
			if !some || others[claim.TaskID] {
				t.Fatalf("claimed twice or nothing: %+v", claim)
			}
			others[claim.TaskID] = true
			f.do(t, http.MethodPost, f.path("/tasks/"+claim.TaskID+"/complete"), claim.body(`,"result":"WORKFLOW_TASK_RESULT_SUCCEEDED"`), 200)
		}
		again, some := f.claim(t, `{"waitSeconds":30}`)
		if !some || again.TaskID != second.TaskID || again.AttemptIndex != 1 {
			t.Fatalf("second attempt: %+v", again)
		}
		if _, some := f.claim(t, `{}`); some {
			t.Error("a seventh task")
		}
		f.do(t, http.MethodPost, f.path("/tasks/"+again.TaskID+"/complete"), again.body(`,"result":"WORKFLOW_TASK_RESULT_SUCCEEDED","output":"two"`), 200)
		f.ended(t, job, "COMPLETED")
		if cost := f.summary(t, job).TotalCostCredits; cost != 25 {
			t.Errorf("%g credits", cost)
		}
		for _, task := range f.graph(t, job).Tasks {
			if task.TaskID == second.TaskID && (len(task.Attempts) != 2 || task.Attempts[0].ErrorSummary != "no luck") {
				t.Errorf("attempts: %+v", task.Attempts)
			}
		}
	})
}

// A claim of another caller, or an expired one, is rejected.
func TestClaimsAreRefused(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, strings.Replace(outside, "[1, 2, 3, 4, 5, 6]", "[1]", 1))
		job := f.trigger(t, `{"workflowType":"outside"}`)
		claim, _ := f.claim(t, `{"waitSeconds":30}`)
		other := f.as(f.AddTenant(t, "other"))
		wrong := claimOf{ClaimToken: "GUESS"}
		done := `,"result":"WORKFLOW_TASK_RESULT_SUCCEEDED"`
		for _, call := range []struct{ name, more string }{{"heartbeat", ""}, {"artifacts", `,"name":"a","content":""`}, {"complete", done}} {
			path := "/tasks/" + claim.TaskID + "/" + call.name
			f.do(t, http.MethodPost, f.path(path), wrong.body(call.more), 400)
			f.do(t, http.MethodPost, f.path("/tasks/999/"+call.name), claim.body(call.more), 404)
			f.do(t, http.MethodPost, f.path(path), `{}`, 400)
			other.do(t, http.MethodPost, other.path(path), claim.body(call.more), 404)
		}
		if _, some := other.claim(t, `{}`); some {
			t.Error("a task of another deployment")
		}
		for _, bad := range []string{`{"leaseSeconds":5}`, `{"leaseSeconds":4000}`, `{"waitSeconds":31}`, `{"waitSeconds":-1}`, `{"stepNames":[""]}`} {
			f.do(t, http.MethodPost, f.path("/tasks/claim"), bad, 400)
		}

		// A worker without heartbeats loses its claim to another worker.
		f.expire(t)
		f.do(t, http.MethodPost, f.path("/tasks/"+claim.TaskID+"/heartbeat"), claim.body(""), 400)
		next, some := f.claim(t, `{"waitSeconds":30}`)
		if !some || next.TaskID != claim.TaskID || next.AttemptIndex != 1 {
			t.Fatalf("after the lease: %+v", next)
		}
		f.do(t, http.MethodPost, f.path("/tasks/"+claim.TaskID+"/complete"), claim.body(done), 400)

		f.do(t, http.MethodPost, f.path("/jobs/id/"+job+"/cancel"), `{}`, 200)
		f.do(t, http.MethodPost, f.path("/tasks/"+next.TaskID+"/complete"), next.body(done), 400)
		want := []string{"each SUCCEEDED", "list SUCCEEDED", "work each[0] ERROR"}
		if got := f.graph(t, job).places(); !slices.Equal(got, want) {
			t.Errorf("tasks %q, want %q", got, want)
		}
	})
}

// expire lets all leases expire.
func (f flow) expire(t testing.TB) {
	t.Helper()
	err := f.Store.Write(f.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.WorkflowAttempt.Update().Where(workflowattempt.LeaseUntilNotNil()).SetLeaseUntil(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Internal services use gRPC; a permanent failure ends the run.
func TestExternalOverGRPC(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, strings.Replace(outside, "[1, 2, 3, 4, 5, 6]", "[1]", 1))
		client := workflowsv1.NewWorkflowTasksServiceClient(f.Conn)
		ctx := f.Context(t, f.Token)
		for _, result := range []workflowsv1.WorkflowTaskResult{
			workflowsv1.WorkflowTaskResult_WORKFLOW_TASK_RESULT_SUCCEEDED, workflowsv1.WorkflowTaskResult_WORKFLOW_TASK_RESULT_FAILED_PERMANENTLY,
		} {
			job := f.trigger(t, `{"workflowType":"outside"}`)
			claimed, err := client.ClaimWorkflowTask(ctx, &workflowsv1.ClaimWorkflowTaskRequest{DeploymentId: f.DeploymentID, WaitSeconds: 30})
			if err != nil || claimed.GetTask() == nil {
				t.Fatal(claimed, err)
			}
			task := claimed.GetTask()
			if task.GetDeadline().AsTime().Before(task.GetLeaseUntil().AsTime()) || task.GetPayload().GetStructValue().GetFields()["n"].GetNumberValue() != 1 {
				t.Errorf("claimed: %v", task)
			}
			if _, err := client.HeartbeatWorkflowTask(ctx, &workflowsv1.HeartbeatWorkflowTaskRequest{
				DeploymentId: f.DeploymentID, TaskId: task.GetTaskId(), ClaimToken: task.GetClaimToken()}); err != nil {
				t.Error(err)
			}
			if _, err := client.PutWorkflowArtifact(ctx, &workflowsv1.PutWorkflowArtifactRequest{
				DeploymentId: f.DeploymentID, TaskId: task.GetTaskId(), ClaimToken: task.GetClaimToken(), Name: "trace", Content: []byte("x")}); err != nil {
				t.Error(err)
			}
			if _, err := client.CompleteWorkflowTask(ctx, &workflowsv1.CompleteWorkflowTaskRequest{
				DeploymentId: f.DeploymentID, TaskId: task.GetTaskId(), ClaimToken: task.GetClaimToken(), Result: result,
				Output: structpb.NewStringValue("done"), ErrorSummary: "cannot be done"}); err != nil {
				t.Error(err)
			}
			want := "COMPLETED"
			if result != workflowsv1.WorkflowTaskResult_WORKFLOW_TASK_RESULT_SUCCEEDED {
				want = "FAILED"
			}
			f.ended(t, job, want)
		}
	})
}

// Concurrent calls with one claim are serialized: none of them gets a duplicate name error.
func TestArtifactsAtOnce(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, strings.Replace(outside, "[1, 2, 3, 4, 5, 6]", "[1]", 1))
		f.trigger(t, `{"workflowType":"outside"}`)
		claim, _ := f.claim(t, `{"waitSeconds":30,"leaseSeconds":600}`)
		id, _ := strconv.ParseInt(claim.TaskID, 10, 64)
		client, ctx := workflowsv1.NewWorkflowTasksServiceClient(f.Conn), f.Context(t, f.Token)
		answers := make(chan error, 24)
		for range cap(answers) {
			go func() {
				_, err := client.PutWorkflowArtifact(ctx, &workflowsv1.PutWorkflowArtifactRequest{
					DeploymentId: f.DeploymentID, TaskId: id, ClaimToken: claim.ClaimToken, Name: "log.txt", Content: []byte("log of the work")})
				answers <- err
			}()
		}
		for range cap(answers) {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
	})
}
