package ai

import (
	"context"
	"strconv"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aimemory"
	"github.com/palisade/palisade/ent/tenant"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/ai/memory"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// memoryKind is the object kind of memories in the audit trail.
	memoryKind = "memory"
	// memoriesLimit is the maximum number of memories of a deployment, including suggestions.
	memoriesLimit = 1000
)

// Memories is the service group "memories".
type Memories struct {
	aiv1.UnimplementedMemoriesServiceServer
	store *store.Store
}

// NewMemories serves memories from the store.
func NewMemories(st *store.Store) *Memories { return &Memories{store: st} }

// CreateMemory adds a memory.
func (s *Memories) CreateMemory(ctx context.Context, r *aiv1.CreateMemoryRequest) (*aiv1.CreateMemoryResponse, error) {
	response := &aiv1.CreateMemoryResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		wanted, err := s.memoryOf(ctx, tx.Client(), r.GetMemory())
		if err != nil {
			return err
		}
		if err := checkMemoryScope(ctx, wanted); err != nil {
			return err
		}
		if wanted.Stage == memory.Deleted {
			return apierr.InvalidArgument("memory.stage", "memory.stage: a new memory cannot be AI_MEMORY_STAGE_DELETED; allowed are AI_MEMORY_STAGE_LIVE and AI_MEMORY_STAGE_SUGGESTED")
		}
		response.Memory, err = s.addMemory(ctx, tx, wanted, &storev1.AiMemoryDetails{}, callerName(ctx))
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// UpdateMemory replaces the editable fields of a memory. Its author and the source of a suggestion stay.
func (s *Memories) UpdateMemory(ctx context.Context, r *aiv1.UpdateMemoryRequest) (*aiv1.UpdateMemoryResponse, error) {
	response := &aiv1.UpdateMemoryResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		before, err := s.lockMemory(ctx, tx, r.GetMemoryId())
		if err != nil {
			return err
		}
		wanted, err := s.memoryOf(ctx, tx.Client(), r.GetMemory())
		if err != nil {
			return err
		}
		if err := checkMemoryScope(ctx, wanted); err != nil {
			return err
		}
		shown, err := convertMemories(ctx, tx.Client(), before)
		if err != nil {
			return err
		}
		after, err := replaceMemory(before, wanted).Save(ctx)
		if err != nil {
			return err
		}
		converted, err := convertMemories(ctx, tx.Client(), after)
		if err != nil {
			return err
		}
		response.Memory = converted[0]
		audit.Change(ctx, memoryKind, before.ID, shown[0], response.GetMemory())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// DeleteMemory marks a memory as deleted. Analyses and suggestions still refer to it.
func (s *Memories) DeleteMemory(ctx context.Context, r *aiv1.DeleteMemoryRequest) (*aiv1.DeleteMemoryResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := s.lockMemory(ctx, tx, r.GetMemoryId())
		if err != nil {
			return err
		}
		shown, err := convertMemories(ctx, tx.Client(), row)
		if err != nil {
			return err
		}
		audit.Change(ctx, memoryKind, row.ID, shown[0], nil)
		return row.Update().SetStage(memory.Deleted).SetUpdatedAt(store.Now()).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &aiv1.DeleteMemoryResponse{}, nil
}

// ListMemories lists the live memories.
func (s *Memories) ListMemories(ctx context.Context, r *aiv1.ListMemoriesRequest) (*aiv1.ListMemoriesResponse, error) {
	query := s.store.Reader.AiMemory.Query().Where(aimemory.Stage(memory.Live))
	if projects := r.GetFilter().GetRepositoryIds(); len(projects) > 0 {
		deploymentID, _ := tenant.FromContext(ctx)
		query.Where(memoriesFor(deploymentID, projects, r.GetFilter().GetExactScope()))
	}
	list, err := s.listMemories(ctx, query)
	if err != nil {
		return nil, err
	}
	return &aiv1.ListMemoriesResponse{Memories: list}, nil
}

// memoriesFor selects memories for the given projects. Unless exact is set, it includes memories for tags of the
// projects and for all projects.
func memoriesFor(deploymentID int64, projects []int64, exact bool) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		named := store.InIDs(s.C(aimemory.FieldProjectID), projects)
		if exact {
			s.Where(named)
			return
		}
		tags := entsql.Dialect(s.Dialect()).Select("tag_id").From(entsql.Table("project_tags")).Where(entsql.And(
			entsql.EQ("deployment_id", deploymentID), store.InIDs("project_id", projects)))
		s.Where(entsql.Or(named, entsql.And(
			entsql.IsNull(s.C(aimemory.FieldProjectID)),
			entsql.Or(entsql.IsNull(s.C(aimemory.FieldProjectTagID)), entsql.In(s.C(aimemory.FieldProjectTagID), tags)),
		)))
	}
}

