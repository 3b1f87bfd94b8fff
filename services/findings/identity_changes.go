package findings

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/identitychange"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// identityChangeKind is the kind of object in the audit trail.
	identityChangeKind = "identity_change"
	// changeSplit, changeMerge and changeMove are the kinds of identity changes.
	changeSplit, changeMerge, changeMove = "split", "merge", "move"
	// defaultChanges is the page size of the list of identity changes.
	defaultChanges = 100
)

// FindingIdentity is the service group that explains and changes the identities of findings.
type FindingIdentity struct {
	findingsv1.UnimplementedFindingIdentityServiceServer
	store    *store.Store
	jobs     *jobs.Jobs
	previews previewTokens
	// redactionKey is the key of the hashes that replace secrets. Uploads use the same.
	redactionKey []byte
}

// NewFindingIdentity serves identities of findings from the store.
func NewFindingIdentity(st *store.Store, j *jobs.Jobs, keyring *secret.Keyring, redactionKey []byte) *FindingIdentity {
	return &FindingIdentity{store: st, jobs: j, previews: previewTokens{keyring}, redactionKey: redactionKey}
}

// ListIdentityChanges lists splits, merges and moves, the newest first.
func (s *FindingIdentity) ListIdentityChanges(ctx context.Context, r *findingsv1.ListIdentityChangesRequest) (*findingsv1.ListIdentityChangesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", nil
	digest, err := page.DigestOf("identity changes", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.IdentityChange.Query()
	if r.GetProjectId() != 0 {
		query.Where(identitychange.ProjectID(r.GetProjectId()))
	}
	if id := r.GetFindingId(); id != 0 {
		query.Where(identitychange.Or(identitychange.FindingID(id), identitychange.OtherID(id)))
	}
	if continued {
		query.Where(identitychange.IDLT(key.ID))
	}
	limit := defaultChanges
	if r.Limit != nil {
		limit = int(r.GetLimit())
	}
	rows, err := newestChanges(query).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	out := &findingsv1.ListIdentityChangesResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		out.Changes = append(out.Changes, convertChange(row))
	}
	return out, nil
}

// newestChanges orders changes, newest first. It does not read the column before, which only an undo needs.
func newestChanges(query *ent.IdentityChangeQuery) *ent.IdentityChangeQuery {
	query.Order(ent.Desc(identitychange.FieldID)).Select(identitychange.FieldID, identitychange.FieldProjectID, identitychange.FieldKind,
		identitychange.FieldFindingID, identitychange.FieldOtherID, identitychange.FieldNote, identitychange.FieldActorKind,
		identitychange.FieldActorID, identitychange.FieldAt, identitychange.FieldUndoneAt)
	return query
}

func convertChange(row *ent.IdentityChange) *findingsv1.IdentityChange {
	out := &findingsv1.IdentityChange{
		Id: row.ID, ProjectId: row.ProjectID, FindingId: row.FindingID, Note: row.Note, ActorKind: row.ActorKind, ActorId: row.ActorID,
		At: timestamppb.New(store.Time(row.At)), Kind: findingsv1.IdentityChangeKind_IDENTITY_CHANGE_KIND_SPLIT,
	}
	switch row.Kind {
	case changeMerge:
		out.Kind = findingsv1.IdentityChangeKind_IDENTITY_CHANGE_KIND_MERGE
	case changeMove:
		out.Kind = findingsv1.IdentityChangeKind_IDENTITY_CHANGE_KIND_MOVE
	}
	if row.OtherID != 0 {
		out.OtherId = &row.OtherID
	}
	if row.UndoneAt != nil {
		out.UndoneAt = timestamppb.New(store.Time(*row.UndoneAt))
	}
	return out
}

// errValidated rolls back a change that was only validated.
var errValidated = errors.New("validated only")

// write makes a change of identities in a transaction, or only validates it: then the change is rolled back.
func (s *FindingIdentity) write(ctx context.Context, validateOnly bool, change func(ctx context.Context, tx *ent.Tx) error) error {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := change(ctx, tx); err != nil || !validateOnly {
			return err
		}
		return errValidated
	})
	if errors.Is(err, errValidated) {
		return nil
	}
	return err
}

// begin starts a change of identities. On PostgreSQL it locks the project, as triage and imports do.
func (s *FindingIdentity) begin(ctx context.Context, tx *ent.Tx, projectID int64, note string) (*identityEdit, error) {
	if s.store.Postgres() {
		if _, err := tx.Project.Query().Where(project.ID(projectID)).ForUpdate().OnlyID(ctx); err != nil {
			return nil, err
		}
	}
	e := &identityEdit{tx: tx, at: store.Now(), note: note, projectID: projectID, rows: map[int64]*editedFinding{}}
	e.deploymentID, _ = tenant.FromContext(ctx)
	if p, ok := access.FromContext(ctx); ok {
		e.actorKind, e.actorID = string(p.Kind), p.ID
	}
	return e, nil
}

// projectOf returns the project of a finding that the caller may see.
func projectOf(ctx context.Context, tx *ent.Tx, id int64) (int64, error) {
	row, err := tx.Finding.Query().Where(finding.ID(id)).Select(finding.FieldID, finding.FieldProjectID).Only(ctx)
	if ent.IsNotFound(err) {
		return 0, noFinding(id)
	}
	if err != nil {
		return 0, err
	}
	return row.ProjectID, nil
}

func noFinding(id int64) error { return apierr.NotFound("no finding %d", id) }

// finish writes the changed findings and the identity change.
func (e *identityEdit) finish(ctx context.Context, kind string, findingID, otherID int64, created []int64) (*ent.IdentityChange, error) {
	before, err := proto.MarshalOptions{Deterministic: true}.Marshal(e.before(created))
	if err != nil {
		return nil, err
	}
	if err := e.save(ctx); err != nil {
		return nil, err
	}
	return e.recordChange(ctx, kind, findingID, otherID, before)
}

// recordChange records the identity change.
func (e *identityEdit) recordChange(ctx context.Context, kind string, findingID, otherID int64, before []byte) (*ent.IdentityChange, error) {
	change, err := e.tx.IdentityChange.Create().SetDeploymentID(e.deploymentID).SetProjectID(e.projectID).SetKind(kind).
		SetFindingID(findingID).SetOtherID(otherID).SetNote(e.note).SetBefore(before).
		SetActorKind(e.actorKind).SetActorID(e.actorID).SetAt(e.at).Save(ctx)
	if err != nil {
		return nil, err
	}
	audit.Change(ctx, identityChangeKind, change.ID, nil, convertChange(change))
	return change, nil
}
