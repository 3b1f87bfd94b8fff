package exportfile

import (
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/export"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// Request is what to export, and for whom.
type Request struct {
	DeploymentID int64
	// Format is the name of a format, and Request the message that says what to export.
	Format  string
	Request []byte
	// ActorKind and ActorID are the caller's.
	ActorKind string
	ActorID   int64
}

// Create stores a new export without a file, which the job of the same transaction writes. Older
// files may expire for it.
func Create(ctx context.Context, tx *ent.Tx, r Request) (*ent.Export, error) {
	now := store.Now()
	if err := makeRoom(ctx, tx, r, now); err != nil {
		return nil, err
	}
	return tx.Export.Create().SetDeploymentID(r.DeploymentID).SetFormat(r.Format).SetRequest(r.Request).SetActorKind(r.ActorKind).SetActorID(r.ActorID).
		SetCreatedAt(now).SetExpiresAt(now + Life.Microseconds()).Save(ctx)
}

// Find returns a complete export of the caller. Exports of others, and expired ones, are not found.
func Find(ctx context.Context, st *store.Store, id int64) (*ent.Export, error) {
	row, err := Own(ctx, st, id)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, apierr.NotFound("export %d not found: it may have expired", id)
	}
	if row.CompletedAt == nil {
		return nil, apierr.FailedPrecondition("export %d is not complete", id)
	}
	return row, nil
}

// Own returns an export of the caller, which may not be complete; nil if there is none.
func Own(ctx context.Context, st *store.Store, id int64) (*ent.Export, error) {
	caller, ok := access.FromContext(ctx)
	if !ok {
		return nil, nil
	}
	row, err := st.Reader.Export.Query().Where(export.ID(id), export.ActorKind(string(caller.Kind)), export.ActorID(caller.ID),
		export.ExpiresAtGT(store.Now())).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return row, err
}
