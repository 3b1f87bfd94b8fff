package issuefilter_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/snapshots"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// now is the present for the tests.
var now = time.Date(2026, 5, 4, 10, 20, 30, 123456000, time.UTC)

// ago is a time before now in microseconds.
func ago(d time.Duration) int64 { return store.Micros(now.Add(-d)) }

// fact is a finding to seed. Empty fields are null, or have the values that a scan sets.
type fact struct {
	label, print, kind, project, rule, ref, path            string
	severity, state, triage, reason, policy                 string
	verdict, tag, risk, exposure, transitivity, pkg, advice string
	epss, fixPR, validation                                 string
	malicious, historical                                   bool
	age, triagedAge, stateAge                               time.Duration
}

func (f fact) status() string {
	return lifecycle.Status(cmp.Or(f.state, lifecycle.Unresolved), cmp.Or(f.triage, lifecycle.Untriaged))
}

// checks are the rules that facts name.
var checks = map[string]*findingsv1.FindingRule{
	"py.sqli":  {Name: "py.sqli", Confidence: "high", Category: "security", Message: "2\rSQL Injection", VulnerabilityClasses: []string{"XPath Injection", "SQL Injection"}},
	"py.style": {Name: "py.style", Confidence: "low", Category: "best-practice", Message: "SQL Injection"},
	"npm.left": {Name: "npm.left", Confidence: "medium", Category: "security"},
	"aws.key":  {Name: "aws.key", Confidence: "high", Category: "security"},
}

// origins are the origins of checks. The scanner of the others did not say it.
var origins = map[string]*string{"py.style": new("custom"), "aws.key": new("community")}

// world has the rows of a deployment by name.
type world struct {
	apitest.Tenant
	server                                    *apitest.Server
	projects, rules, findings, tags, memories map[string]int64
}

// newWorld creates three projects, one of them archived, with tags and teams, and the rules.
func newWorld(t testing.TB, s *apitest.Server, of apitest.Tenant) *world {
	t.Helper()
	w := &world{Tenant: of, server: s, projects: map[string]int64{}, rules: map[string]int64{}, findings: map[string]int64{}, tags: map[string]int64{}, memories: map[string]int64{}}
	w.write(t, func(ctx context.Context, tx *ent.Tx) error {
		for _, name := range []string{"acme/Web", "acme/api", "acme/old"} {
			create := tx.Project.Create().SetDeploymentID(of.DeploymentID).SetName(name).SetNameKey(strings.ToLower(name)).
				SetDefaultBranch("refs/heads/main").SetCreatedAt(1)
			switch name {
			case "acme/Web":
				create.SetVisibility("private")
			case "acme/api":
				create.SetVisibility("public").SetPrimaryBranch("refs/heads/release")
			case "acme/old":
				create.SetArchivedAt(1)
			}
			p, err := create.Save(ctx)
			if err != nil {
				return err
			}
			w.projects[name] = p.ID
		}
		for _, name := range []string{"aws.key", "npm.left", "py.sqli", "py.style"} {
			encoded, err := proto.Marshal(checks[name])
			if err != nil {
				return err
			}
			r, err := tx.Rule.Create().SetDeploymentID(of.DeploymentID).SetTool("test").SetName(name).SetCategory(checks[name].GetCategory()).
				SetConfidence(checks[name].GetConfidence()).SetContent(encoded).SetNillableOrigin(origins[name]).Save(ctx)
			if err != nil {
				return err
			}
			w.rules[name] = r.ID
		}
		return w.organize(ctx, tx)
	})
	return w
}

// organize tags acme/Web as pci, and gives acme/api to the team Edge below Platform below Engineering.
func (w *world) organize(ctx context.Context, tx *ent.Tx) error {
	label, err := tx.Tag.Create().SetDeploymentID(w.DeploymentID).SetName("pci").SetCreatedAt(1).Save(ctx)
	if err != nil {
		return err
	}
	w.tags["pci"] = label.ID
	if err := tx.ProjectTag.Create().SetDeploymentID(w.DeploymentID).SetProjectID(w.projects["acme/Web"]).SetTagID(label.ID).Exec(ctx); err != nil {
		return err
	}
	var above *int64
	for _, name := range []string{"Engineering", "Platform", "Edge"} {
		team, err := tx.Team.Create().SetDeploymentID(w.DeploymentID).SetName(name).SetSlug(strings.ToLower(name)).SetNillableParentID(above).
			SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
		if err != nil {
			return err
		}
		above = &team.ID
	}
	return tx.TeamProject.Create().SetDeploymentID(w.DeploymentID).SetTeamID(*above).SetProjectID(w.projects["acme/api"]).SetCreatedAt(1).Exec(ctx)
}

// write changes the database as the server itself.
func (w *world) write(t testing.TB, change func(ctx context.Context, tx *ent.Tx) error) {
	t.Helper()
	if err := w.server.Store.Write(w.server.System(t), change); err != nil {
		t.Fatal(err)
	}
}

