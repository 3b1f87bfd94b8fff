package identity

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/team"
	"github.com/palisade/palisade/ent/teammember"
	"github.com/palisade/palisade/ent/teamproject"
	"github.com/palisade/palisade/ent/tenant"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

// defaultTeamLimit is the default page size (contract facts, permissions.v2).
const defaultTeamLimit = 100

// Teams is the service group "teams".
type Teams struct {
	identityv1.UnimplementedTeamsServiceServer
	store *store.Store
}

// NewTeams serves teams from the store.
func NewTeams(st *store.Store) *Teams { return &Teams{store: st} }

// CheckRbacStatus reports whether there are teams.
func (s *Teams) CheckRbacStatus(ctx context.Context, _ *identityv1.CheckRbacStatusRequest) (*identityv1.CheckRbacStatusResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	enabled, err := s.store.Reader.Team.Query().Exist(ctx)
	if err != nil {
		return nil, err
	}
	return &identityv1.CheckRbacStatusResponse{DeploymentId: deploymentID, Enabled: enabled, SelfServeEnabled: true}, nil
}

// GetDeploymentTeam returns one team.
func (s *Teams) GetDeploymentTeam(ctx context.Context, r *identityv1.GetDeploymentTeamRequest) (*identityv1.GetDeploymentTeamResponse, error) {
	db := s.store.Reader
	caller, err := teamCallerOf(ctx, db)
	if err != nil {
		return nil, err
	}
	row, err := caller.find(ctx, db, r.GetTeamId())
	if err != nil {
		return nil, err
	}
	out, err := caller.convert(ctx, db, row)
	if err != nil {
		return nil, err
	}
	return &identityv1.GetDeploymentTeamResponse{Team: out[0]}, nil
}

// ListDeploymentTeams lists the teams that the caller may read.
func (s *Teams) ListDeploymentTeams(ctx context.Context, r *identityv1.ListDeploymentTeamsRequest) (*identityv1.ListDeploymentTeamsResponse, error) {
	p, err := newTeamPage(ctx, "teams", r)
	if err != nil {
		return nil, err
	}
	db := s.store.Reader
	caller, err := teamCallerOf(ctx, db)
	if err != nil {
		return nil, err
	}
	query := db.Team.Query().Where(team.IDGT(p.after)).Order(ent.Asc(team.FieldID)).Limit(p.limit + 1)
	if caller.teams != nil {
		query.Where(inTeams(team.FieldID, caller.teams.IDs(access.TeamRead)))
	}
	if name := r.GetFilter().GetName(); name != "" {
		query.Where(team.Name(name))
	}
	if id := r.GetFilter().GetRepositoryId(); id != 0 {
		query.Where(func(s *entsql.Selector) {
			links := entsql.Dialect(s.Dialect()).Table(teamproject.Table)
			s.Where(entsql.In(s.C(team.FieldID), entsql.Dialect(s.Dialect()).Select(links.C(teamproject.FieldTeamID)).From(links).
				Where(entsql.And(entsql.EQ(links.C(teamproject.FieldDeploymentID), r.GetDeploymentId()), entsql.EQ(links.C(teamproject.FieldProjectID), id)))))
		})
	}
	rows, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	rows, cursor := pageOf(p, rows, func(row *ent.Team) int64 { return row.ID })
	out, err := caller.convert(ctx, db, rows...)
	return &identityv1.ListDeploymentTeamsResponse{Teams: out, Cursor: cursor}, err
}

// ListTeamChildTeams lists the direct subteams of a team.
func (s *Teams) ListTeamChildTeams(ctx context.Context, r *identityv1.ListTeamChildTeamsRequest) (*identityv1.ListTeamChildTeamsResponse, error) {
	p, err := s.pageOfTeam(ctx, "child teams", r)
	if err != nil {
		return nil, err
	}
	ids, err := s.store.Reader.Team.Query().Where(team.ParentID(r.GetTeamId()), team.IDGT(p.after)).
		Order(ent.Asc(team.FieldID)).Limit(p.limit + 1).IDs(ctx)
	if err != nil {
		return nil, err
	}
	out := &identityv1.ListTeamChildTeamsResponse{DeploymentId: r.GetDeploymentId(), TeamId: r.GetTeamId(), Limit: int64(p.limit)}
	out.ChildTeamIds, out.Cursor = pageOf(p, ids, func(id int64) int64 { return id })
	return out, nil
}

