package projects

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/tenant"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

// maxRepositories is the largest page of repositories.
const maxRepositories = 500

// Repositories is the service group "repositories" (contract facts, section 10).
type Repositories struct {
	projectsv1.UnimplementedRepositoriesServiceServer
	store *store.Store
}

// NewRepositories serves projects as repositories from the store.
func NewRepositories(st *store.Store) *Repositories { return &Repositories{store: st} }

// GetRepo returns one repository.
func (s *Repositories) GetRepo(ctx context.Context, r *projectsv1.GetRepoRequest) (*projectsv1.GetRepoResponse, error) {
	row, err := findRepository(ctx, s.store.Reader, r.GetRepoId())
	if err != nil {
		return nil, err
	}
	repo, err := s.describe(ctx, s.store.Reader, row)
	return &projectsv1.GetRepoResponse{Repo: repo}, err
}

func findRepository(ctx context.Context, db *ent.Client, id int64) (*ent.Project, error) {
	row, err := db.Project.Query().Where(project.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("repository %d not found", id)
	}
	return row, err
}

// SearchRepos lists repositories by id.
func (s *Repositories) SearchRepos(ctx context.Context, r *projectsv1.SearchReposRequest) (*projectsv1.SearchReposResponse, error) {
	digest, err := page.DigestOf("repositories"+tenant.Visibility(ctx), r.GetFilters())
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	where, err := repositoryFilter(ctx, s.store.Reader, r.GetFilters())
	if err != nil {
		return nil, err
	}
	if continued {
		where = append(where, project.IDGT(key.ID))
	}
	size := defaultPageSize
	if r.GetPageSize() > 0 {
		size = min(int(r.GetPageSize()), maxRepositories)
	}
	rows, err := s.store.Reader.Project.Query().Where(where...).Order(ent.Asc(project.FieldID)).Limit(size + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &projectsv1.SearchReposResponse{}
	if len(rows) > size {
		rows = rows[:size]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[size-1].ID})
	}
	response.Repos, err = s.describeAll(ctx, s.store.Reader, rows)
	if err == nil && r.GetIncludeSummary() {
		err = s.summarize(ctx, response.GetRepos())
	}
	return response, err
}

// GetReposCount counts repositories.
func (s *Repositories) GetReposCount(ctx context.Context, r *projectsv1.GetReposCountRequest) (*projectsv1.GetReposCountResponse, error) {
	where, err := repositoryFilter(ctx, s.store.Reader, r.GetFilters())
	if err != nil {
		return nil, err
	}
	count, err := s.store.Reader.Project.Query().Where(where...).Count(ctx)
	return &projectsv1.GetReposCountResponse{Count: int64(count)}, err
}

// GetReposByTag lists the repositories of each tag.
func (s *Repositories) GetReposByTag(ctx context.Context, _ *projectsv1.GetReposByTagRequest) (*projectsv1.GetReposByTagResponse, error) {
	links, err := s.store.Reader.ProjectTag.Query().Order(projecttag.ByTagID(), projecttag.ByProjectID()).
		Select(projecttag.FieldTagID, projecttag.FieldProjectID).All(ctx)
	of := map[int64]*projectsv1.RepoIdList{}
	for _, link := range links {
		if of[link.TagID] == nil {
			of[link.TagID] = &projectsv1.RepoIdList{}
		}
		of[link.TagID].RepoIds = append(of[link.TagID].RepoIds, link.ProjectID)
	}
	return &projectsv1.GetReposByTagResponse{TagIdToRepoIds: of}, err
}
