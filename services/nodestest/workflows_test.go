package nodestest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// workflowsOf calls the workflow API of a deployment on a node.
type workflowsOf struct {
	*apitest.Server
	t testing.TB
}

func (w workflowsOf) call(method, path, body string) string {
	w.t.Helper()
	return w.Body(w.t, w.Token, method, fmt.Sprintf("/api/workflows/v1/deployments/%d%s", w.DeploymentID, path), body, http.StatusOK)
}

// start publishes a definition and starts a run of it.
func (w workflowsOf) start(name, steps string) (job string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]string{"definition": "name: " + name + "\ntargetType: deployment\nsteps:\n" + steps})
	if err != nil {
		w.t.Fatal(err)
	}
	w.call(http.MethodPut, "/registry", string(body))
	var answer struct {
		Summary struct {
			JobID string `json:"jobId"`
		}
	}
	if err := json.Unmarshal([]byte(w.call(http.MethodPost, "/jobs", `{"workflowType":"`+name+`"}`)), &answer); err != nil {
		w.t.Fatal(err)
	}
	return answer.Summary.JobID
}

// TestLargeRunOnTwoNodes: two nodes work on a large run of one deployment. The run never exceeds its concurrency
// limit. A run of another deployment finishes before most of it. Cancelling it on one node stops it on both.
func TestLargeRunOnTwoNodes(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	binary, url := binary(t), pgtest.NewDatabase(t)
	key := filepath.Join(t.TempDir(), "palisade.key")
	nodes := []*node{newNode(t, "node1", binary, url, key), newNode(t, "node2", binary, url, key)}
	for _, n := range nodes {
		n.start()
	}
	st := storetest.Open(t, store.Options{Database: url, DataDir: t.TempDir(), MaxOpen: 2})
	on := func(n *node, of apitest.Tenant) workflowsOf {
		return workflowsOf{&apitest.Server{URL: "http://" + n.http, Store: st, Tenant: of}, t}
	}
	acme := on(nodes[0], apitest.Tenant{Slug: "acme", DeploymentID: 1, Token: token})
	beta := on(nodes[1], acme.AddTenant(t, "beta"))
	d := openDatabase(t, url)

	large := acme.start("grid", `
  - {name: rows, type: foreach, foreach: "lists.range(200)", next: [columns], matchingJoin: all}
  - {name: columns, type: foreach, foreach: "lists.range(200)", next: [work], matchingJoin: row}
  - {name: work, next: [row]}
  - {name: row, type: join, next: [all]}
  - {name: all, type: join}
`)
	const active = "SELECT COUNT(*) FROM workflow_attempts WHERE deployment_id = 1 AND finished_at IS NULL"
	apitest.Eventually(t, "both nodes work on the large run", func() bool {
		if n := d.number(active); n > 200 {
			t.Fatalf("%d attempts wait or run", n)
		}
		return d.number("SELECT COUNT(DISTINCT split_part(worker, '/', 1)) FROM workflow_attempts WHERE step = 'work' AND worker <> ''") >= 2
	})
	small := beta.start("small", "  - {name: only}\n")
	apitest.Eventually(t, "the small run ends", func() bool {
		return strings.Contains(beta.call(http.MethodGet, "/jobs/id/"+small+"/overview", ""), "STATUS_COMPLETED")
	})
	largeAttempts := d.number(`SELECT COUNT(*) FROM workflow_attempts a JOIN workflow_runs r ON r.deployment_id <> a.deployment_id
		WHERE r.workflow = 'small' AND a.started_at > r.submitted_at AND a.started_at < r.finished_at`)
	if largeAttempts > 200 {
		t.Errorf("the large run began %d attempts before the only attempt of the small one", largeAttempts)
	}

	on(nodes[1], acme.Tenant).call(http.MethodPost, "/jobs/id/"+large+"/cancel", `{}`)
	if n := d.number("SELECT COUNT(*) FROM river_job WHERE kind = 'workflow_attempt' AND state NOT IN ('completed', 'running')"); n != 0 {
		t.Errorf("%d jobs wait after the large run was cancelled", n)
	}
	d.waitForZero("attempts are not final", active)
	d.waitForZero("jobs of attempts run", "SELECT COUNT(*) FROM river_job WHERE kind = 'workflow_attempt' AND state <> 'completed'")
	if n := d.number("SELECT COUNT(*) FROM workflow_attempts a JOIN workflow_runs r ON r.id = a.run_id WHERE a.started_at > r.finished_at"); n != 0 {
		t.Errorf("%d attempts began after their run was cancelled", n)
	}
	t.Logf("%d attempts of the large run began while the small one waited and ran", largeAttempts)
	for _, n := range nodes {
		n.stop()
		requireNoErrors(t, n)
	}
}
