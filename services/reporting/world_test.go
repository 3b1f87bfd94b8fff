package reporting_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/user"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// monday is the Monday at midnight from which tests count days.
var monday = time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) int64 { return store.Micros(monday.Add(d)) }

const (
	day  = 24 * time.Hour
	main = "refs/heads/main"
	dev  = "refs/heads/dev"
	pull = "refs/pull/7/merge"
)

// change is one event of a history.
type change struct {
	at int64
	to string
}

// history parses changes such as "0d open, 36h fixed".
func history(t testing.TB, text string) []change {
	t.Helper()
	var list []change
	for part := range strings.SplitSeq(text, ",") {
		var when, to string
		if _, err := fmt.Sscan(part, &when, &to); err != nil {
			t.Fatalf("history %q: %v", text, err)
		}
		var n float64
		var unit string
		if _, err := fmt.Sscanf(when, "%g%s", &n, &unit); err != nil {
			t.Fatalf("history %q: %v", text, err)
		}
		length := map[string]time.Duration{"d": day, "h": time.Hour, "m": time.Minute, "s": time.Second}[unit]
		list = append(list, change{after(time.Duration(n * float64(length))), to})
	}
	return list
}

// fact is a finding to store with its history.
type fact struct {
	project, ref, rule, kind, severity    string
	exposure, validation, verdict, policy string
	changes                               []change
	id                                    int64 // id of a stored finding to which the changes are added
}

// world is a deployment with projects, rules, tags and teams by name.
type world struct {
	apitest.Tenant
	t        testing.TB
	server   *apitest.Server
	projects map[string]int64
	rules    map[string]int64 // by tool/name
	tags     map[string]int64
	teams    map[string]int64
	n        int
}

func newWorld(t testing.TB, s *apitest.Server, of apitest.Tenant) *world {
	t.Helper()
	w := &world{
		Tenant: of, t: t, server: s, projects: map[string]int64{}, rules: map[string]int64{}, tags: map[string]int64{}, teams: map[string]int64{},
	}
	w.write(func(ctx context.Context, tx *ent.Tx) error {
		for _, r := range []struct{ tool, name, category, confidence string }{
			{"gosec", "sqli", "security", "high"}, {"eslint", "sqli", "security", "low"}, {"eslint", "style", "best-practice", "medium"},
			{"trivy", "old-lib", "security", "high"}, {"gitleaks", "aws-key", "security", "medium"},
		} {
			content, err := proto.Marshal(&findingsv1.FindingRule{Name: r.name, Category: r.category, Confidence: r.confidence})
			if err != nil {
				return err
			}
			row, err := tx.Rule.Create().SetDeploymentID(of.DeploymentID).SetTool(r.tool).SetName(r.name).SetCategory(r.category).
				SetConfidence(r.confidence).SetContent(content).Save(ctx)
			if err != nil {
				return err
			}
			w.rules[r.tool+"/"+r.name] = row.ID
		}
		return nil
	})
	return w
}

func (w *world) write(fn func(ctx context.Context, tx *ent.Tx) error) {
	w.t.Helper()
	if err := w.server.Store.Write(w.server.System(w.t), fn); err != nil {
		w.t.Fatal(err)
	}
}

// project creates a project with a default branch ("" for none).
func (w *world) project(name, branch string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *ent.Tx) error {
		p, err := tx.Project.Create().SetDeploymentID(w.DeploymentID).SetName(name).SetNameKey(strings.ToLower(name)).
			SetDefaultBranch(branch).SetCreatedAt(after(0)).Save(ctx)
		if err == nil {
			w.projects[name] = p.ID
		}
		return err
	})
}

// tag adds a tag to a project.
func (w *world) tag(name, project string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *ent.Tx) error {
		if w.tags[name] == 0 {
			row, err := tx.Tag.Create().SetDeploymentID(w.DeploymentID).SetName(name).SetCreatedAt(after(0)).Save(ctx)
			if err != nil {
				return err
			}
			w.tags[name] = row.ID
		}
		return tx.ProjectTag.Create().SetDeploymentID(w.DeploymentID).SetProjectID(w.projects[project]).SetTagID(w.tags[name]).Exec(ctx)
	})
}

