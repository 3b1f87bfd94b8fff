package audit

import (
	"context"
	"fmt"
	"log/slog"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/audithead"
	"github.com/palisade/palisade/ent/column"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// Trail writes and verifies the chains of all deployments.
type Trail struct {
	store *store.Store
	key   []byte
	// marked: each deployment has an origin. It is false for a store that no server of this version has opened yet.
	marked  bool
	log     *slog.Logger
	pending pendingEntries
}

// chained selects the entries of the chain. The text equals the index's WHERE clause: with a parameter neither
// database could use the index.
func chained(s *entsql.Selector) {
	s.Where(entsql.P(func(b *entsql.Builder) { b.Ident(s.C(auditentry.FieldSequence)).WriteString(" > 0") }))
}

// Append writes an entry in its own transaction, for a call that changed nothing: it was refused, it failed, or
// nothing had to change.
func (t *Trail) Append(ctx context.Context, call Call, deploymentID int64, code codes.Code) error {
	return t.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return t.append(ctx, tx, call, deploymentID, code, nil)
	})
}

// append extends the chain of a deployment. Call it last in a transaction, because it blocks other appends until
// the commit.
func (t *Trail) append(ctx context.Context, tx *ent.Tx, call Call, deploymentID int64, code codes.Code, changes []column.AuditChange) error {
	if call.Actor.Kind == "" {
		return apierr.Internal(errNoActor)
	}
	return t.add(ctx, tx, entryOf(call, deploymentID, code, changes))
}

// entryOf returns the entry of a call, without time and sequence.
func entryOf(call Call, deploymentID int64, code codes.Code, changes []column.AuditChange) *ent.AuditEntry {
	return &ent.AuditEntry{
		DeploymentID: deploymentID,
		ActorKind:    call.Actor.Kind,
		ActorID:      call.Actor.ID,
		ActorName:    clean(call.Actor.Name),
		UserID:       call.Actor.UserID,
		Method:       call.Method,
		Code:         code.String(),
		Request:      requestJSON(call.Request),
		RequestID:    call.RequestID,
		Remote:       clean(call.Remote),
		Changes:      changes,
	}
}

// add stores an entry at the end of its deployment's chain.
func (t *Trail) add(ctx context.Context, tx *ent.Tx, entry *ent.AuditEntry) error {
	ctx = tenant.NewContext(ctx, entry.DeploymentID)
	err := t.chain(ctx, tx, entry)
	if ent.IsConstraintError(err) {
		return apierr.Internal(fmt.Errorf("audit entry: %w", err)) // an internal error: the caller has not caused it
	}
	if err != nil {
		return fmt.Errorf("audit entry: %w", err)
	}
	return nil
}

// chain assigns the entry's sequence and hashes, and stores it.
func (t *Trail) chain(ctx context.Context, tx *ent.Tx, entry *ent.AuditEntry) error {
	head, err := t.lockHead(ctx, tx)
	if err != nil {
		return err
	}
	if err := t.place(ctx, tx, head, entry); err != nil {
		return err
	}
	if entry.At == 0 { // a pending entry keeps the time of its call
		entry.At = store.Now()
	}
	if entry.Hash, err = t.hash(entry); err != nil {
		return err
	}
	ids, sealed, err := t.idsUntil(ctx, tx, head)
	if err != nil {
		return err
	}
	create := tx.AuditEntry.Create().SetSequence(entry.Sequence).SetActorKind(entry.ActorKind).SetActorID(entry.ActorID).
		SetActorName(entry.ActorName).SetUserID(entry.UserID).SetMethod(entry.Method).SetCode(entry.Code).SetRequest(entry.Request).
		SetRequestID(entry.RequestID).SetRemote(entry.Remote).SetAt(entry.At).SetPreviousHash(entry.PreviousHash).SetHash(entry.Hash)
	if len(entry.Changes) > 0 {
		create.SetChanges(entry.Changes)
	}
	row, err := create.Save(ctx)
	if err != nil {
		return err
	}
	// Not head.Update(), which would read the row again.
	update := tx.AuditHead.Update().Where(audithead.ID(head.ID)).SetSequence(entry.Sequence).SetHash(entry.Hash).
		SetSeal(t.seal(entry.DeploymentID, entry.Sequence, entry.Hash))
	if sealed {
		update.SetIds(t.coverID(ids, entry.DeploymentID, head.ID, entry.Sequence, row.ID).column())
	}
	return update.Exec(ctx)
}

// lockHead locks the chain's head, so that appends to the same chain are serialized. SQLite serializes them anyway.
func (t *Trail) lockHead(ctx context.Context, tx *ent.Tx) (*ent.AuditHead, error) {
	query := tx.AuditHead.Query()
	if t.store.Postgres() {
		query.ForUpdate()
	}
	head, err := query.Clone().Only(ctx)
	if !ent.IsNotFound(err) {
		return head, err
	}
	deploymentID, _ := tenant.FromContext(ctx)
	err = tx.AuditHead.Create().SetDeploymentID(deploymentID).OnConflictColumns(audithead.FieldDeploymentID).Ignore().Exec(ctx)
	if err != nil {
		return nil, err
	}
	return query.Only(ctx)
}

// place assigns the sequence after the head. If the head was edited or removed, entries may have been cut off. It
// then skips a number, so that the chain stays broken here and Verify reports it.
func (t *Trail) place(ctx context.Context, tx *ent.Tx, head *ent.AuditHead, entry *ent.AuditEntry) error {
	if t.sealed(head) {
		entry.Sequence, entry.PreviousHash = head.Sequence+1, head.Hash
		return nil
	}
	last, err := tx.AuditEntry.Query().Where(chained).Order(ent.Desc(auditentry.FieldSequence)).First(ctx)
	switch {
	case ent.IsNotFound(err):
		last = &ent.AuditEntry{}
	case err != nil:
		return err
	}
	if last.Sequence == 0 && head.Sequence == 0 && len(head.Hash) == 0 && len(head.Seal) == 0 {
		entry.Sequence = 1
		return nil
	}
	entry.Sequence = max(last.Sequence, head.Sequence) + 2
	t.log.ErrorContext(ctx, "the head of the audit trail was edited or removed outside of Palisade; the trail continues after a gap (see: palisade audit verify)",
		"deployment_id", entry.DeploymentID, "sequence", entry.Sequence)
	return nil
}