// GetMemoriesByIds returns memories that are not deleted.
func (s *Memories) GetMemoriesByIds(ctx context.Context, r *aiv1.GetMemoriesByIdsRequest) (*aiv1.GetMemoriesByIdsResponse, error) {
	list, err := s.listMemories(ctx, s.store.Reader.AiMemory.Query().Where(aimemory.StageNEQ(memory.Deleted), func(sel *entsql.Selector) {
		sel.Where(store.InIDs(sel.C(aimemory.FieldID), r.GetMemoryIds()))
	}))
	if err != nil {
		return nil, err
	}
	return &aiv1.GetMemoriesByIdsResponse{Memories: list}, nil
}

// ListSuggestedMemories lists the suggestions that wait for acceptance.
func (s *Memories) ListSuggestedMemories(ctx context.Context, _ *aiv1.ListSuggestedMemoriesRequest) (*aiv1.ListSuggestedMemoriesResponse, error) {
	list, err := s.listMemories(ctx, s.store.Reader.AiMemory.Query().Where(aimemory.Stage(memory.Suggested)))
	if err != nil {
		return nil, err
	}
	return &aiv1.ListSuggestedMemoriesResponse{Memories: list}, nil
}

func (s *Memories) listMemories(ctx context.Context, query *ent.AiMemoryQuery) ([]*aiv1.Memory, error) {
	rows, err := query.Order(ent.Asc(aimemory.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	return convertMemories(ctx, s.store.Reader, rows...)
}

// addMemory stores a memory.
func (s *Memories) addMemory(ctx context.Context, tx *ent.Tx, wanted *ent.AiMemory, details *storev1.AiMemoryDetails, createdBy string) (*aiv1.Memory, error) {
	// The limit counts the memories of all projects, including ones that the caller cannot see.
	deploymentID, _ := tenant.FromContext(ctx)
	count, err := tx.AiMemory.Query().Where(aimemory.DeploymentID(deploymentID), aimemory.StageNEQ(memory.Deleted)).Count(tenant.System(ctx))
	if err != nil {
		return nil, err
	}
	if count >= memoriesLimit {
		return nil, apierr.FailedPrecondition("this deployment has %d memories, which is the maximum: delete some first", memoriesLimit)
	}
	row, err := storeMemory(ctx, tx, wanted, details, createdBy)
	if err != nil {
		return nil, err
	}
	converted, err := convertMemories(ctx, tx.Client(), row)
	if err != nil {
		return nil, err
	}
	audit.Change(ctx, memoryKind, row.ID, nil, converted[0])
	return converted[0], nil
}

// lockMemory finds a memory that is not deleted, and locks it until the end of the transaction.
func (s *Memories) lockMemory(ctx context.Context, tx *ent.Tx, id int64) (*ent.AiMemory, error) {
	query := tx.AiMemory.Query().Where(aimemory.ID(id), aimemory.StageNEQ(memory.Deleted))
	if s.store.Postgres() {
		query.ForUpdate()
	}
	row, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("memory %d not found", id)
	}
	if err != nil {
		return nil, err
	}
	if _, limited := tenant.Teams(ctx); limited && row.ProjectID == nil {
		return nil, apierr.PermissionDenied("memory %d is for all projects; you see only the projects of your teams, and may change only their memories", id)
	}
	return row, nil
}

func callerName(ctx context.Context) string {
	if p, ok := access.FromContext(ctx); ok {
		return p.Name
	}
	return ""
}

// memoryID parses an id in a memory; nil if it is empty.
func memoryID(text string) *int64 {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id == 0 {
		return nil
	}
	return &id
}
