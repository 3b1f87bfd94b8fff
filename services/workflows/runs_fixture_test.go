package workflows_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
)

// runTimeout is the test timeout. Runs normally need less than a tenth of it.
const runTimeout = 10 * time.Minute

// flow calls the API as the first administrator.
type flow struct{ *apitest.Server }

// onEachServer runs a test on both databases. Steps may call the loopback interface.
func onEachServer(t *testing.T, test func(t *testing.T, f flow)) {
	t.Helper()
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		test(t, flow{apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })})
	})
}

// as returns the same server as seen by another deployment.
func (f flow) as(tenant apitest.Tenant) flow {
	server := *f.Server
	server.Tenant = tenant
	return flow{&server}
}

func (f flow) path(more string) string {
	return fmt.Sprintf("/api/workflows/v1/deployments/%d%s", f.DeploymentID, more)
}

// do sends a request, requires a status and returns the body.
func (f flow) do(t testing.TB, method, path, body string, want int) string {
	t.Helper()
	return f.Body(t, f.Token, method, path, body, want)
}

// publish publishes a definition.
func (f flow) publish(t testing.TB, definition string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"definition": definition})
	if err != nil {
		t.Fatal(err)
	}
	f.do(t, http.MethodPut, f.path("/registry"), string(body), http.StatusOK)
}

// summaryOf is a run in the API's form.
type summaryOf struct {
	JobID            string `json:"jobId"`
	Status           string
	TotalCostCredits float64
	RepoID           string `json:"repoId"`
	GitRef           string
	EventSource      string
	TriggerSource    string
}

// trigger starts a run and returns its id.
func (f flow) trigger(t testing.TB, body string) string {
	t.Helper()
	var answer struct{ Summary summaryOf }
	text := f.do(t, http.MethodPost, f.path("/jobs"), body, http.StatusOK)
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Summary.JobID
}

// graphOf holds the fields of a run's graph that tests compare.
type graphOf struct {
	Steps []struct{ Name, Status string }
	Tasks []struct {
		TaskID, StepID, Status, LogicalPath string
		Attempts                            []struct {
			AttemptIndex         int
			Status, ErrorSummary string
		}
	}
}

// places returns the tasks as "step path status", sorted.
func (g graphOf) places() []string {
	var out []string
	for _, task := range g.Tasks {
		status := strings.TrimPrefix(task.Status, "WORKFLOW_STEP_STATUS_")
		out = append(out, strings.Join(strings.Fields(task.StepID+" "+task.LogicalPath+" "+status), " "))
	}
	slices.Sort(out)
	return out
}

func (f flow) graph(t testing.TB, job string) graphOf {
	t.Helper()
	var answer struct{ Graph graphOf }
	if err := json.Unmarshal([]byte(f.do(t, http.MethodGet, f.path("/jobs/id/"+job+"/graph?limit=1000"), "", http.StatusOK)), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Graph
}

func (f flow) summary(t testing.TB, job string) summaryOf {
	t.Helper()
	var answer struct{ Summary summaryOf }
	if err := json.Unmarshal([]byte(f.do(t, http.MethodGet, f.path("/jobs/id/"+job+"/overview"), "", http.StatusOK)), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Summary
}

// ended waits for the end of a run.
func (f flow) ended(t testing.TB, job, want string) {
	t.Helper()
	status := ""
	soon(t, "the run ends as "+want, func() bool {
		status = strings.TrimPrefix(f.summary(t, job).Status, "PLATFORM_WORKFLOW_RUN_STATUS_")
		return status != "SUBMITTED" && status != "RUNNING"
	})
	if status != want {
		t.Fatalf("the run is %s, want %s: %+v", status, want, f.graph(t, job))
	}
}

func soon(t testing.TB, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(runTimeout); !yes(); {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		<-time.After(50 * time.Millisecond)
	}
}
