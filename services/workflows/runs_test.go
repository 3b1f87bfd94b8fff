package workflows_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

const greeting = `
name: greeting
targetType: deployment
inputs:
  - {name: who, type: string, required: true}
  - {name: times, type: integer, default: 2}
steps:
  - {name: hello, with: {output: "hello ${{ inputs.who }}"}, next: [again]}
  - {name: again, with: {output: "${{ lists.range(inputs.times).map(i, steps.hello.output) }}"}}
`

const waiting = `
name: waiting
targetType: repository
steps:
  - {name: outside, uses: external, with: {payload: {ref: "${{ run.gitRef }}"}}, next: [end]}
  - {name: end}
`

func TestTrigger(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, greeting)
		f.publish(t, waiting)
		body := f.do(t, http.MethodPost, f.path("/jobs"), `{"workflowType":"greeting","inputs":{"who":"you"},"jobName":"first","gitRef":"main"}`, 200)
		apitest.Golden(t, "run_trigger", body)
		f.ended(t, "1", "COMPLETED")

		response, err := workflowsv1.NewWorkflowRunsServiceClient(f.Conn).RetryWorkflowJob(f.Context(t, f.Token),
			&workflowsv1.RetryWorkflowJobRequest{DeploymentId: f.DeploymentID, JobId: "1"})
		if err != nil {
			t.Fatal(err)
		}
		again := response.GetSummary()
		if again.GetJobId() != "2" || again.GetGitRef() != "main" || again.GetWorkflowType() != "greeting" {
			t.Errorf("retry: %v", again)
		}
		f.ended(t, "2", "COMPLETED")
		if run := f.Store.Reader.WorkflowRun.GetX(f.System(t), 2); run.RetryOf != 1 || run.JobName != "first" || string(run.Inputs) != `{"times":2,"who":"you"}` {
			t.Errorf("the second try: %v with %s", run, run.Inputs)
		}
	})
}