// ListTeamRepos lists a team's own projects.
func (s *Teams) ListTeamRepos(ctx context.Context, r *identityv1.ListTeamReposRequest) (*identityv1.ListTeamReposResponse, error) {
	p, err := s.pageOfTeam(ctx, "team repos", r)
	if err != nil {
		return nil, err
	}
	rows, err := s.store.Reader.TeamProject.Query().Where(teamproject.TeamID(r.GetTeamId()), teamproject.ProjectIDGT(p.after)).
		Order(ent.Asc(teamproject.FieldProjectID)).Limit(p.limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	rows, cursor := pageOf(p, rows, func(row *ent.TeamProject) int64 { return row.ProjectID })
	return &identityv1.ListTeamReposResponse{
		DeploymentId: r.GetDeploymentId(), TeamId: r.GetTeamId(), RepositoryIds: projectIDs(rows), Limit: int64(p.limit), Cursor: cursor,
	}, nil
}

// ListTeamUsers lists a team's own members.
func (s *Teams) ListTeamUsers(ctx context.Context, r *identityv1.ListTeamUsersRequest) (*identityv1.ListTeamUsersResponse, error) {
	p, err := s.pageOfTeam(ctx, "team users", r)
	if err != nil {
		return nil, err
	}
	rows, err := s.store.Reader.TeamMember.Query().Where(teammember.TeamID(r.GetTeamId()), teammember.UserIDGT(p.after)).
		Order(ent.Asc(teammember.FieldUserID)).Limit(p.limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	rows, cursor := pageOf(p, rows, func(row *ent.TeamMember) int64 { return row.UserID })
	return &identityv1.ListTeamUsersResponse{
		DeploymentId: r.GetDeploymentId(), TeamId: r.GetTeamId(), Users: teamUsers(rows), Limit: int64(p.limit), Cursor: cursor,
	}, nil
}

// teamPage is a page request of a list by id.
type teamPage struct {
	digest page.Digest
	after  int64
	limit  int
}

// teamList is a request for a list by id.
type teamList interface {
	proto.Message
	GetCursor() string
	GetLimit() int64
}

func newTeamPage(ctx context.Context, list string, r teamList) (p teamPage, err error) {
	filter := proto.Clone(r).ProtoReflect()
	for _, name := range []protoreflect.Name{"cursor", "limit"} {
		filter.Clear(filter.Descriptor().Fields().ByName(name))
	}
	if p.digest, err = page.DigestOf(list+tenant.Visibility(ctx), filter.Interface()); err != nil {
		return p, err
	}
	key, _, err := page.Decode(p.digest, r.GetCursor())
	if p.after, p.limit = key.ID, int(r.GetLimit()); p.limit == 0 {
		p.limit = defaultTeamLimit
	}
	return p, err
}

// pageOfTeam parses the page request of a team's list. It returns NOT_FOUND for a team that the caller may not read.
func (s *Teams) pageOfTeam(ctx context.Context, list string, r interface {
	teamList
	GetTeamId() int64
},
) (teamPage, error) {
	caller, err := teamCallerOf(ctx, s.store.Reader)
	if err != nil {
		return teamPage{}, err
	}
	if _, err := caller.find(ctx, s.store.Reader, r.GetTeamId()); err != nil {
		return teamPage{}, err
	}
	return newTeamPage(ctx, list, r)
}

// pageOf removes the extra row that was read, and builds the cursor if there was one.
func pageOf[R any](p teamPage, rows []R, id func(R) int64) (shown []R, cursor string) {
	if len(rows) <= p.limit {
		return rows, ""
	}
	rows = rows[:p.limit]
	return rows, page.Encode(p.digest, page.Key{ID: id(rows[p.limit-1])})
}

// inTeams filters a column by any number of ids.
func inTeams(column string, ids []int64) func(*entsql.Selector) {
	return func(s *entsql.Selector) { s.Where(store.InIDs(s.C(column), ids)) }
}
