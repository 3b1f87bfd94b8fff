package findings_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
)

// base is 2026-05-04T10:20:30.123456Z in microseconds: the default relevant_since of the first seeded finding.
const base = int64(1_777_890_030_123_456)

// mainRef is the default ref of findings.
const mainRef = "refs/heads/main"

// fact is a finding to seed. An empty field is NULL or has the value that a scan would set.
type fact struct {
	label string // shown as rule_message
	print string // fingerprint; default: the label
	kind  string // issue type; default: sast

	project, rule, ref, category                  string
	severity, state, triage, reason, note, policy string
	verdict, tag, exposure, transitivity, pkg     string
	epss, fixPR, validation                       string
	malicious, historical                         bool
	evident                                       bool // the evidence of content is stored

	at        int64 // relevant_since in microseconds after base; by default, facts are a second apart, the first is the newest
	createdAt int64 // in microseconds after base
	updatedAt int64 // state_updated_at, the same
	triagedAt int64 // triaged_at, the same; 0 is NULL
	content   *storev1.FindingContent
}

// rules are the rules of facts, by name.
var rules = map[string]*findingsv1.FindingRule{
	"py.sqli":   {Name: "py.sqli", Message: "SQL from input", Confidence: "high", Category: "security"},
	"py.style":  {Name: "py.style", Message: "Style", Confidence: "low", Category: "best-practice"},
	"js.xss":    {Name: "js.xss", Message: "XSS", Confidence: "medium", Category: "security"},
	"npm.left":  {Name: "npm.left", Message: "Outdated", Confidence: "high", Category: "security"},
	"aws.key":   {Name: "aws.key", Message: "AWS key", Confidence: "high", Category: "security"},
	"slack.url": {Name: "slack.url", Message: "Slack hook", Confidence: "medium", Category: "security"},
	"bare":      {},
	"full": {
		Name: "full", Message: "Queries must not be built from input", Confidence: "medium", Category: "security", Subcategories: []string{"vuln"},
		VulnerabilityClasses: []string{"SQL Injection"}, CweNames: []string{"CWE-89: SQL Injection"}, OwaspNames: []string{"A03:2021 - Injection"},
	},
}

// fixture holds the ids of a deployment's seeded projects, rules and findings, by name.
type fixture struct {
	apitest.Tenant
	projects, rules, findings map[string]int64
}

