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
	// marked says that each deployment of the store has an origin; false for a store that no server of this version has
	// opened yet.
	marked bool
	log    *slog.Logger
	owed   owed
}

// chained limits a query to entries with a place in the chain, in the words of the index of these: with a parameter in
// the place of the number, neither database would know that it may use it.
func chained(s *entsql.Selector) {
	s.Where(entsql.P(func(b *entsql.Builder) { b.Ident(s.C(auditentry.FieldSequence)).WriteString(" > 0") }))
}

// Append writes an entry in a transaction of its own, for a call that changed nothing: because it was refused, because
// it failed, or because everything was already as it asked for.
func (t *Trail) Append(ctx context.Context, call Call, deploymentID int64, code codes.Code) error {
	return t.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		return t.append(ctx, tx, call, deploymentID, code, nil)
	})
}

// append continues the chain of a deployment. It is the last step of a transaction: from here to the commit no other
// can append.
func (t *Trail) append(ctx context.Context, tx *ent.Tx, call Call, deploymentID int64, code codes.Code, changes []column.AuditChange) error {
	if call.Actor.Kind == "" {
		return apierr.Internal(errNobody)
	}
	return t.add(ctx, tx, entryOf(call, deploymentID, code, changes))
}

// entryOf is the entry of a call, without its time and its place.
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

// add gives an entry its place and stores it.
func (t *Trail) add(ctx context.Context, tx *ent.Tx, entry *ent.AuditEntry) error {
	ctx = tenant.NewContext(ctx, entry.DeploymentID)
	err := t.chain(ctx, tx, entry)
	if ent.IsConstraintError(err) {
		return apierr.Internal(fmt.Errorf("audit entry: %w", err)) // not the caller's fault, whatever the database says
	}
	if err != nil {
		return fmt.Errorf("audit entry: %w", err)
	}
	return nil
}

// chain gives the entry its place and stores it.
func (t *Trail) chain(ctx context.Context, tx *ent.Tx, entry *ent.AuditEntry) error {
	head, err := t.lockHead(ctx, tx)
	if err != nil {
		return err
	}
	if err := t.place(ctx, tx, head, entry); err != nil {
		return err
	}
	if entry.At == 0 { // one that is owed has the time of its call
		entry.At = store.Now()
	}
	if entry.Hash, err = t.hash(entry); err != nil {
		return err
	}
	create := tx.AuditEntry.Create().SetSequence(entry.Sequence).SetActorKind(entry.ActorKind).SetActorID(entry.ActorID).
		SetActorName(entry.ActorName).SetUserID(entry.UserID).SetMethod(entry.Method).SetCode(entry.Code).SetRequest(entry.Request).
		SetRequestID(entry.RequestID).SetRemote(entry.Remote).SetAt(entry.At).SetPreviousHash(entry.PreviousHash).SetHash(entry.Hash)
	if len(entry.Changes) > 0 {
		create.SetChanges(entry.Changes)
	}
	if err := create.Exec(ctx); err != nil {
		return err
	}
	// Not head.Update(), which reads the row again.
	return tx.AuditHead.Update().Where(audithead.ID(head.ID)).SetSequence(entry.Sequence).SetHash(entry.Hash).
		SetSeal(t.seal(entry.DeploymentID, entry.Sequence, entry.Hash)).Exec(ctx)
}

// lockHead makes those who append to the same chain take turns; on SQLite they do anyway.
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

// place puts the entry behind the head. A head that is not ours, because it was edited or removed, would hide what was
// cut off before: then a number is left out, so that the chain is broken here for good and Verify says where.
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
	t.log.ErrorContext(ctx, "the head of the audit trail was edited or removed outside of Palisade; the trail goes on behind a gap (see: palisade audit verify)",
		"deployment_id", entry.DeploymentID, "sequence", entry.Sequence)
	return nil
}
