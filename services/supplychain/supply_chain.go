package supplychain

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/project"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// Default page sizes (contract facts, section 5, SupplyChainService).
const (
	defaultDependencies = 1000
	defaultSummaries    = 5
)

// SupplyChain is the service group "supply chain". The operations of v1 and v2 have different access rules and the same
// answers.
type SupplyChain struct {
	supplychainv1.UnimplementedSupplyChainServiceServer
	store       *store.Store
	limits      limits
	selectivity *selectivity
}

// NewSupplyChain serves the dependencies of the store.
func NewSupplyChain(st *store.Store) *SupplyChain {
	return &SupplyChain{store: st, limits: defaultLimits, selectivity: newSelectivity()}
}

// ListDependenciesV1 lists packages.
func (s *SupplyChain) ListDependenciesV1(ctx context.Context, r *supplychainv1.ListDependenciesV1Request) (*supplychainv1.ListDependenciesV1Response, error) {
	page, err := s.ListDependencies(ctx, &supplychainv1.ListDependenciesRequest{
		DependencyFilter: r.GetDependencyFilter(), Cursor: r.GetCursor(), PageSize: r.PageSize,
	})
	if err != nil {
		return nil, err
	}
	return &supplychainv1.ListDependenciesV1Response{Dependencies: page.GetDependencies(), HasMore: page.GetHasMore(), Cursor: page.GetCursor()}, nil
}

// ListRepositoriesForDependenciesV1 lists repositories that have packages.
func (s *SupplyChain) ListRepositoriesForDependenciesV1(ctx context.Context, r *supplychainv1.ListRepositoriesForDependenciesV1Request) (*supplychainv1.ListRepositoriesForDependenciesV1Response, error) {
	page, err := s.ListRepositoriesForDependencies(ctx, &supplychainv1.ListRepositoriesForDependenciesRequest{
		DependencyFilter: r.GetDependencyFilter(), Cursor: r.GetCursor(), PageSize: r.PageSize,
	})
	if err != nil {
		return nil, err
	}
	return &supplychainv1.ListRepositoriesForDependenciesV1Response{
		RepositorySummaries: page.GetRepositorySummaries(), HasMore: page.GetHasMore(), Cursor: page.GetCursor(),
	}, nil
}

// ListLockfilesForDependenciesV1 lists the lockfiles of a repository.
func (s *SupplyChain) ListLockfilesForDependenciesV1(ctx context.Context, r *supplychainv1.ListLockfilesForDependenciesV1Request) (*supplychainv1.ListLockfilesForDependenciesV1Response, error) {
	page, err := s.ListLockfilesForDependencies(ctx, &supplychainv1.ListLockfilesForDependenciesRequest{
		RepositoryId: r.GetRepositoryId(), DependencyFilter: r.GetDependencyFilter(), Cursor: r.GetCursor(), PageSize: r.PageSize,
	})
	if err != nil {
		return nil, err
	}
	return &supplychainv1.ListLockfilesForDependenciesV1Response{
		LockfileSummaries: page.GetLockfileSummaries(), HasMore: page.GetHasMore(), Cursor: page.GetCursor(),
	}, nil
}

// ListDependencies lists packages by id. The cursor is the last id and is valid for any filter.
func (s *SupplyChain) ListDependencies(ctx context.Context, r *supplychainv1.ListDependenciesRequest) (response *supplychainv1.ListDependenciesResponse, err error) {
	err = s.store.ReadWithFreshPlans(ctx, func(db *ent.Client) error {
		size := pageSize(r.PageSize, defaultDependencies)
		chosen, err := s.planQuery(ctx, db, r.GetDependencyFilter(), size)
		if err != nil {
			return err
		}
		rows, err := chosen.dependencies(ctx, db, r.GetCursor(), size+1)
		if err != nil {
			return err
		}
		response = &supplychainv1.ListDependenciesResponse{HasMore: len(rows) > size}
		if response.HasMore {
			rows = rows[:size]
			response.Cursor = rows[size-1].ID
		}
		response.Dependencies, err = convertDependencies(ctx, db, rows)
		return err
	})
	return response, err
}