// A run copies the repository data of its project.
func TestTriggerOnRepository(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, waiting)
		f.Upload(t, "acme/web", "refs/heads/main", []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[]}]}`))
		var projects struct{ Projects []struct{ ID json.Number } }
		if err := json.Unmarshal([]byte(f.Get(t, "/api/v1/deployments/acme/projects")), &projects); err != nil || len(projects.Projects) != 1 {
			t.Fatal(projects, err)
		}
		id := projects.Projects[0].ID.String()
		job := f.trigger(t, `{"workflowType":"waiting","repoId":"`+id+`","gitRef":"release"}`)
		if got := f.summary(t, job); got.RepoID != id || got.GitRef != "release" || got.EventSource != "api" || got.TriggerSource != "automation" {
			t.Errorf("summary: %+v", got)
		}
		user := f.AddUser(t, f.Tenant, "ann@acme.test", access.RoleAdmin)
		answer := f.Do(t, user, http.MethodPost, f.path("/jobs"), `{"workflowType":"waiting","repoId":"`+id+`"}`)
		if answer.Status != http.StatusOK || !strings.Contains(answer.Body, `"triggerSource":"manual"`) {
			t.Errorf("a person: %d %s", answer.Status, answer.Body)
		}
		other := f.as(f.AddTenant(t, "other"))
		other.publish(t, waiting)
		apitest.Golden(t, "run_other_project", other.do(t, http.MethodPost, other.path("/jobs"), `{"workflowType":"waiting","repoId":"`+id+`"}`, 404))
	})
}

func TestTriggerRefuses(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, greeting)
		f.publish(t, waiting)
		f.publish(t, strings.Replace(greeting, "greeting", "retired", 1))
		f.do(t, http.MethodPatch, f.path("/registry/retired"), `{"enabled":false}`, 200)
		for name, c := range map[string]struct {
			body   string
			status int
		}{
			"no_workflow":      {`{}`, 400},
			"no_model":         {`{"workflowType":"triage-backlog"}`, 400},
			"unknown_workflow": {`{"workflowType":"nothing"}`, 404},
			"disabled":         {`{"workflowType":"retired","inputs":{"who":"x"}}`, 400},
			"no_input":         {`{"workflowType":"greeting"}`, 400},
			"wrong_input":      {`{"workflowType":"greeting","inputs":{"who":7}}`, 400},
			"unknown_input":    {`{"workflowType":"greeting","inputs":{"who":"x","whom":"y"}}`, 400},
			"no_project":       {`{"workflowType":"waiting"}`, 400},
			"unknown_project":  {`{"workflowType":"waiting","repoId":"99"}`, 404},
			"negative_project": {`{"workflowType":"waiting","repoId":"-1"}`, 400},
			"negative_budget":  {`{"workflowType":"greeting","inputs":{"who":"x"},"budgetCredits":-1}`, 400},
			"endless_budget":   {`{"workflowType":"greeting","inputs":{"who":"x"},"budgetCredits":"Infinity"}`, 400},
			"long_ref":         {`{"workflowType":"greeting","inputs":{"who":"x"},"gitRef":"` + strings.Repeat("x", 256) + `"}`, 400},
		} {
			apitest.Golden(t, "run_refused_"+name, f.do(t, http.MethodPost, f.path("/jobs"), c.body, c.status))
		}
		if n := f.Store.Reader.WorkflowRun.Query().CountX(f.System(t)); n != 0 {
			t.Errorf("%d runs were stored", n)
		}
	})
}

func TestIdempotencyKey(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, greeting)
		f.publish(t, waiting)
		body := `{"workflowType":"greeting","inputs":{"who":"you"},"idempotencyKey":"k1"}`
		jobs := make(chan string, 8)
		for range cap(jobs) {
			go func() {
				answer := f.Try(t, f.Token, http.MethodPost, f.path("/jobs"), body)
				jobs <- answer.Body[:min(len(answer.Body), 22)]
			}()
		}
		first := <-jobs
		for range cap(jobs) - 1 {
			if again := <-jobs; again != first {
				t.Errorf("two runs: %s and %s", first, again)
			}
		}
		if n := f.Store.Reader.WorkflowRun.Query().CountX(f.System(t)); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

// A key with another request is rejected: otherwise the caller would get a run of another request.
func TestIdempotencyKeyWithAnotherRequest(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, greeting+"budgetCredits: 50\n")
		f.publish(t, waiting)
		f.Upload(t, "acme/web", "refs/heads/main", []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[]}]}`))
		const first = `"workflowType":"greeting","inputs":{"who":"you"},"repoId":"1","prId":"7","jobName":"nightly","idempotencyKey":"k"`
		job := f.trigger(t, "{"+first+"}")
		// A later version does not change the comparison with the first request.
		f.publish(t, strings.Replace(greeting, "default: 2", "default: 9", 1)+"budgetCredits: 60\n")
		for _, same := range []string{first, strings.Replace(first, `"who"`, `"times":2,"who"`, 1), first + `,"budgetCredits":50`} {
			if again := f.trigger(t, "{"+same+"}"); again != job {
				t.Errorf("%s gives job %s, want %s", same, again, job)
			}
		}
		for field, change := range map[string][2]string{
			"workflowType":  {`"greeting"`, `"waiting"`},
			"inputs.who":    {`"you"`, `"me"`},
			"inputs.times":  {`"who"`, `"times":9,"who"`},
			"inputs.whom":   {`"who"`, `"whom":"x","who"`},
			"repoId":        {`"repoId":"1"`, `"repoId":"2"`},
			"gitRef":        {`"prId"`, `"gitRef":"main","prId"`},
			"prId":          {`"7"`, `"8"`},
			"jobName":       {`"nightly"`, `"weekly"`},
			"budgetCredits": {`"prId"`, `"budgetCredits":60,"prId"`},
		} {
			body := f.do(t, http.MethodPost, f.path("/jobs"), "{"+strings.Replace(first, change[0], change[1], 1)+"}", http.StatusConflict)
			if !strings.Contains(body, "job "+job+" of workflow") || !strings.Contains(body, "another "+field+":") {
				t.Errorf("another %s: %s", field, body)
			}
		}
		client := workflowsv1.NewWorkflowRunsServiceClient(f.Conn)
		request := &workflowsv1.TriggerWorkflowJobRequest{DeploymentId: f.DeploymentID, WorkflowType: "greeting", IdempotencyKey: "k",
			RepoId: 1, PrId: "7", JobName: "nightly", Inputs: &structpb.Struct{Fields: map[string]*structpb.Value{"who": structpb.NewStringValue("you")}}}
		if response, err := client.TriggerWorkflowJob(f.Context(t, f.Token), request); err != nil || response.GetSummary().GetJobId() != job {
			t.Errorf("the same over gRPC: %v, %v", response, err)
		}
		request.GitRef = "release"
		_, err := client.TriggerWorkflowJob(f.Context(t, f.Token), request)
		if status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "job "+job+" of workflow") || !strings.Contains(err.Error(), "another gitRef:") {
			t.Errorf("another ref over gRPC: %v", err)
		}
		if n := f.Store.Reader.WorkflowRun.Query().CountX(f.System(t)); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