// team creates a team with projects below another ("" for none).
func (w *world) team(name, parent string, projects ...string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *ent.Tx) error {
		create := tx.Team.Create().SetDeploymentID(w.DeploymentID).SetName(name).SetSlug(name).SetCreatedAt(after(0)).SetUpdatedAt(after(0))
		if parent != "" {
			create.SetParentID(w.teams[parent])
		}
		row, err := create.Save(ctx)
		if err != nil {
			return err
		}
		w.teams[name] = row.ID
		for _, project := range projects {
			err := tx.TeamProject.Create().SetDeploymentID(w.DeploymentID).SetTeamID(row.ID).SetProjectID(w.projects[project]).SetCreatedAt(after(0)).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// member adds a user to a team.
func (w *world) member(email, team string) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *ent.Tx) error {
		id, err := tx.User.Query().Where(user.Email(email)).OnlyID(ctx)
		if err != nil {
			return err
		}
		return tx.TeamMember.Create().SetDeploymentID(w.DeploymentID).SetTeamID(w.teams[team]).SetUserID(id).SetRole("TEAM_ROLE_MEMBER").
			SetCreatedAt(after(0)).Exec(ctx)
	})
}

// decode parses JSON as the gateway does.
func decode(text string, into proto.Message) error { return protojson.Unmarshal([]byte(text), into) }

// add stores findings in one transaction, as scans and triage do: the final row, and an event for each change.
func (w *world) add(facts ...*fact) {
	w.t.Helper()
	w.write(func(ctx context.Context, tx *ent.Tx) error {
		for _, f := range facts {
			if err := w.store(ctx, tx, f); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) store(ctx context.Context, tx *ent.Tx, f *fact) error {
	from := ""
	if f.id == 0 {
		if err := w.create(ctx, tx, f); err != nil {
			return err
		}
	} else {
		old, err := tx.Finding.Get(ctx, f.id)
		if err != nil {
			return err
		}
		from = old.Status
		update := old.Update().SetSeverity(f.severity)
		if len(f.changes) > 0 {
			update.SetStatus(f.changes[len(f.changes)-1].to)
		}
		if f.verdict != "" {
			update.SetAutotriageVerdict(f.verdict)
		}
		if err := update.Exec(ctx); err != nil {
			return err
		}
	}
	for _, c := range f.changes {
		err := tx.FindingEvent.Create().SetDeploymentID(w.DeploymentID).SetFindingID(f.id).SetKind("updated").SetFromStatus(from).
			SetToStatus(c.to).SetActorKind("scan").SetActorID(1).SetAt(c.at).Exec(ctx)
		if err != nil {
			return err
		}
		from = c.to
	}
	return nil
}

func (w *world) create(ctx context.Context, tx *ent.Tx, f *fact) error {
	w.n++
	state, triaged := lifecycle.Unresolved, lifecycle.Untriaged
	switch last := f.changes[len(f.changes)-1].to; last {
	case lifecycle.Fixed, lifecycle.Removed:
		state = last
	case lifecycle.Open:
	default:
		triaged = last
	}
	content, err := blob.Encode(&storev1.FindingContent{
		Message: "Query built from input", Location: &findingsv1.FindingLocation{FilePath: "db/query.go", Line: 12, EndLine: 12},
	})
	if err != nil {
		return err
	}
	create := tx.Finding.Create().SetDeploymentID(w.DeploymentID).SetProjectID(w.projects[f.project]).SetRuleID(w.rules[f.rule]).
		SetFirstSeenScanID(411).SetRef(f.ref).SetTool(f.rule[:strings.Index(f.rule, "/")]).SetAnalysisCategory("").
		SetFingerprint(fmt.Sprintf("print-%d", w.n)).SetIssueType(f.kind).SetSeverity(f.severity).SetState(state).SetTriageState(triaged).
		SetStatus(f.changes[len(f.changes)-1].to).SetCreatedAt(f.changes[0].at).SetRelevantSince(f.changes[0].at).
		SetStateUpdatedAt(f.changes[0].at).SetContentHash(1).SetContent(content)
	for value, set := range map[string]func(string) *ent.FindingCreate{
		"exposure:" + f.exposure: create.SetExposure, "validation:" + f.validation: create.SetValidationState,
		"verdict:" + f.verdict: create.SetAutotriageVerdict, "policy:" + f.policy: create.SetPolicyMode,
	} {
		if _, word, _ := strings.Cut(value, ":"); word != "" {
			set(word)
		}
	}
	row, err := create.Save(ctx)
	if err != nil {
		return err
	}
	f.id = row.ID
	return nil
}

// names returns the sorted keys of a map.
func names(of map[string]int64) []string {
	var list []string
	for name := range of {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