// seedFixture creates projects, the rules, and extra rules. The functions adjust the projects before they are saved.
func seedFixture(t testing.TB, s *apitest.Server, of apitest.Tenant, projects map[string]func(*ent.ProjectCreate), extra ...*findingsv1.FindingRule) *fixture {
	t.Helper()
	l := &fixture{Tenant: of, projects: map[string]int64{}, rules: map[string]int64{}, findings: map[string]int64{}}
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for _, name := range slices.Sorted(maps.Keys(projects)) {
			create := tx.Project.Create().SetDeploymentID(of.DeploymentID).SetName(name).SetNameKey(strings.ToLower(name)).
				SetURL("https://git.acme.test/" + name).SetDefaultBranch(mainRef).SetCreatedAt(base)
			if adjust := projects[name]; adjust != nil {
				adjust(create)
			}
			p, err := create.Save(ctx)
			if err != nil {
				return err
			}
			l.projects[name] = p.ID
		}
		for _, name := range slices.Sorted(maps.Keys(rules)) {
			if err := l.addRule(ctx, tx, name, rules[name]); err != nil {
				return err
			}
		}
		for _, r := range extra {
			if err := l.addRule(ctx, tx, r.GetName(), r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *fixture) addRule(ctx context.Context, tx *ent.Tx, name string, about *findingsv1.FindingRule) error {
	content, err := proto.Marshal(about)
	if err != nil {
		return err
	}
	r, err := tx.Rule.Create().SetDeploymentID(l.DeploymentID).SetTool("test").SetName(name).SetCategory(about.GetCategory()).
		SetConfidence(about.GetConfidence()).SetContent(content).Save(ctx)
	if err != nil {
		return err
	}
	l.rules[name] = r.ID
	return nil
}

// seed stores findings in the given order.
func (l *fixture) seed(t testing.TB, s *apitest.Server, facts ...fact) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for len(facts) > 0 {
			part := facts[:min(len(facts), 500)]
			facts = facts[len(part):]
			rows := make([]*ent.FindingCreate, len(part))
			for i, f := range part {
				if f.at == 0 {
					f.at = -int64(i) * int64(time.Second/time.Microsecond)
				}
				rows[i] = l.row(t, tx.Finding.Create(), f)
			}
			saved, err := tx.Finding.CreateBulk(rows...).Save(ctx)
			if err != nil {
				return err
			}
			for i, row := range saved {
				l.findings[part[i].label] = row.ID
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (l *fixture) row(t testing.TB, row *ent.FindingCreate, f fact) *ent.FindingCreate {
	t.Helper()
	content := f.content
	if content == nil {
		content = &storev1.FindingContent{Message: f.label}
	}
	encoded, err := blob.Encode(content)
	if err != nil {
		t.Fatal(err)
	}
	project, known := l.projects[cmp.Or(f.project, "acme/web")]
	rule, ruled := l.rules[cmp.Or(f.rule, "py.sqli")]
	if !known || !ruled {
		t.Fatalf("fact %s: no project %q or no rule %q", f.label, f.project, f.rule)
	}
	state, triage := cmp.Or(f.state, lifecycle.Unresolved), cmp.Or(f.triage, lifecycle.Untriaged)
	row.SetDeploymentID(l.DeploymentID).SetProjectID(project).SetRuleID(rule).SetFirstSeenScanID(411).
		SetRef(cmp.Or(f.ref, mainRef)).SetTool("test").SetAnalysisCategory(f.category).SetFingerprint(cmp.Or(f.print, f.label)).
		SetIssueType(cmp.Or(f.kind, "sast")).SetSeverity(cmp.Or(f.severity, "high")).
		SetState(state).SetTriageState(triage).SetStatus(lifecycle.Status(state, triage)).
		SetCreatedAt(base + f.createdAt).SetRelevantSince(base + f.at).SetStateUpdatedAt(base + f.updatedAt).
		SetContentHash(1).SetContent(encoded)
	optional(f.reason, row.SetTriageReason)
	optional(f.note, row.SetTriageComment)
	optional(f.policy, row.SetPolicyMode)
	optional(f.verdict, row.SetAutotriageVerdict)
	optional(f.tag, row.SetComponentTag)
	optional(f.exposure, row.SetExposure)
	optional(f.transitivity, row.SetTransitivity)
	optional(f.pkg, row.SetPackage)
	optional(f.epss, row.SetEpssProbability)
	optional(f.fixPR, row.SetClickToFixState)
	optional(f.validation, row.SetValidationState)
	if f.malicious {
		row.SetMalicious(true)
	}
	if f.historical {
		row.SetHistorical(true)
	}
	if f.evident {
		e := evidenceOf(f.content)
		row.SetEvidence(e.Encode()).SetMatchKey(e.Key()).SetFilePath(f.content.GetLocation().GetFilePath())
	}
	if f.triagedAt != 0 {
		row.SetTriagedAt(base + f.triagedAt)
	}
	return row
}

func optional(value string, set func(string) *ent.FindingCreate) {
	if value != "" {
		set(value)
	}
}

// ids returns the ids of findings by their labels.
func (l *fixture) ids(t testing.TB, labels string) []int64 {
	t.Helper()
	list := []int64{}
	for label := range strings.FieldsSeq(labels) {
		id, ok := l.findings[label]
		if !ok {
			t.Fatalf("no finding %q was seeded", label)
		}
		list = append(list, id)
	}
	return list
}

// listed holds the fields of a page of findings that tests read.
type listed struct {
	Findings []struct {
		ID            int64   `json:"id"`
		Label         string  `json:"rule_message"`
		Ref           string  `json:"ref"`
		State         string  `json:"state"`
		Status        string  `json:"status"`
		TriageState   string  `json:"triage_state"`
		TriageReason  *string `json:"triage_reason"`
		TriageComment *string `json:"triage_comment"`
		TriagedAt     *string `json:"triaged_at"`
	} `json:"findings"`
}

// list reads a page of findings of the first deployment.
func list(t testing.TB, s *apitest.Server, query string) listed {
	t.Helper()
	var page listed
	body := s.Get(t, "/api/v1/deployments/"+s.Slug+"/findings?"+query)
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return page
}

// labels reads a page of findings and returns their labels in order, joined by blanks.
func labels(t testing.TB, s *apitest.Server, query string) string {
	t.Helper()
	page := list(t, s, query)
	names := make([]string, len(page.Findings))
	for i, f := range page.Findings {
		names[i] = f.Label
	}
	return strings.Join(names, " ")
}

var requestID = regexp.MustCompile(`"requestId":"[^"]*"`)

// failure sends a request that must be refused, and returns the body without the id of the request.
func failure(t testing.TB, s *apitest.Server, status int, method, path, body string) string {
	t.Helper()
	answer := s.Do(t, s.Token, method, path, body)
	if answer.Status != status {
		t.Errorf("%s %s %s: %d %s, want %d", method, path, body, answer.Status, answer.Body, status)
	}
	if status < http.StatusBadRequest {
		t.Fatalf("%d is no failure", status)
	}
	return requestID.ReplaceAllString(answer.Body, `"requestId":""`)
}
