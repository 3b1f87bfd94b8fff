package workflows_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowattempt"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

const crashToken = "sgp_crash4Kq2vXw7RbZ4mLd8sYh3nPc6JfGa5TeUo1W"

// everyStep has each type of step. Its steps call a receiver.
const everyStep = `
name: every-step
targetType: deployment
inputs: [{name: url, type: string, required: true}]
steps:
  - {name: start, with: {output: "${{ lists.range(12) }}"}, next: [units]}
  - {name: units, type: foreach, foreach: steps.start.output, next: [route], matchingJoin: collected}
  - {name: route, type: switch, condition: "item % 3", cases: {"0": checks, default: simple}}
  - {name: checks, type: split, next: [look, copies], matchingJoin: checked}
  - {name: look, uses: http, with: {url: "${{ inputs.url }}/look/${{ item }}"}, next: [checked]}
  - {name: copies, type: parallel, numParallel: 3, next: [copy], matchingJoin: copied}
  - {name: copy, uses: http, with: {url: "${{ inputs.url }}/copy/${{ item }}/${{ index }}"}, next: [copied]}
  - {name: copied, type: join, with: {output: "${{ branches.map(b, b.output.body) }}"}, next: [checked]}
  - {name: checked, type: join, with: {output: "${{ branches.map(b, b.key) }}"}, next: [done]}
  - {name: simple, uses: http, with: {url: "${{ inputs.url }}/simple/${{ item }}"}, next: [done]}
  - {name: done, next: [collected]}
  - {name: collected, type: join, with: {output: "${{ branches.size() }}"}, next: [last]}
  - {name: last, uses: http, with: {url: "${{ inputs.url }}/last/${{ steps.collected.output }}"}}
`

// calledServer counts the calls of steps. Each call takes some time.
type calledServer struct {
	*httptest.Server
	mu    sync.Mutex
	calls map[string]int
	all   int
}

