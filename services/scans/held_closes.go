package scans

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/heldclose"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/ingest"
)

// auditHeldCloses is the object kind of held closes in the audit trail.
const auditHeldCloses = "held_closes"

// HeldCloses is the service group "held closes".
type HeldCloses struct {
	scansv1.UnimplementedHeldClosesServiceServer
	store *store.Store
}

// NewHeldCloses serves held closes from the store.
func NewHeldCloses(st *store.Store) *HeldCloses { return &HeldCloses{store: st} }

// ListHeldCloses lists held closes, newest first.
func (s *HeldCloses) ListHeldCloses(ctx context.Context, r *scansv1.ListHeldClosesRequest) (*scansv1.ListHeldClosesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("held closes"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.HeldClose.Query()
	if r.GetProject() != "" {
		of, err := findProject(ctx, s.store.Reader, r.GetProject())
		if err != nil {
			return nil, err
		}
		query.Where(heldclose.ProjectID(of.ID))
	}
	if r.GetRef() != "" {
		query.Where(heldclose.Ref(gitref.Full(r.GetRef())))
	}
	if r.GetState() != "" {
		query.Where(heldclose.State(r.GetState()))
	}
	if continued {
		query.Where(heldclose.IDLT(key.ID))
	}
	limit := pageSize(r.Limit)
	query.Order(ent.Desc(heldclose.FieldID)).Limit(limit + 1)
	rows, err := withoutContent(query).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &scansv1.ListHeldClosesResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ProjectID
	}
	names, err := projectNames(ctx, s.store.Reader, ids)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		out.HeldCloses = append(out.HeldCloses, convertHold(row, names[row.ProjectID]))
	}
	return out, nil
}

// withoutContent reads all columns but the content, which is large.
func withoutContent(query *ent.HeldCloseQuery) *ent.HeldCloseQuery {
	query.Select(heldclose.FieldID, heldclose.FieldProjectID, heldclose.FieldRef, heldclose.FieldTool, heldclose.FieldToolVersion,
		heldclose.FieldAnalysisCategory, heldclose.FieldScanID, heldclose.FieldState, heldclose.FieldFindings, heldclose.FieldOpen,
		heldclose.FieldWaiting, heldclose.FieldRejectedBefore, heldclose.FieldCreatedAt, heldclose.FieldDecidedAt,
		heldclose.FieldActorKind, heldclose.FieldActorID, heldclose.FieldNote)
	return query
}

func pageSize(limit *int32) int {
	if limit == nil {
		return defaultLimit
	}
	return int(*limit)
}

func findProject(ctx context.Context, db *ent.Client, name string) (*ent.Project, error) {
	row, err := db.Project.Query().Where(byname.Is(ctx, name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("project %q not found", name)
	}
	return row, err
}

// projectNames returns the names of projects, with repeated ids.
func projectNames(ctx context.Context, db *ent.Client, ids []int64) (map[int64]string, error) {
	names := map[int64]string{}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return names, nil
	}
	projects, err := db.Project.Query().Where(store.OneOf(project.FieldID, ids)).Select(project.FieldID, project.FieldName).All(ctx)
	for _, p := range projects {
		names[p.ID] = p.Name
	}
	return names, err
}

func convertHold(row *ent.HeldClose, projectName string) *scansv1.HeldCloses {
	return &scansv1.HeldCloses{
		Id: row.ID, ProjectId: row.ProjectID, Project: projectName, Ref: row.Ref, Tool: row.Tool, ToolVersion: row.ToolVersion,
		Category: row.AnalysisCategory, ScanId: row.ScanID, State: row.State, Findings: row.Findings, Open: row.Open, Waiting: row.Waiting,
		RejectedBefore: row.RejectedBefore, CreatedAt: timestamp(row.CreatedAt), DecidedAt: store.Timestamp(row.DecidedAt),
		ActorKind: row.ActorKind, ActorId: row.ActorID, Note: row.Note,
	}
}

func findHold(ctx context.Context, db *ent.Client, id int64) (*ent.HeldClose, error) {
	row, err := db.HeldClose.Query().Where(heldclose.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("no held closes %d", id)
	}
	return row, err
}

// ConfirmHeldCloses closes the findings that still wait.
func (s *HeldCloses) ConfirmHeldCloses(ctx context.Context, r *scansv1.ConfirmHeldClosesRequest) (*scansv1.ConfirmHeldClosesResponse, error) {
	after, n, err := s.decide(ctx, r.GetHeldClosesId(), r.GetNote(), ingest.ConfirmHold)
	if err != nil {
		return nil, err
	}
	return &scansv1.ConfirmHeldClosesResponse{HeldCloses: after, Closed: int32(n)}, nil
}

// RejectHeldCloses keeps the findings that still wait open.
func (s *HeldCloses) RejectHeldCloses(ctx context.Context, r *scansv1.RejectHeldClosesRequest) (*scansv1.RejectHeldClosesResponse, error) {
	after, n, err := s.decide(ctx, r.GetHeldClosesId(), r.GetNote(), ingest.RejectHold)
	if err != nil {
		return nil, err
	}
	return &scansv1.RejectHeldClosesResponse{HeldCloses: after, Kept: int32(n)}, nil
}

// decision confirms or rejects held closes.
type decision func(context.Context, *store.Store, *ent.Tx, *ent.HeldClose, ingest.HoldDecision) (*ent.HeldClose, int, error)

func (s *HeldCloses) decide(ctx context.Context, id int64, note string, decide decision) (out *scansv1.HeldCloses, n int, err error) {
	by := ingest.HoldDecision{Note: note}
	if p, ok := access.FromContext(ctx); ok {
		by.ActorKind, by.ActorID = string(p.Kind), p.ID
	}
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := findHold(ctx, tx.Client(), id)
		if err != nil {
			return err
		}
		of, err := lockProjectByID(ctx, s.store, tx, row.ProjectID)
		if err != nil {
			return err
		}
		if row, err = findHold(ctx, tx.Client(), id); err != nil { // as it is under the lock
			return err
		}
		if row.State != ingest.HoldPending {
			return apierr.FailedPrecondition("held closes %d are %s already", id, row.State)
		}
		before := convertHold(row, of.Name)
		if row, n, err = decide(ctx, s.store, tx, row, by); err != nil {
			return err
		}
		out = convertHold(row, of.Name)
		audit.Change(ctx, auditHeldCloses, id, before, out)
		return nil
	})
	return out, n, err
}
