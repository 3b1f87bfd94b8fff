package deployments

import (
	"context"
	stdsql "database/sql"
	"strings"

	"entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/deployments/details"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

// defaultPageSize is the default page size of users.
const defaultPageSize = 100

// memberRow is a membership with its user.
type memberRow struct {
	ID        int64             `sql:"id"`
	UserID    int64             `sql:"user_id"`
	Role      string            `sql:"role"`
	CreatedAt int64             `sql:"created_at"`
	UpdatedAt stdsql.NullInt64  `sql:"updated_at"`
	Email     string            `sql:"email"`
	Name      string            `sql:"name"`
	Issuer    stdsql.NullString `sql:"issuer"`
}

// condition filters members: m is the table of memberships, u the table of users.
type condition func(m *sql.Selector, u *sql.SelectTable) *sql.Predicate

// GetDeploymentUsers lists all users.
func (s *Deployment) GetDeploymentUsers(ctx context.Context, _ *deploymentsv1.GetDeploymentUsersRequest) (*deploymentsv1.GetDeploymentUsersResponse, error) {
	rows, err := members(ctx, s.store.Reader, 0)
	if err != nil {
		return nil, err
	}
	users, err := convertMembers(ctx, s.store.Reader, rows)
	if err != nil {
		return nil, err
	}
	return &deploymentsv1.GetDeploymentUsersResponse{Users: users}, nil
}

// ListDeploymentUsers lists users page by page.
func (s *Deployment) ListDeploymentUsers(ctx context.Context, r *deploymentsv1.ListDeploymentUsersRequest) (*deploymentsv1.ListDeploymentUsersResponse, error) {
	filter := proto.CloneOf(r)
	filter.Options = nil
	digest, err := page.DigestOf("deployment users", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetOptions().GetPageToken())
	if err != nil {
		return nil, apierr.InvalidCursor("options.pageToken")
	}
	where := memberFilter(r.GetFilters())
	if continued {
		where = append(where, func(m *sql.Selector, _ *sql.SelectTable) *sql.Predicate {
			return sql.GT(m.C(membership.FieldID), key.ID)
		})
	}
	size := int(r.GetOptions().GetPageSize())
	if size == 0 {
		size = defaultPageSize
	}
	rows, err := members(ctx, s.store.Reader, size+1, where...)
	if err != nil {
		return nil, err
	}
	response := &deploymentsv1.ListDeploymentUsersResponse{}
	if len(rows) > size {
		rows = rows[:size]
		response.PageToken = page.Encode(digest, page.Key{ID: rows[size-1].ID})
	}
	response.Users, err = convertMembers(ctx, s.store.Reader, rows)
	if err != nil {
		return nil, err
	}
	return response, nil
}

func memberFilter(f *deploymentsv1.ListDeploymentUsersFilter) (where []condition) {
	if text := strings.TrimSpace(f.GetQuery()); text != "" {
		where = append(where, func(_ *sql.Selector, u *sql.SelectTable) *sql.Predicate {
			// Databases may fold only ASCII: Contains finds other letters in their exact case.
			return sql.Or(sql.ContainsFold(u.C(user.FieldName), text), sql.Contains(u.C(user.FieldName), text),
				sql.ContainsFold(u.C(user.FieldEmail), text))
		})
	}
	switch f.GetFilterMembers() {
	case deploymentsv1.MemberFilterType_MEMBER_FILTER_TYPE_ADMIN_ONLY:
		where = append(where, func(m *sql.Selector, _ *sql.SelectTable) *sql.Predicate {
			return sql.EQ(m.C(membership.FieldRole), string(access.RoleAdmin))
		})
	case deploymentsv1.MemberFilterType_MEMBER_FILTER_TYPE_NON_ADMIN_ONLY:
		where = append(where, func(m *sql.Selector, _ *sql.SelectTable) *sql.Predicate {
			return sql.NEQ(m.C(membership.FieldRole), string(access.RoleAdmin))
		})
	}
	if ids := f.GetMemberIds(); len(ids) > 0 {
		where = append(where, func(m *sql.Selector, _ *sql.SelectTable) *sql.Predicate {
			return store.InIDs(m.C(membership.FieldUserID), ids)
		})
	}
	return where
}

// members reads members by id, in the order of joining; limit 0 reads all.
func members(ctx context.Context, db *ent.Client, limit int, where ...condition) (rows []memberRow, err error) {
	err = db.Membership.Query().Modify(func(m *sql.Selector) {
		u := sql.Table(user.Table)
		m.Join(u).On(m.C(membership.FieldUserID), u.C(user.FieldID))
		for _, narrow := range where {
			m.Where(narrow(m, u))
		}
		m.Select(m.C(membership.FieldID), m.C(membership.FieldUserID), m.C(membership.FieldRole), m.C(membership.FieldCreatedAt),
			m.C(membership.FieldUpdatedAt), u.C(user.FieldEmail), u.C(user.FieldName), u.C(user.FieldIssuer))
		m.OrderBy(m.C(membership.FieldID))
		if limit > 0 {
			m.Limit(limit)
		}
	}).Scan(ctx, &rows)
	return rows, err
}

// member reads one member. It returns the same error for a missing user and a user outside of the deployment.
func member(ctx context.Context, db *ent.Client, userID int64) (*memberRow, error) {
	rows, err := members(ctx, db, 1, func(m *sql.Selector, _ *sql.SelectTable) *sql.Predicate {
		return sql.EQ(m.C(membership.FieldUserID), userID)
	})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, apierr.NotFound("user %d not found", userID)
	}
	return &rows[0], nil
}

func convertMembers(ctx context.Context, db *ent.Client, rows []memberRow) ([]*deploymentsv1.DeploymentUser, error) {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.UserID
	}
	groups, err := groupsOf(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	users := make([]*deploymentsv1.DeploymentUser, len(rows))
	for i := range rows {
		users[i] = rows[i].convert()
		users[i].Groups = groups[rows[i].UserID]
	}
	return users, nil
}

// convert converts a member without teams.
func (r *memberRow) convert() *deploymentsv1.DeploymentUser {
	out := &deploymentsv1.DeploymentUser{
		Id: r.UserID, OrgRole: details.Role(r.Role), Since: timestamppb.New(store.Time(r.CreatedAt)),
		LastUpdatedAt: timestamppb.New(store.Time(max(r.CreatedAt, r.UpdatedAt.Int64))),
		Name:          r.Name, Login: r.Email, Email: r.Email, Active: true,
	}
	if r.Issuer.Valid {
		out.Authentication = []string{r.Issuer.String}
	}
	return out
}
