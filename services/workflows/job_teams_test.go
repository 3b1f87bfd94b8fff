package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/user"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/access"
)

// addProject creates a project with one scan and returns its id.
func (f flow) addProject(t testing.TB, name string) int64 {
	t.Helper()
	f.Upload(t, name, "refs/heads/main", []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[]}]}`))
	return f.Store.Reader.Project.Query().Where(project.Name(name)).OnlyIDX(f.System(t))
}

// addTeamMember creates a member of the deployment's only team, with the given projects.
func (f flow) addTeamMember(t testing.TB, projects ...int64) (token string) {
	t.Helper()
	token = f.AddUser(t, f.Tenant, "ann@acme.test", access.RoleMember)
	userID := f.Store.Reader.User.Query().Where(user.Email("ann@acme.test")).OnlyIDX(f.System(t))
	runFixture(f).write(t, f.DeploymentID, func(ctx context.Context, tx *ent.Tx) error {
		team, err := tx.Team.Create().SetName("API").SetSlug("api").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
		if err != nil {
			return err
		}
		for _, id := range projects {
			if err := tx.TeamProject.Create().SetTeamID(team.ID).SetProjectID(id).SetCreatedAt(1).Exec(ctx); err != nil {
				return err
			}
		}
		return tx.TeamMember.Create().SetTeamID(team.ID).SetUserID(userID).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx)
	})
	return token
}

// For a team member, a run about another team's project or about no single project does not exist, in any request.
func TestRunsOfTeams(t *testing.T) {
	onEachServer(t, func(t *testing.T, f flow) {
		web, api := f.addProject(t, "acme/web"), f.addProject(t, "acme/api")
		ann := f.addTeamMember(t, api)
		f.publish(t, waiting)
		f.publish(t, strings.NewReplacer("waiting", "everywhere", "repository", "deployment").Replace(waiting))
		hidden := []string{f.trigger(t, fmt.Sprintf(`{"workflowType":"waiting","repoId":"%d"}`, web)), f.trigger(t, `{"workflowType":"everywhere"}`)}
		for range 25 { // more than one claim considers
			f.trigger(t, fmt.Sprintf(`{"workflowType":"waiting","repoId":"%d"}`, web))
		}
		own := f.trigger(t, fmt.Sprintf(`{"workflowType":"waiting","repoId":"%d"}`, api))

		var list struct{ Jobs []summaryOf }
		if err := json.Unmarshal([]byte(f.Do(t, ann, http.MethodGet, f.path("/jobs"), "").Body), &list); err != nil || len(list.Jobs) != 1 || list.Jobs[0].JobID != own {
			t.Errorf("list: %v %+v", err, list)
		}
		for _, path := range []string{"/overview", "/graph"} {
			if answer := f.Do(t, ann, http.MethodGet, f.path("/jobs/id/"+own+path), ""); answer.Status != http.StatusOK {
				t.Errorf("%s of an own run: %d %s", path, answer.Status, answer.Body)
			}
		}
		for _, job := range hidden {
			f.checkHidden(t, ann, job)
		}
		f.checkHiddenTasks(t, ann, own)
	})
}

// checkHidden requires that a caller gets the same answers for a run as for a missing run.
func (f flow) checkHidden(t *testing.T, token, job string) {
	t.Helper()
	for _, call := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/overview", 404}, {http.MethodGet, "/graph", 404}, {http.MethodGet, "/graph?limit=1&stepId=end", 404},
		{http.MethodPost, "/cancel", 403}, {http.MethodPost, "/retry", 403}, // for administrators only, for any run
	} {
		body := ""
		if call.method == http.MethodPost {
			body = "{}"
		}
		path := f.path("/jobs/id/" + job + call.path)
		got := f.Body(t, token, call.method, path, body, call.want)
		unknown := f.Body(t, token, call.method, f.path("/jobs/id/9999"+call.path), body, call.want)
		if want := strings.ReplaceAll(unknown, "9999", job); got != want || f.Do(t, token, call.method, path, body).Header.Get("ETag") != "" {
			t.Errorf("%s of run %s: %s, an unknown one: %s", call.path, job, got, want)
		}
	}
	stream, err := workflowsv1.NewWorkflowJobsServiceClient(f.Conn).WatchJob(f.Context(t, token),
		&workflowsv1.WatchJobRequest{DeploymentId: f.DeploymentID, JobId: job})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.NotFound {
		t.Errorf("watch of run %s: %v", job, err)
	}
}

// checkHiddenTasks requires that a caller gets only the tasks of one run, and cannot use tasks of other runs.
func (f flow) checkHiddenTasks(t *testing.T, token, own string) {
	t.Helper()
	foreign, some := f.claim(t, `{"waitSeconds":30}`)
	if !some || foreign.JobID == own {
		t.Fatalf("the administrator claimed %+v", foreign)
	}
	limited := f.as(f.Tenant)
	limited.Token = token
	mine, some := limited.claim(t, `{"waitSeconds":30}`)
	if !some || mine.JobID != own {
		t.Fatalf("the member claimed %+v", mine)
	}
	if other, some := limited.claim(t, `{}`); some {
		t.Errorf("the member claimed a task of run %s", other.JobID)
	}
	calls := []struct{ path, more string }{
		{"heartbeat", ""}, {"artifacts", `,"name":"a","content":""`}, {"complete", `,"result":"WORKFLOW_TASK_RESULT_SUCCEEDED"`},
	}
	for _, call := range calls {
		limited.do(t, http.MethodPost, f.path("/tasks/"+foreign.TaskID+"/"+call.path), foreign.body(call.more), 404)
		limited.do(t, http.MethodPost, f.path("/tasks/"+mine.TaskID+"/"+call.path), mine.body(call.more), 200)
	}
	f.ended(t, own, "COMPLETED")
	if got := f.graph(t, foreign.JobID).places(); !slices.Equal(got, []string{"outside RUNNING"}) {
		t.Errorf("the foreign run: %q", got)
	}
}
