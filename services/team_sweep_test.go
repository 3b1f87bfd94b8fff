package services_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"entgo.io/ent/schema/field"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/ent/user"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// marker is in every text column of a project and its data. The number is the project's.
var marker = regexp.MustCompile(`mark-p(\d+)-`)

// teamWorld is a tenant with the projects of two teams, 1 and 3, and projects in no team. Every row of a project
// carries its marker. The rows are derived from the schema, so that a new table is included automatically.
type teamWorld struct {
	*filling
	callers []*teamCaller
}

// teamCaller is a caller with the numbers of the projects that the model permits.
type teamCaller struct {
	name, jwt, token string
	all              bool
	sees             []int64
	answered         map[string]bool // the RPCs that did not refuse every request
}

func (w *teamWorld) visible(c *teamCaller, projectID int64) bool {
	return c.all || slices.Contains(c.sees, projectID-w.base)
}

// TestTeamSweep calls every RPC as every caller about the projects of each team and of none. No response and no error
// contains a marker of a project that the model hides from the caller, unless the request itself contained it.
func TestTeamSweep(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newTeamWorld(t, s)
		w.control(t)
		for _, rpc := range inOrder(operations()) {
			if rpc.descriptor.IsStreamingServer() {
				continue
			}
			for _, c := range w.callers {
				if c.all && !onlyReads(rpc) {
					continue // an administrator may delete what the others should see
				}
				for _, row := range []int64{1, 3, 5} {
					w.try(t, rpc, c, row)
				}
			}
		}
		w.control(t)
		for _, c := range w.callers {
			if len(c.answered) < 70 { // otherwise nothing would be compared
				t.Errorf("%s was answered by %d RPCs only", c.name, len(c.answered))
			}
		}
	})
}

// try sends the request of an RPC about one row, and for reads also the request that names nothing.
func (w *teamWorld) try(t *testing.T, rpc operation, c *teamCaller, row int64) {
	t.Helper()
	of := *w.filling
	of.base, of.rows = w.base+row-1, 1
	requests := []*dynamicpb.Message{of.request(t, rpc)}
	named := proto.CloneOf(requests[0])
	if of.nameProject(named) {
		requests = append(requests, named)
	}
	if row == 1 && onlyReads(rpc) {
		bare := proto.CloneOf(requests[0])
		for i := range bare.Descriptor().Fields().Len() {
			if d := bare.Descriptor().Fields().Get(i); isID(d) && !inPath(rpc, d) && !rulesOf(d).GetRequired() {
				bare.Clear(d)
			}
		}
		requests = append(requests, bare)
	}
	for _, request := range requests {
		sent, _ := proto.Marshal(request)
		answer, response := w.send(t, rpc, c, request)
		if code := answer.Code(); code == codes.Internal || code == codes.Unknown || code == codes.ResourceExhausted {
			t.Errorf("%s by %s about %d: %v", rpc.name, c.name, row, answer)
		}
		if answer.Code() == codes.OK {
			c.answered[rpc.name] = true
		}
		got, _ := proto.Marshal(response)
		whole, _ := proto.Marshal(answer.Proto())
		for _, found := range marker.FindAllSubmatch(append(got, whole...), -1) {
			id, _ := strconv.ParseInt(string(found[1]), 10, 64)
			if !w.visible(c, id) && !strings.Contains(string(sent), string(found[0])) {
				t.Errorf("%s by %s about row %d names the hidden project %d: %.600v %.300v", rpc.name, c.name, row, id-w.base, response, answer)
				break
			}
		}
	}
}

// nameProject sets the marked name of row 1's project where the request names a project.
func (f *filling) nameProject(m protoreflect.Message) (changed bool) {
	project := fmt.Sprintf("mark-p%d-%d", f.base+1, f.base+1)
	m.Range(func(d protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case d.IsList() || d.IsMap():
		case d.Kind() == protoreflect.MessageKind:
			changed = f.nameProject(value.Message()) || changed
		case d.Kind() == protoreflect.StringKind && (d.Name() == "project_name" || d.Name() == "project" || d.Name() == "repository" || d.Name() == "repository_tag"):
			m.Set(d, protoreflect.ValueOfString(project))
			changed = true
		}
		return true
	})
	return changed
}

func (w *teamWorld) send(t *testing.T, rpc operation, c *teamCaller, request proto.Message) (*status.Status, *dynamicpb.Message) {
	t.Helper()
	credential := c.jwt
	if slices.Contains(rpc.rule.GetSchemes(), optionsv1.Scheme_SCHEME_WEB_TOKEN) {
		credential = c.token
	}
	ctx, response := w.server.Context(t, credential), dynamicpb.NewMessage(rpc.descriptor.Output())
	if rpc.descriptor.IsStreamingClient() {
		return status.Convert(call(ctx, w.server.Conn, rpc, request)), response
	}
	return status.Convert(w.server.Conn.Invoke(ctx, rpc.name, request, response)), response
}