// seed stores findings in the given order.
func (w *world) seed(t testing.TB, facts ...fact) {
	t.Helper()
	w.write(t, func(ctx context.Context, tx *ent.Tx) error {
		rows := make([]*ent.FindingCreate, len(facts))
		for i, f := range facts {
			rows[i] = w.row(t, tx, f)
		}
		saved, err := tx.Finding.CreateBulk(rows...).Save(ctx)
		for i, row := range saved {
			w.findings[facts[i].label] = row.ID
		}
		return err
	})
}

func (w *world) row(t testing.TB, tx *ent.Tx, f fact) *ent.FindingCreate {
	t.Helper()
	content := &storev1.FindingContent{Message: f.label}
	if f.tag != "" {
		content.Assistant = &findingsv1.Assistant{Component: &findingsv1.AssistantComponent{Risk: f.risk, Tag: f.tag}}
	}
	encoded, err := blob.Encode(content)
	if err != nil {
		t.Fatal(err)
	}
	set := func(value string) *string {
		if value == "" {
			return nil
		}
		return &value
	}
	row := tx.Finding.Create().SetDeploymentID(w.DeploymentID).SetProjectID(w.projects[cmp.Or(f.project, "acme/Web")]).
		SetRuleID(w.rules[cmp.Or(f.rule, "py.sqli")]).SetFirstSeenScanID(1).SetRef(cmp.Or(f.ref, "refs/heads/main")).SetTool("test").
		SetAnalysisCategory("").SetFingerprint(cmp.Or(f.print, f.label)).SetIssueType(cmp.Or(f.kind, "sast")).
		SetSeverity(cmp.Or(f.severity, "high")).SetState(cmp.Or(f.state, lifecycle.Unresolved)).
		SetTriageState(cmp.Or(f.triage, lifecycle.Untriaged)).SetStatus(f.status()).SetCreatedAt(1).SetRelevantSince(ago(f.age)).
		SetStateUpdatedAt(ago(f.stateAge)).SetContentHash(1).SetContent(encoded).
		SetNillableTriageReason(set(f.reason)).SetNillablePolicyMode(set(f.policy)).SetNillableAutotriageVerdict(set(f.verdict)).
		SetNillableComponentTag(set(f.tag)).SetNillableExposure(set(f.exposure)).SetNillableTransitivity(set(f.transitivity)).
		SetNillablePackage(set(f.pkg)).SetNillableAdvisory(set(f.advice)).SetNillableFilePath(set(f.path)).
		SetNillableEpssProbability(set(f.epss)).SetNillableClickToFixState(set(f.fixPR)).SetNillableValidationState(set(f.validation))
	if f.malicious {
		row.SetMalicious(true)
	}
	if f.historical {
		row.SetHistorical(true)
	}
	if f.triagedAge != 0 {
		row.SetTriagedAt(ago(f.triagedAge))
	}
	return row
}

// chosen returns the labels of the findings that a filter selects, in the order of seeding.
func (w *world) chosen(t testing.TB, f *findingsv1.IssuesFilter) string {
	t.Helper()
	return w.chosenIn(t, tenant.NewContext(t.Context(), w.DeploymentID), f)
}

func (w *world) chosenIn(t testing.TB, ctx context.Context, f *findingsv1.IssuesFilter) string {
	t.Helper()
	conditions, err := issuefilter.Compile(ctx, f, now)
	if err != nil {
		t.Fatalf("%v: %v", f, err)
	}
	ids, err := w.server.Store.Reader.Finding.Query().Where(conditions.Where()...).Order(ent.Asc(finding.FieldID)).IDs(ctx)
	if err != nil {
		t.Fatalf("%v: %v", f, err)
	}
	if fromColumns := w.chosenInColumns(t, ctx, conditions); !slices.Equal(fromColumns, ids) {
		t.Errorf("%v: SQL chooses %v, columns %v", f, ids, fromColumns)
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		for label, known := range w.findings {
			if id == known {
				names[i] = label
			}
		}
	}
	return strings.Join(names, " ")
}

// chosenInColumns returns the ids that conditions select in the columns of the deployment.
func (w *world) chosenInColumns(t testing.TB, ctx context.Context, conditions *issuefilter.Conditions) (ids []int64) {
	t.Helper()
	of, err := snapshots.NewSnapshots(w.server.Store, 1).Of(ctx, w.DeploymentID)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := conditions.Choose(ctx, w.server.Store.Reader, of)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range of.First(&chosen.Filter, &columns.Order{}, 1000) {
		ids = append(ids, key.ID)
	}
	if len(chosen.Checks) > 0 {
		kept, err := chosen.Check(ctx, w.server.Store.Reader, ids)
		if err == nil {
			err = chosen.CheckAll(ctx, w.server.Store.Reader)
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = slices.DeleteFunc(ids, func(id int64) bool { return !kept[id] })
		if all := of.First(&chosen.Filter, &columns.Order{}, 1000); len(all) != len(ids) {
			t.Errorf("%d findings satisfy all checks, and %d in parts", len(all), len(ids))
		}
	}
	slices.Sort(ids)
	return ids
}

func (w *world) ids(labels string) (list []int64) {
	for label := range strings.FieldsSeq(labels) {
		list = append(list, w.findings[label])
	}
	return list
}
