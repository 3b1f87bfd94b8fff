package steps_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/workflows/step"
	"github.com/palisade/palisade/services/workflows/steps"
)

func guard(t testing.TB) *egress.Guard {
	t.Helper()
	g, err := egress.New(egress.Config{Allow: "127.0.0.1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// fixture is a server with the dependencies of steps.
type fixture struct {
	*apitest.Server
	kinds   step.Registry
	dataDir string
}

// each runs a test on both databases. Loopback hosts may be called.
func each(t *testing.T, test func(t *testing.T, w fixture)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
		keyring, err := secret.Open(s.Config.KeyPath(), false)
		if err != nil {
			t.Fatal(err)
		}
		w := fixture{Server: s, dataDir: t.TempDir()}
		w.kinds = steps.Registry(steps.Needs{
			Store: s.Store, Egress: guard(t), Dir: w.dataDir,
			Repository: connect.New(s.Store, keyring, guard(t), s.Config.EntraURL).Repository,
		})
		test(t, w)
	})
}

// project creates a project.
func (w fixture) project(t testing.TB, of apitest.Tenant, name, url string) int64 {
	t.Helper()
	var id int64
	w.write(t, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Project.Create().SetDeploymentID(of.DeploymentID).SetName(name).SetNameKey(strings.ToLower(name)).SetRepositoryURL(url).
			SetDefaultBranch("refs/heads/main").SetCreatedAt(store.Now()).Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	return id
}

func (w fixture) write(t testing.TB, do func(context.Context, *ent.Tx) error) {
	t.Helper()
	if err := w.Store.Write(w.System(t), do); err != nil {
		t.Fatal(err)
	}
}

// fact describes a finding to insert. Empty fields get the values that a scan would set.
type fact struct {
	rule, severity, kind, ref, verdict, triage, state, message, snippet string
	project                                                             int64
}

// finding inserts a finding. If two have the same severity, the later one is listed first.
func (w fixture) finding(t testing.TB, of apitest.Tenant, f fact) int64 {
	t.Helper()
	or := func(value, other string) string {
		if value == "" {
			return other
		}
		return value
	}
	content, err := blob.Encode(&storev1.FindingContent{
		Message: f.message, Snippet: f.snippet, Location: &findingsv1.FindingLocation{FilePath: "app/db.py", Line: 41, EndLine: 43},
	})
	if err != nil {
		t.Fatal(err)
	}
	state, triage := or(f.state, lifecycle.Unresolved), or(f.triage, lifecycle.Untriaged)
	var id int64
	w.write(t, func(ctx context.Context, tx *ent.Tx) error {
		name := or(f.rule, "py.sqli")
		ruleID, err := tx.Rule.Create().SetDeploymentID(of.DeploymentID).SetTool("test").SetName(name).SetCategory("security").SetConfidence("high").
			SetContent([]byte{}).OnConflictColumns("deployment_id", "tool", "name").UpdateNewValues().ID(ctx)
		if err != nil {
			return err
		}
		create := tx.Finding.Create().SetDeploymentID(of.DeploymentID).SetProjectID(f.project).SetRuleID(ruleID).SetFirstSeenScanID(411).
			SetRef(or(f.ref, "refs/heads/main")).SetTool("test").SetAnalysisCategory("").SetFingerprint(fmt.Sprint("print-", store.Now())).
			SetIssueType(or(f.kind, "sast")).SetSeverity(or(f.severity, "high")).SetState(state).SetTriageState(triage).
			SetStatus(lifecycle.Status(state, triage)).SetCreatedAt(store.Now()).SetRelevantSince(store.Now()).SetStateUpdatedAt(store.Now()).
			SetContentHash(1).SetContent(content)
		if f.verdict != "" {
			create.SetAutotriageVerdict(f.verdict)
		}
		row, err := create.Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	return id
}

// call builds a call of a step in the first deployment.
func (w fixture) call(projectID int64, with map[string]any) step.Call {
	c := step.Call{DeploymentID: w.DeploymentID, RunID: 7, TaskID: 70, With: with, Step: "look"}
	if projectID != 0 {
		c.ProjectID = &projectID
	}
	return c
}

// run checks the parameters, runs a kind and decodes its output.
func run[T any](t testing.TB, kinds step.Registry, name string, call step.Call) (out T, result step.Result) {
	t.Helper()
	if err := kinds[name].Check(call.With); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	result, err := kinds[name].Run(t.Context(), call)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	d := json.NewDecoder(bytes.NewReader(result.Output))
	if err := d.Decode(&out); err != nil {
		t.Fatalf("%s: %v: %s", name, err, result.Output)
	}
	return out, result
}

// failure runs a kind and requires an error.
func failure(t testing.TB, kinds step.Registry, name string, call step.Call) error {
	t.Helper()
	_, err := kinds[name].Run(t.Context(), call)
	if err == nil {
		t.Fatalf("%s did not fail", name)
	}
	return err
}

// connect creates an SCM configuration through the API.
func (w fixture) connect(t testing.TB, of apitest.Tenant, kind, baseURL, namespace, token string) {
	t.Helper()
	body := fmt.Sprintf(`{"type":%q,"namespace":%q,"baseUrl":%q,"accessToken":%q}`, kind, namespace, baseURL, token)
	answer := w.Do(t, of.Token, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", of.DeploymentID), body)
	if answer.Status != http.StatusCreated {
		t.Fatal(answer)
	}
}

// nothingLeft checks that fetched code was deleted.
func (w fixture) nothingLeft(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir(w.dataDir + "/checkouts")
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(entries) > 0 {
		t.Errorf("left: %v %v", entries, err)
	}
}
