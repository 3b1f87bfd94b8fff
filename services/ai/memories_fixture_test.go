package ai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// remembering is a server with two projects, two rules and a tag.
type remembering struct {
	*apitest.Server
	projects, rules map[string]int64
	tagID           int64
}

func eachRemembering(t *testing.T, test func(t *testing.T, s *remembering)) {
	t.Helper()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := &remembering{Server: server, projects: map[string]int64{}, rules: map[string]int64{}}
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			for _, name := range []string{"acme/web", "acme/api"} {
				p, err := tx.Project.Create().SetDeploymentID(s.DeploymentID).SetName(name).SetNameKey(name).SetCreatedAt(1).Save(ctx)
				if err != nil {
					return err
				}
				s.projects[name] = p.ID
			}
			for _, name := range []string{"py.sqli", "js.xss"} {
				about, err := proto.Marshal(&findingsv1.FindingRule{Name: name, Confidence: "high", Category: "security"})
				if err != nil {
					return err
				}
				r, err := tx.Rule.Create().SetDeploymentID(s.DeploymentID).SetTool("test").SetName(name).SetCategory("security").
					SetConfidence("high").SetContent(about).Save(ctx)
				if err != nil {
					return err
				}
				s.rules[name] = r.ID
			}
			label, err := tx.Tag.Create().SetDeploymentID(s.DeploymentID).SetName("pci").SetCreatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			s.tagID = label.ID
			return tx.ProjectTag.Create().SetDeploymentID(s.DeploymentID).SetProjectID(s.projects["acme/web"]).SetTagID(label.ID).Exec(ctx)
		})
		test(t, s)
	})
}

func (s *remembering) write(t testing.TB, change func(ctx context.Context, tx *ent.Tx) error) {
	t.Helper()
	if err := s.Store.Write(s.System(t), change); err != nil {
		t.Fatal(err)
	}
}

// finding stores an open finding; change adjusts it first.
func (s *remembering) finding(t testing.TB, project, rule, print string, change func(*ent.FindingCreate)) (id int64) {
	t.Helper()
	s.write(t, func(ctx context.Context, tx *ent.Tx) error {
		create := tx.Finding.Create().SetDeploymentID(s.DeploymentID).SetProjectID(s.projects[project]).SetRuleID(s.rules[rule]).SetFirstSeenScanID(1).
			SetRef("refs/heads/main").SetTool("test").SetAnalysisCategory("").SetFingerprint(print).SetIssueType("sast").SetSeverity("high").
			SetState(lifecycle.Unresolved).SetStatus(lifecycle.Open).SetCreatedAt(1).SetRelevantSince(store.Now()).SetStateUpdatedAt(1).
			SetContentHash(1).SetContent([]byte{})
		if change != nil {
			change(create)
		}
		row, err := create.Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	return id
}

// ignored makes a finding ignored as a false positive.
func ignored(note, ref string, at int64) func(*ent.FindingCreate) {
	return func(f *ent.FindingCreate) {
		f.SetTriageState(lifecycle.Ignored).SetStatus(lifecycle.Ignored).SetTriageReason("false_positive").SetTriageComment(note).SetTriagedAt(at).SetRef(ref)
	}
}

// as calls an operation of the deployment and requires a status.
func (s *remembering) as(t testing.TB, token, method, path, body string, want int) string {
	t.Helper()
	return s.Body(t, token, method, fmt.Sprintf("/api/ai/deployments/%d/%s", s.DeploymentID, path), body, want)
}

func (s *remembering) do(t testing.TB, method, path, body string, want int) string {
	t.Helper()
	return s.as(t, s.Token, method, path, body, want)
}

// create creates a memory with the given fields, and returns its id.
func (s *remembering) create(t testing.TB, fields string) string {
	t.Helper()
	return memoryIDs(t, s.do(t, http.MethodPost, "memories", `{"memory":{"content":"known to be safe"`+fields+`}}`, 200))[0]
}

// memoryIDs reads the ids of the memories in an answer.
func memoryIDs(t testing.TB, body string) []string {
	t.Helper()
	var answer struct {
		Memory   struct{ ID string }
		Memories []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	ids := []string{}
	if answer.Memory.ID != "" {
		ids = append(ids, answer.Memory.ID)
	}
	for _, m := range answer.Memories {
		ids = append(ids, m.ID)
	}
	return ids
}

var anyCreation = regexp.MustCompile(`"createdAt":"[^"]+"`)

// memoryGolden compares an answer without the creation times of memories.
func memoryGolden(t testing.TB, name, body string) {
	t.Helper()
	apitest.Golden(t, name, anyCreation.ReplaceAllString(body, `"createdAt":"2026-05-04T10:20:30.123456Z"`))
}

// member returns the token of a member with a team that has only the project acme/web.
func (s *remembering) member(t testing.TB) string {
	t.Helper()
	return memberOf(t, s.Server, s.projects["acme/web"])
}

// memberOf returns the token of a member with a team that has only one project.
func memberOf(t testing.TB, s *apitest.Server, projectID int64) string {
	t.Helper()
	token := s.AddUser(t, s.Tenant, "mia@acme.test", access.RoleMember)
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		mia, err := tx.User.Query().Order(ent.Desc("id")).FirstID(ctx)
		if err != nil {
			return err
		}
		team, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
		if err != nil {
			return err
		}
		if err := tx.TeamMember.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetUserID(mia).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx); err != nil {
			return err
		}
		return tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetProjectID(projectID).SetCreatedAt(1).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}