// control checks the test itself: the list of projects must match the model exactly.
func (w *teamWorld) control(t *testing.T) {
	t.Helper()
	for _, c := range w.callers {
		body := w.server.Body(t, c.token, "GET", "/api/v1/deployments/"+w.tenant.Slug+"/projects", "", 200)
		for i := int64(1); i <= w.rows; i++ {
			name := fmt.Sprintf(`"name":"mark-p%d-%d"`, w.base+i, w.base+i)
			if got := strings.Contains(body, name); got != w.visible(c, w.base+i) {
				t.Errorf("%s sees project %d: %v: %s", c.name, i, got, body)
			}
		}
	}
}

func newTeamWorld(t *testing.T, s *apitest.Server) *teamWorld {
	t.Helper()
	w := &teamWorld{filling: newFilling(t, s, "walled", 7, 8)}
	w.callers = []*teamCaller{
		{name: "an administrator", jwt: w.admin, token: w.tenant.Token, all: true},
		{name: "a member of no team"},
		{name: "a member of team A", sees: []int64{1}},
		{name: "a member of team B", sees: []int64{3}},
		{name: "a manager of team A", sees: []int64{1}},
	}
	var ids []int64
	for _, c := range w.callers {
		c.answered = map[string]bool{}
	}
	for i, c := range w.callers[1:] {
		email := fmt.Sprintf("member%d@walled.test", i)
		c.jwt = s.AddUser(t, w.tenant, email, access.RoleMember)
		id, err := s.Store.Reader.User.Query().Where(user.Email(email)).OnlyID(s.System(t))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
		c.token = s.AddToken(t, w.tenant, access.TokenSpec{UserID: id, Name: email, Role: access.RoleMember, Scopes: access.Scopes})
	}
	statements := w.marks()
	for _, table := range []string{"team_projects", "team_members"} {
		statements = append(statements, fmt.Sprintf("DELETE FROM %s WHERE deployment_id = %d", table, w.tenant.DeploymentID))
	}
	statements = append(statements, fmt.Sprintf("UPDATE teams SET parent_id = NULL, is_project_default = FALSE, is_user_default = FALSE, "+
		"name = 'mark-p' || id || '-team' WHERE deployment_id = %d", w.tenant.DeploymentID))
	for _, statement := range statements { // one by one: jobs of the server lock rows of these tables in other orders
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error { return s.Store.Exec(ctx, tx, statement) })
		if err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for _, i := range []int64{1, 3} {
			err := tx.TeamProject.Create().SetDeploymentID(w.tenant.DeploymentID).SetTeamID(w.base + i).SetProjectID(w.base + i).SetCreatedAt(store.Now()).Exec(ctx)
			if err != nil {
				return err
			}
		}
		for i, of := range map[int]struct {
			team int64
			role string
		}{1: {1, "TEAM_ROLE_MEMBER"}, 2: {3, "TEAM_ROLE_MEMBER"}, 3: {1, "TEAM_ROLE_MANAGER"}} {
			err := tx.TeamMember.Create().SetDeploymentID(w.tenant.DeploymentID).SetTeamID(w.base + of.team).SetUserID(ids[i]).SetRole(of.role).SetCreatedAt(store.Now()).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// marks are the statements that write the marker of its project into each row.
func (w *teamWorld) marks() (list []string) {
	for _, table := range migrate.Tables {
		project := ""
		has := func(name string) bool {
			return slices.ContainsFunc(table.Columns, func(c *migrate.Column) bool { return c.Name == name })
		}
		switch {
		case slices.Contains(unfilled, table.Name):
		case table.Name == "projects":
			project = "id"
		case table.Name == "tags":
			project = "(SELECT MIN(project_id) FROM project_tags WHERE tag_id = tags.id)"
		case table.Name == "rules":
			project = "(SELECT MIN(project_id) FROM findings WHERE rule_id = rules.id)"
		case has("project_id"):
			project = "project_id"
		case has("finding_id"):
			project = "(SELECT project_id FROM findings WHERE findings.id = finding_id)"
		}
		if project == "" || table.Name == "findings" && !has("project_id") {
			continue
		}
		var set []string
		for _, c := range table.Columns {
			_, fixed := words[table.Name+"."+c.Name]
			_, same := words[c.Name]
			if c.Type != field.TypeString || fixed || same || c.Name == "issue_type" {
				continue
			}
			set = append(set, fmt.Sprintf(`"%s" = CASE WHEN "%s" IS NULL THEN NULL ELSE 'mark-p' || %s || '-' || id END`, c.Name, c.Name, project))
		}
		if len(set) > 0 {
			list = append(list, fmt.Sprintf("UPDATE %s SET %s WHERE deployment_id = %d AND %s IS NOT NULL", table.Name, strings.Join(set, ", "), w.tenant.DeploymentID, project))
		}
	}
	return list
}
