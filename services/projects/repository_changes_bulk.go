package projects

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// maxChanged is the maximum number of repositories that one call changes.
const maxChanged = 3000

// BulkEditRepos changes repositories, each in its own way. Equal changes are made together.
func (s *Changes) BulkEditRepos(ctx context.Context, r *projectsv1.BulkEditReposRequest) (*projectsv1.BulkEditReposResponse, error) {
	ids := make([]int64, len(r.GetChanges()))
	changes, of := map[string]*projectsv1.SingleBulkRepoChange{}, map[string][]int64{}
	for i, item := range r.GetChanges() {
		if ids[i] = item.GetRepoId(); slices.Contains(ids[:i], ids[i]) {
			return nil, apierr.InvalidArgument("changes", "changes must have at most one item for a repository, got several for %d", ids[i])
		}
		key, err := proto.MarshalOptions{Deterministic: true}.Marshal(item.GetChange())
		if err != nil {
			return nil, err
		}
		changes[string(key)] = item.GetChange()
		of[string(key)] = append(of[string(key)], item.GetRepoId())
	}
	var response *projectsv1.BulkEditReposResponse
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		response = &projectsv1.BulkEditReposResponse{}
		rows, err := s.lockAll(ctx, tx, store.WithIDs[predicate.Project](ids))
		if err != nil {
			return err
		}
		byID := make(map[int64]*ent.Project, len(rows))
		for _, row := range rows {
			byID[row.ID] = row
		}
		var missing []int64
		for _, id := range ids {
			if row := byID[id]; row != nil {
				response.UpdatedRepoNames = append(response.UpdatedRepoNames, row.Name)
			} else {
				missing = append(missing, id)
			}
		}
		response.Errors = missingRepos(missing)
		return s.audited(ctx, tx, rows, func() error {
			for key, change := range changes {
				known := slices.DeleteFunc(slices.Clone(of[key]), func(id int64) bool { return byID[id] == nil })
				if err := apply(ctx, tx, known, change); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// BulkApplyRepoUpdate makes the same change to all repositories of a filter.
func (s *Changes) BulkApplyRepoUpdate(ctx context.Context, r *projectsv1.BulkApplyRepoUpdateRequest) (*projectsv1.BulkApplyRepoUpdateResponse, error) {
	response := &projectsv1.BulkApplyRepoUpdateResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		chosen, missing, err := choose(ctx, tx.Client(), r.GetFilters(), r.GetExcludeIds(), maxChanged)
		if err != nil {
			return err
		}
		rows, err := s.lockAll(ctx, tx, store.WithIDs[predicate.Project](projectIDs(chosen)))
		if err != nil {
			return err
		}
		response.UpdatedRepoIds, response.Errors = projectIDs(rows), missing
		return s.audited(ctx, tx, rows, func() error { return apply(ctx, tx, response.GetUpdatedRepoIds(), r.GetChange()) })
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// apply makes a change to locked projects, with the same number of statements for any number of projects and the same
// tags.
func apply(ctx context.Context, tx *ent.Tx, ids []int64, change *projectsv1.SingleBulkRepoChange) error {
	if len(ids) == 0 {
		return nil
	}
	update := tx.Project.Update().Where(store.WithIDs[predicate.Project](ids))
	setScans(update.Mutation(), change.GetManagedScans(), change.GetAiScans())
	if len(update.Mutation().Fields()) > 0 {
		if err := update.Exec(ctx); err != nil {
			return err
		}
	}
	if !change.GetUpdateTags() {
		return nil
	}
	return replaceTags(ctx, tx, ids, change.GetTags())
}

// lockAll reads projects in the order of their ids and locks them until the end of the transaction.
func (s *Changes) lockAll(ctx context.Context, tx *ent.Tx, which predicate.Project) ([]*ent.Project, error) {
	query := tx.Project.Query().Where(which).Order(project.ByID())
	if s.store.Postgres() {
		query.ForUpdate()
	}
	return query.All(ctx)
}

// choose returns the repositories of a filter in the order of their ids, and an error for the ids of the filter that do
// not exist. Repositories that the caller must not see do not exist either.
func choose(ctx context.Context, db *ent.Client, f *projectsv1.RepoFilters, exclude []int64, most int) ([]*ent.Project, []*projectsv1.BulkEndpointError, error) {
	where, err := repositoryFilter(ctx, db, f)
	if err != nil {
		return nil, nil, err
	}
	rows, err := db.Project.Query().Where(where...).Where(store.NoneOf(project.FieldID, exclude)).Order(project.ByID()).Limit(most + 1).All(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(rows) > most {
		return nil, nil, apierr.FailedPrecondition("the filter selects more than %d repositories, which is the limit of one call: name fewer in filters.ids", most)
	}
	if len(f.GetIds()) == 0 {
		return rows, nil, nil
	}
	visible, err := db.Project.Query().Where(store.OneOf(project.FieldID, f.GetIds())).IDs(ctx)
	if err != nil {
		return nil, nil, err
	}
	missing := slices.DeleteFunc(slices.Clone(f.GetIds()), func(id int64) bool { return slices.Contains(exclude, id) })
	known := make(map[int64]bool, len(visible))
	for _, id := range visible {
		known[id] = true
	}
	return rows, missingRepos(slices.DeleteFunc(missing, func(id int64) bool { return known[id] })), nil
}

func projectIDs(rows []*ent.Project) []int64 {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return ids
}

func missingRepos(ids []int64) []*projectsv1.BulkEndpointError {
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return failures{{projectsv1.UpdateErrorCode_UPDATE_ERROR_CODE_NOT_FOUND, "there are no such repositories"}: slices.Compact(ids)}.list()
}

// failures are the repositories that failed, by reason.
type failures map[failure][]int64

type failure struct {
	code    projectsv1.UpdateErrorCode
	message string
}

// list returns the reasons in the order of their first repositories.
func (f failures) list() []*projectsv1.BulkEndpointError {
	for _, ids := range f {
		slices.Sort(ids)
	}
	var out []*projectsv1.BulkEndpointError
	for _, one := range slices.SortedFunc(maps.Keys(f), func(a, b failure) int { return cmp.Compare(f[a][0], f[b][0]) }) {
		reason := &projectsv1.BulkEndpointError{Code: one.code, Message: one.message}
		for _, id := range f[one] {
			reason.Ids = append(reason.Ids, strconv.FormatInt(id, 10))
		}
		out = append(out, reason)
	}
	return out
}