func TestCancelAndRetry(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		f.publish(t, strings.Replace(waiting, "repository", "deployment", 1))
		job := f.trigger(t, `{"workflowType":"waiting"}`)
		apitest.Golden(t, "run_retry_active", f.do(t, http.MethodPost, f.path("/jobs/id/"+job+"/retry"), `{}`, 400))
		f.do(t, http.MethodPost, f.path("/jobs/id/"+job+"/cancel"), `{}`, 200)
		f.ended(t, job, "CANCELLED")
		if got := f.graph(t, job).places(); !slices.Equal(got, []string{"outside SKIPPED"}) {
			t.Errorf("tasks: %q", got)
		}
		apitest.Golden(t, "run_cancel_ended", f.do(t, http.MethodPost, f.path("/jobs/id/"+job+"/cancel"), `{}`, 400))
		apitest.Golden(t, "run_retry", f.do(t, http.MethodPost, f.path("/jobs/id/"+job+"/retry"), `{}`, 200))

		other := f.as(f.AddTenant(t, "other"))
		for _, what := range []string{"cancel", "retry"} {
			apitest.Golden(t, "run_not_found", strings.ReplaceAll(f.do(t, http.MethodPost, f.path("/jobs/id/99/"+what), `{}`, 404), `"99`, `"N`))
			f.do(t, http.MethodPost, f.path("/jobs/id/x/"+what), `{}`, 404)
			other.do(t, http.MethodPost, other.path("/jobs/id/"+job+"/"+what), `{}`, 404)
			if answer := other.Do(t, other.Token, http.MethodPost, f.path("/jobs/id/"+job+"/"+what), `{}`); answer.Status != 404 {
				t.Errorf("%s in a foreign deployment: %d", what, answer.Status)
			}
		}
		trail := f.do(t, http.MethodGet, strings.Replace(f.path("/entries"), "workflows", "audit", 1), "", 200)
		if n := strings.Count(trail, `"workflow_run"`); n != 3 {
			t.Errorf("the trail has %d changes of runs, want 3: %s", n, trail)
		}
	})
}

// The kind "http" works through the real server: a failed request is retried.
func TestRunCallsOut(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		var calls atomic.Int32
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"answer":42}`))
		}))
		defer receiver.Close()
		f.publish(t, `
name: ask
targetType: deployment
inputs: [{name: url, type: string, required: true}]
steps:
  - {name: call, uses: http, with: {url: "${{ inputs.url }}"}, retries: 1, next: [end]}
  - {name: end, with: {output: "${{ steps.call.output.body.answer }}"}}
`)
		job := f.trigger(t, `{"workflowType":"ask","inputs":{"url":"`+receiver.URL+`"}}`)
		f.ended(t, job, "COMPLETED")
		if calls.Load() != 2 {
			t.Errorf("%d calls", calls.Load())
		}
		graph := f.graph(t, job)
		if len(graph.Tasks[0].Attempts) != 2 || !strings.HasSuffix(graph.Tasks[0].Attempts[0].Status, "_FAILED") {
			t.Errorf("attempts: %+v", graph.Tasks[0].Attempts)
		}
	})
}
