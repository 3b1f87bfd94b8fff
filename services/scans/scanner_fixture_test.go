package scans_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/setting"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// object is a JSON object.
type object = map[string]any

// recorded reads a recorded body of a scanner, and applies changes to it.
func recorded(t testing.TB, name string, change ...func(object)) string {
	t.Helper()
	body := parsed(t, string(testdata(t, "scanner/"+name+".json")))
	for _, c := range change {
		c(body)
	}
	return written(t, body)
}

func parsed(t testing.TB, body string) object {
	t.Helper()
	var out object
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("%v: %.300s", err, body)
	}
	return out
}

func written(t testing.TB, body any) string {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// at returns the value at a path of names.
func at(body any, path ...string) any {
	for _, name := range path {
		o, _ := body.(object)
		body = o[name]
	}
	return body
}

// with sets the value at a path. The parents have to exist.
func with(value any, path ...string) func(object) {
	return func(body object) {
		inner, _ := at(body, path[:len(path)-1]...).(object)
		inner[path[len(path)-1]] = value
	}
}

// without removes the findings of a body that keep does not accept.
func without(keep func(f object) bool) func(object) {
	return func(body object) {
		list, _ := body["findings"].([]any)
		body["findings"] = slices.DeleteFunc(list, func(f any) bool {
			o, _ := f.(object)
			return !keep(o)
		})
	}
}

// scannerClient sends what a scanner sends.
type scannerClient struct {
	*apitest.Server
	token string
}

func newScanner(s *apitest.Server) scannerClient { return scannerClient{s, s.Token} }

func (c scannerClient) send(t testing.TB, method, path, body string) apitest.Answer {
	t.Helper()
	return c.Do(t, c.token, method, path, body, "Content-Type", "application/json", "User-Agent", "Semgrep/1.97.0 (command/ci)")
}

// ok requires a 200.
func (c scannerClient) ok(t testing.TB, method, path, body string) object {
	t.Helper()
	answer := c.send(t, method, path, body)
	if answer.Status != http.StatusOK {
		t.Fatalf("%s %s: %d %.500s", method, path, answer.Status, answer.Body)
	}
	return parsed(t, answer.Body)
}

// refused requires an error with the one body that scanners read.
func (c scannerClient) refused(t testing.TB, want int, method, path, body, text string) {
	t.Helper()
	answer := c.send(t, method, path, body)
	got := object{}
	if json.Unmarshal([]byte(answer.Body), &got) != nil || answer.Status != want || len(got) != 1 || !strings.Contains(fmt.Sprint(got["error"]), text) {
		t.Errorf("%s %s: %d %.300s, want %d with %q", method, path, answer.Status, answer.Body, want, text)
	}
}

// create opens a scan by the first form of the protocol and returns its id.
func (c scannerClient) create(t testing.TB, change ...func(object)) int64 {
	t.Helper()
	answer := c.ok(t, http.MethodPost, "/api/cli/scans", recorded(t, "create_1.97", append([]func(object){with(uuid.NewString(), "scan_metadata", "unique_id")}, change...)...))
	id, _ := at(answer, "info", "id").(float64)
	if id == 0 {
		t.Fatalf("no id: %v", answer)
	}
	return int64(id)
}

func resultsPath(id int64) string  { return fmt.Sprintf("/api/agent/scans/%d/results", id) }
func completePath(id int64) string { return fmt.Sprintf("/api/agent/scans/%d/complete", id) }
func errorPath(id int64) string    { return fmt.Sprintf("/api/agent/scans/%d/error", id) }

// results sends results and returns the task id.
func (c scannerClient) results(t testing.TB, id int64, body string) string {
	t.Helper()
	answer := c.ok(t, http.MethodPost, resultsPath(id), body)
	task, _ := answer["task_id"].(string)
	if errors, _ := answer["errors"].([]any); task == "" || errors == nil || len(errors) > 0 {
		t.Fatalf("results: %v", answer)
	}
	return task
}

// complete polls until the results are stored, as the scanner does, and returns the last answer.
func (c scannerClient) complete(t testing.TB, id int64, task string) (answer object) {
	t.Helper()
	body := recorded(t, "complete", with(task, "task_id"))
	apitest.Eventually(t, "the results are stored", func() bool {
		answer = c.ok(t, http.MethodPost, completePath(id), body)
		return answer["success"] == true
	})
	return answer
}

// scan does a whole scan.
func (c scannerClient) scan(t testing.TB, results string, change ...func(object)) (id int64, answer object) {
	t.Helper()
	id = c.create(t, change...)
	return id, c.complete(t, id, c.results(t, id, results))
}

// findingsOf are the findings of a ref in the order of their ids: path:line state status.
func (c scannerClient) findingsOf(t testing.TB, ref string) (list []string) {
	t.Helper()
	for _, f := range c.Store.Reader.Finding.Query().Where(finding.Ref(ref)).Order(ent.Asc(finding.FieldID)).AllX(c.System(t)) {
		list = append(list, fmt.Sprintf("%s:%d %s %s", value(f.FilePath), contentOf(t, f).GetLocation().GetLine(), f.State, f.Status))
	}
	return list
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func wantList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// productsOff turns all products of a deployment off.
func productsOff(deploymentID int64) func(context.Context, *ent.Tx) error {
	return func(ctx context.Context, tx *ent.Tx) error {
		raw, err := proto.Marshal(&deploymentsv1.DeploymentProductConfig{
			Sast: &deploymentsv1.SastProductConfig{}, Sca: &deploymentsv1.ScaProductConfig{}, Secrets: &deploymentsv1.SecretsProductConfig{},
		})
		if err != nil {
			return err
		}
		return tx.Deployment.UpdateOneID(deploymentID).SetProducts(raw).Exec(ctx)
	}
}

// rowCounts counts the rows of every table of tenants. It omits the settings of the server, which jobs write at any
// time.
func rowCounts(t testing.TB, s *apitest.Server) (counts []string) {
	t.Helper()
	reader, _ := s.Store.DB()
	for _, table := range migrate.Tables {
		if table.Name == setting.Table {
			continue
		}
		n := 0
		if err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table.Name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, fmt.Sprintf("%s %d", table.Name, n))
	}
	return counts
}

// findingsIn are the findings of a project in the order of their ids: path:line state status.
func (c scannerClient) findingsIn(t testing.TB, name string) (list []string) {
	t.Helper()
	of := c.Store.Reader.Project.Query().Where(project.Name(name)).OnlyX(c.System(t))
	for _, f := range c.Store.Reader.Finding.Query().Where(finding.ProjectID(of.ID)).Order(ent.Asc(finding.FieldID)).AllX(c.System(t)) {
		list = append(list, fmt.Sprintf("%s:%d %s %s", value(f.FilePath), contentOf(t, f).GetLocation().GetLine(), f.State, f.Status))
	}
	return list
}