func newCalledServer(t *testing.T) *calledServer {
	s := &calledServer{calls: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls[r.URL.Path]++
		s.all++
		s.mu.Unlock()
		select {
		case <-time.After(300 * time.Millisecond):
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte("done"))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *calledServer) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// killable is a server in its own process.
type killable struct {
	flow
	binary string
	env    []string
	cmd    *exec.Cmd
	log    bytes.Buffer
}

func (k *killable) start(t *testing.T) {
	t.Helper()
	address := apitest.FreeAddress(t)
	k.cmd = exec.Command(k.binary, "serve", "--http", address, "--grpc", apitest.FreeAddress(t), "--metrics", apitest.FreeAddress(t))
	k.cmd.Env = append(append(os.Environ(), "PALISADE_BOOTSTRAP_TOKEN="+crashToken, "PALISADE_DEPLOYMENT=acme", "PALISADE_EGRESS_ALLOW=127.0.0.1",
		"PALISADE_RATE_LIMIT=0", "PALISADE_LOG_LEVEL=warn"), k.env...)
	k.cmd.Stdout, k.cmd.Stderr = &k.log, &k.log
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k.Server = &apitest.Server{URL: "http://" + address, Tenant: apitest.Tenant{Slug: "acme", DeploymentID: 1, Token: crashToken}}
	soon(t, "the server answers", func() bool {
		response, err := http.Get(k.URL + "/api/v1/ping")
		if err == nil {
			_ = response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
}

// kill ends the process with SIGKILL.
func (k *killable) kill(t *testing.T) {
	t.Helper()
	if err := k.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = k.cmd.Wait() // it was killed
}

// A run ends with the same graph whenever its server is killed, and no attempt runs twice.
func TestKilledServerFinishesRuns(t *testing.T) {
	testrun.Deep(t) // kills processes
	binary, err := testrun.Program(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	storetest.Each(t, func(t *testing.T, o store.Options) {
		if o.DataDir == "" {
			o.DataDir = t.TempDir()
		}
		killTwice(t, binary, o)
	})
}

func killTwice(t *testing.T, binary string, o store.Options) {
	server := &killable{binary: binary, env: []string{"PALISADE_DATA=" + o.DataDir}}
	if o.Database != "" {
		server.env = append(server.env, "PALISADE_DATABASE="+o.Database)
	}
	server.start(t)
	t.Cleanup(func() {
		server.kill(t)
		if t.Failed() {
			t.Logf("log of the server:\n%s", server.log.String())
		}
	})
	st := storetest.Open(t, o)
	server.publish(t, everyStep)
	quiet := newCalledServer(t)
	calm := server.trigger(t, fmt.Sprintf(`{"workflowType":"every-step","inputs":{"url":%q}}`, quiet.URL))
	server.ended(t, calm, "COMPLETED")
	want := server.graph(t, calm).places()

	to := newCalledServer(t)
	job := server.trigger(t, fmt.Sprintf(`{"workflowType":"every-step","inputs":{"url":%q}}`, to.URL))
	begun := time.Now()
	for i := range 2 {
		soon(t, "steps are at work", func() bool { return to.number() >= (i+1)*quiet.number()/3 })
		server.kill(t)
		t.Logf("killed after %s and %d calls", time.Since(begun).Round(time.Second), to.number())
		if st.Postgres() { // on SQLite there is only one process, so it takes over at once
			storetest.EndLeases(t, st)
		}
		server.start(t)
	}
	server.ended(t, job, "COMPLETED")
	t.Logf("ended after %s and %d calls, where %d were needed", time.Since(begun).Round(time.Second), to.number(), quiet.number())

	graph := server.graph(t, job)
	if got := graph.places(); !slices.Equal(got, want) {
		t.Errorf("the graph differs:\n got %q\nwant %q", got, want)
	}
	server.checkAttempts(t, graph, to)
	held := st.Reader.WorkflowAttempt.Query().Where(workflowattempt.Or(
		workflowattempt.StatusIn("pending", "running"), workflowattempt.LeaseUntilNotNil())).CountX(tenant.System(t.Context()))
	if held > 0 {
		t.Errorf("%d attempts are not final", held)
	}
}

// checkAttempts requires that each attempt ran at most once: a task was called at most as often as it has attempts.
func (k *killable) checkAttempts(t *testing.T, graph graphOf, to *calledServer) {
	t.Helper()
	attempts, called, lost := 0, 0, 0
	for _, task := range graph.Tasks {
		for i, a := range task.Attempts {
			if a.AttemptIndex != i {
				t.Errorf("task %s: attempt %d has index %d", task.TaskID, i, a.AttemptIndex)
			}
			if strings.HasSuffix(a.Status, "_ERROR") {
				lost++
			}
		}
		if n := len(task.Attempts); n == 0 || !strings.HasSuffix(task.Attempts[n-1].Status, "_SUCCEEDED") {
			t.Errorf("task %s ended with %+v", task.TaskID, task.Attempts)
		}
		path := calledPath(task.StepID, task.LogicalPath)
		if path == "" {
			continue
		}
		to.mu.Lock()
		n := to.calls[path]
		to.mu.Unlock()
		attempts, called = attempts+len(task.Attempts), called+n
		if n == 0 || n > len(task.Attempts) {
			t.Errorf("%s was called %d times in %d attempts", path, n, len(task.Attempts))
		}
	}
	t.Logf("%d calls in %d attempts, %d attempts were lost", called, attempts, lost)
}

// calledPath is the URL path that a task calls; "" for tasks without a call.
func calledPath(name, path string) string {
	var unit, copied int
	switch name {
	case "look", "simple":
		_, _ = fmt.Sscanf(path, "units[%d]", &unit)
		return fmt.Sprintf("/%s/%d", name, unit)
	case "copy":
		_, _ = fmt.Sscanf(path, "units[%d]/checks.copies/copies[%d]", &unit, &copied)
		return fmt.Sprintf("/copy/%d/%d", unit, copied)
	case "last":
		return "/last/12"
	}
	return ""
}
