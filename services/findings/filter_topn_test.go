package findings_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// A caller limited to teams sees the same findings of the teams' projects, in the same order, as a caller without
// limits.
func TestListsOfTeams(t *testing.T) {
	t.Parallel()
	const projects, of = 80, 60
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		all := map[string]func(*ent.ProjectCreate){}
		for i := range projects {
			all[fmt.Sprintf("acme/p%02d", i)] = nil
		}
		l := seedFixture(t, s, s.Tenant, all)
		l.seed(t, s, many(4000, func(i int, f *fact) {
			p := (i * 7919) % projects
			f.project, f.print = fmt.Sprintf("acme/p%02d", p), fmt.Sprint(i/3)
			f.ref = []string{"refs/heads/main", "refs/heads/dev"}[i%2]
			f.severity = []string{"low", "high", "critical"}[i%3]
			f.triage = []string{"untriaged", "reviewing"}[(i/5)%2]
			if p < of { // findings of other teams are newer
				f.at -= 10_000
			}
		})...)
		token := s.AddUser(t, s.Tenant, "mia@acme.test", access.RoleMember)
		var names []string
		err := s.Store.Write(tenant.NewContext(t.Context(), l.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			team, err := tx.Team.Create().SetName("Web").SetSlug("web").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			mia := tx.User.Query().Where(user.Email("mia@acme.test")).OnlyIDX(tenant.System(ctx))
			if err := tx.TeamMember.Create().SetTeamID(team.ID).SetUserID(mia).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx); err != nil {
				return err
			}
			for i := range of {
				names = append(names, fmt.Sprintf("acme/p%02d", i))
				if err := tx.TeamProject.Create().SetTeamID(team.ID).SetProjectID(l.projects[names[i]]).SetCreatedAt(1).Exec(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s.RefreshStatistics(t)
		walk := func(token string, r *findingsv1.ListFindingsRequest) (labels []string) {
			for r = proto.CloneOf(r); ; r.Page++ {
				r.DeploymentSlug = "acme"
				answer, err := findingsv1.NewFindingsServiceClient(s.Conn).ListFindings(s.Context(t, token), r)
				if err != nil {
					t.Fatalf("%v: %v", r, err)
				}
				if len(answer.GetFindings()) == 0 {
					return labels
				}
				for _, f := range answer.GetFindings() {
					labels = append(labels, f.GetRuleMessage())
				}
			}
		}
		for _, r := range []*findingsv1.ListFindingsRequest{
			{},
			{PageSize: proto.Int64(1000)},
			{Page: 5},
			{Dedup: true},
			{Status: []string{"open"}},
			{Status: []string{"open", "reviewing"}, Severities: []string{"high"}},
			{Severities: []string{"high", "critical"}},
			{Ref: []string{"dev"}},
			{Ref: []string{"_default"}, Dedup: true},
			{IssueType: []string{"sast", "sca"}},
			{IssueType: []string{"sast", "sca"}, Page: 3},
			{Rules: []string{"py.sqli"}},
			{Policies: []string{"rule-board-audit"}},
			{Repos: []string{"acme/p01", "acme/p02", "acme/p79"}},
			{RepositoryIds: []int64{l.projects["acme/p01"], l.projects["acme/p79"]}},
		} {
			same := proto.CloneOf(r)
			if len(r.GetRepos()) == 0 && len(r.GetRepositoryIds()) == 0 {
				same.Repos = names
			} else {
				same.Repos, same.RepositoryIds = slices.DeleteFunc(slices.Clone(r.GetRepos()), func(n string) bool { return n == "acme/p79" }), r.GetRepositoryIds()
				same.RepositoryIds = slices.DeleteFunc(slices.Clone(same.GetRepositoryIds()), func(id int64) bool { return id == l.projects["acme/p79"] })
			}
			got, want := walk(token, r), walk(s.Token, same)
			if len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("%v: %d findings, want %d; first difference at %d", r, len(got), len(want), differsAt(got, want))
			}
		}
		if others := walk(token, &findingsv1.ListFindingsRequest{Repos: []string{"acme/p79"}}); len(others) > 0 {
			t.Errorf("findings of a project of another team: %v", others)
		}
	})
}