// ListRepositoriesForDependencies lists repositories with packages by id. The cursor is the last id.
func (s *SupplyChain) ListRepositoriesForDependencies(ctx context.Context, r *supplychainv1.ListRepositoriesForDependenciesRequest) (response *supplychainv1.ListRepositoriesForDependenciesResponse, err error) {
	err = s.store.ReadWithFreshPlans(ctx, func(db *ent.Client) error {
		size := pageSize(r.PageSize, defaultSummaries)
		chosen, err := s.planQuery(ctx, db, r.GetDependencyFilter(), size)
		if err != nil {
			return err
		}
		groups, err := chosen.repositories(ctx, db, r.GetCursor(), size+1)
		if err != nil {
			return err
		}
		response = &supplychainv1.ListRepositoriesForDependenciesResponse{HasMore: len(groups) > size}
		if response.HasMore {
			groups = groups[:size]
			response.Cursor = groups[size-1].ProjectID
		}
		ids := make([]int64, len(groups))
		for i, group := range groups {
			ids[i] = group.ProjectID
		}
		repositories, err := repositoriesOf(ctx, db, ids)
		if err != nil {
			return err
		}
		for _, group := range groups {
			if repository := repositories[group.ProjectID]; repository != nil { // a missing one was just deleted
				response.RepositorySummaries = append(response.RepositorySummaries, &supplychainv1.RepositoryDependencySummary{
					Id: repository.ID, Name: repository.Name, NumDependencies: int32(group.Count), HasDependencyPathScan: group.Paths > 0,
				})
			}
		}
		return nil
	})
	return response, err
}

// ListLockfilesForDependencies lists the lockfiles of a repository by path. The cursor is the last path.
func (s *SupplyChain) ListLockfilesForDependencies(ctx context.Context, r *supplychainv1.ListLockfilesForDependenciesRequest) (response *supplychainv1.ListLockfilesForDependenciesResponse, err error) {
	err = s.store.ReadWithFreshPlans(ctx, func(db *ent.Client) error {
		exists, err := db.Project.Query().Where(project.ID(r.GetRepositoryId())).Exist(ctx)
		if err == nil && !exists {
			err = apierr.NotFound("repository %d not found", r.GetRepositoryId())
		}
		if err != nil {
			return err
		}
		size := pageSize(r.PageSize, defaultSummaries)
		chosen, err := s.planQuery(ctx, db, r.GetDependencyFilter(), size)
		if err != nil {
			return err
		}
		var groups []struct {
			Lockfile string `sql:"lockfile"`
			Count    int    `sql:"number"`
		}
		where, err := chosen.ofProject(ctx, db, r.GetRepositoryId())
		if err != nil {
			return err
		}
		err = db.Dependency.Query().Where(where, dependency.LockfileGT(r.GetCursor())).
			Order(dependency.ByLockfile()).Limit(size+1).
			GroupBy(dependency.FieldLockfile).Aggregate(ent.As(ent.Count(), "number")).Scan(ctx, &groups)
		if err != nil {
			return err
		}
		response = &supplychainv1.ListLockfilesForDependenciesResponse{HasMore: len(groups) > size}
		if response.HasMore {
			groups = groups[:size]
			response.Cursor = groups[size-1].Lockfile
		}
		for _, group := range groups {
			response.LockfileSummaries = append(response.LockfileSummaries, &supplychainv1.LockfileDependencySummary{
				LockfilePath: group.Lockfile, NumDependencies: int32(group.Count),
			})
		}
		return nil
	})
	return response, err
}

// withPaths counts the rows of a group with known dependency paths.
func withPaths(s *entsql.Selector) string {
	return entsql.As("SUM(CASE WHEN "+s.C(dependency.FieldHasPaths)+" THEN 1 ELSE 0 END)", "paths")
}

func pageSize(asked *int32, fallback int) int {
	if asked == nil {
		return fallback
	}
	return int(*asked)
}
