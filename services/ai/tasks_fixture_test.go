package ai_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
	"github.com/palisade/palisade/services/internal/store"
)

// modelled is a server with a local model, a project and a rule.
type modelled struct {
	*apitest.Server
	model     *llmtest.Server
	projectID int64
	ruleID    int64
}

// eachModelled runs a test on both databases, with a model that uses answer.
func eachModelled(t *testing.T, answer func(llmtest.Request) llmtest.Reply, adjust func(*config.Config), test func(t *testing.T, s *modelled)) {
	t.Helper()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		test(t, startModelled(t, answer, func(c *config.Config) {
			on(c)
			if adjust != nil {
				adjust(c)
			}
		}))
	})
}

func startModelled(t *testing.T, answer func(llmtest.Request) llmtest.Reply, adjust func(*config.Config)) *modelled {
	t.Helper()
	s := &modelled{model: llmtest.New(t, answer)}
	s.Server = apitest.Start(t, func(c *config.Config) {
		c.EgressAllow, c.AIURL, c.AIModel, c.AIKey = "127.0.0.1", s.model.URL, "test-model", "key-of-the-model-0123456789"
		if adjust != nil {
			adjust(c)
		}
	})
	s.projectID, s.ruleID = s.ground(t, s.Tenant, "https://git.acme.test/acme/web")
	return s
}

// ground creates a project and a rule of a deployment.
func (s *modelled) ground(t testing.TB, of apitest.Tenant, address string) (projectID, ruleID int64) {
	t.Helper()
	about, err := proto.Marshal(&findingsv1.FindingRule{
		Name: "py.sqli", Message: "Query built from input", Confidence: "medium", Category: "security", VulnerabilityClasses: []string{"SQL Injection"},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		p, err := tx.Project.Create().SetDeploymentID(of.DeploymentID).SetName("acme/web").SetNameKey("acme/web").SetURL(address).SetRepositoryURL(address).
			SetDefaultBranch("refs/heads/main").SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		r, err := tx.Rule.Create().SetDeploymentID(of.DeploymentID).SetTool("test").SetName("py.sqli").SetCategory("security").SetConfidence("medium").
			SetContent(about).Save(ctx)
		if err == nil {
			projectID, ruleID = p.ID, r.ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return projectID, ruleID
}

// fact describes a finding to store. Empty fields get the values of an open code finding.
type fact struct {
	print, kind, ref, state, triage string
	content                         *storev1.FindingContent
}

// code is the content of a finding in app/db.py.
func code(snippet string) *storev1.FindingContent {
	return &storev1.FindingContent{
		Message: "Query built from input", Snippet: snippet, Commit: "3f2a9c1",
		Location: &findingsv1.FindingLocation{FilePath: "app/db.py", Line: 2, EndLine: 2, Column: 1, EndColumn: 9},
	}
}

// seed stores a finding.
func (s *modelled) seed(t testing.TB, f fact) int64 {
	t.Helper()
	return s.seedIn(t, s.Tenant, s.projectID, s.ruleID, f)
}

func (s *modelled) seedIn(t testing.TB, of apitest.Tenant, projectID, ruleID int64, f fact) int64 {
	t.Helper()
	if f.content == nil {
		f.content = code("cur.execute(\"SELECT \" + name)")
	}
	encoded, err := blob.Encode(f.content)
	if err != nil {
		t.Fatal(err)
	}
	state, triage := cmp.Or(f.state, lifecycle.Unresolved), cmp.Or(f.triage, lifecycle.Untriaged)
	var id int64
	err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Finding.Create().SetDeploymentID(of.DeploymentID).SetProjectID(projectID).SetRuleID(ruleID).SetFirstSeenScanID(1).
			SetRef(cmp.Or(f.ref, "refs/heads/main")).SetTool("test").SetAnalysisCategory("").SetFingerprint(cmp.Or(f.print, fmt.Sprint(time.Now().UnixNano()))).
			SetIssueType(cmp.Or(f.kind, "sast")).SetSeverity("high").SetState(state).SetTriageState(triage).SetStatus(lifecycle.Status(state, triage)).
			SetCreatedAt(store.Now()).SetRelevantSince(store.Now()).SetStateUpdatedAt(store.Now()).SetContentHash(1).SetContent(encoded).Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *modelled) finding(t testing.TB, id int64) (*ent.Finding, *storev1.FindingContent) {
	t.Helper()
	row := s.Store.Reader.Finding.Query().Where(finding.ID(id)).OnlyX(s.System(t))
	content, err := blob.Decode(row.Content)
	if err != nil {
		t.Fatal(err)
	}
	return row, content
}

// events returns the events of a finding as "kind from>to by".
func (s *modelled) events(t testing.TB, id int64) string {
	t.Helper()
	var list []string
	for _, e := range s.Store.Reader.FindingEvent.Query().Where(findingevent.FindingID(id)).Order(ent.Asc(findingevent.FieldID)).AllX(s.System(t)) {
		list = append(list, fmt.Sprintf("%s %s>%s by %s", e.Kind, e.FromStatus, e.ToStatus, e.ActorKind))
	}
	return strings.Join(list, ", ")
}

// analysis waits for the end of the latest analysis of a finding.
func (s *modelled) analysis(t testing.TB, id int64) *ent.AiAnalysis {
	t.Helper()
	var row *ent.AiAnalysis
	apitest.Eventually(t, "the analysis has ended", func() bool {
		row = s.Store.Reader.AiAnalysis.Query().Where(aianalysis.FindingID(id)).Order(ent.Desc(aianalysis.FieldID)).FirstX(s.System(t))
		return row.Status != "pending"
	})
	return row
}

// call sends a request as the first administrator and requires a status.
func (s *modelled) call(t testing.TB, method, path, body string, want int) string {
	t.Helper()
	return s.Body(t, s.Token, method, path, body, want)
}

// task orders analyses.
func (s *modelled) task(t testing.TB, body string, want int) string {
	t.Helper()
	return s.call(t, http.MethodPost, fmt.Sprintf("/api/ai/%d/combined_task", s.DeploymentID), body, want)
}

// says is a confident answer of a model.
func says(verdict string) map[string]any {
	return map[string]any{
		"verdict": verdict, "reason": "name comes from a constant", "memory_ids": []string{}, "guidance_summary": "Use parameters.",
		"guidance_text": "Pass name as a parameter.", "fix_code": "cur.execute(\"SELECT ?\", [name])", "fix_explanation": "No text is built.",
		"rule_summary": "Finds queries built from input.", "rule_explanation": "Input in a query can change what it does.",
		"component_tag": "user data", "component_risk": "high",
	}
}

// fitting keeps the fields of an answer that the schema of a request contains.
func fitting(r llmtest.Request, answer map[string]any) llmtest.Reply {
	out := map[string]any{}
	properties, _ := r.Schema["properties"].(map[string]any)
	for name := range properties {
		out[name] = answer[name]
	}
	return llmtest.JSON(out).Tokens(1000, 200)
}

func always(verdict string) func(llmtest.Request) llmtest.Reply {
	return func(r llmtest.Request) llmtest.Reply { return fitting(r, says(verdict)) }
}

func decode(t testing.TB, body string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), into); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}
