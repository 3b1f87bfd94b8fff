package audit

import (
	"context"
	"fmt"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/schema/field"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/audithead"
	"github.com/palisade/palisade/ent/migrate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// storedEntry has the columns of an entry as stored: the text of the changes is hashed, even if it is invalid JSON.
type storedEntry struct {
	ID           int64  `sql:"id"`
	DeploymentID int64  `sql:"deployment_id"`
	Sequence     int64  `sql:"sequence"`
	ActorKind    string `sql:"actor_kind"`
	ActorID      int64  `sql:"actor_id"`
	ActorName    string `sql:"actor_name"`
	UserID       int64  `sql:"user_id"`
	Method       string `sql:"method"`
	Code         string `sql:"code"`
	Request      string `sql:"request"`
	RequestID    string `sql:"request_id"`
	Remote       string `sql:"remote"`
	Changes      []byte `sql:"changes"`
	At           int64  `sql:"at"`
	PreviousHash []byte `sql:"previous_hash"`
	Hash         []byte `sql:"hash"`
}

// entry returns the entry without its changes.
func (s *storedEntry) entry() *ent.AuditEntry {
	return &ent.AuditEntry{
		ID: s.ID, DeploymentID: s.DeploymentID, Sequence: s.Sequence, ActorKind: s.ActorKind, ActorID: s.ActorID, ActorName: s.ActorName,
		UserID: s.UserID, Method: s.Method, Code: s.Code, Request: s.Request, RequestID: s.RequestID, Remote: s.Remote, At: s.At,
		PreviousHash: s.PreviousHash, Hash: s.Hash,
	}
}

// storedEntries runs a query of entries.
func storedEntries(ctx context.Context, query *ent.AuditEntryQuery) (rows []storedEntry, err error) {
	return rows, query.Select(auditentry.Columns...).Scan(ctx, &rows)
}

// storageClass is the class of the values that servers store in a column of SQLite.
func storageClass(c *migrate.Column) string {
	switch c.Type {
	case field.TypeInt64:
		return "integer"
	case field.TypeString:
		return "text"
	}
	return "blob" // also JSON
}

// misstored selects rows of a table with a value of another class than servers store. SQLite stores values of any class
// in any column, and reads many of them alike.
func misstored(table *migrate.Table) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		var wrong []string
		for _, c := range table.Columns {
			classes := "'" + storageClass(c) + "'"
			if c.Nullable {
				classes += ", 'null'"
			}
			wrong = append(wrong, fmt.Sprintf("typeof(%s) NOT IN (%s)", s.C(c.Name), classes))
		}
		s.Where(entsql.ExprP("(" + strings.Join(wrong, " OR ") + ")"))
	}
}

// firstMisstored returns the number of the first entry of the chain that misstored selects, which may be no number at
// all; nil without one.
func (t *Trail) firstMisstored(ctx context.Context) (*string, error) {
	if t.store.Postgres() {
		return nil, nil
	}
	var numbers []string
	err := t.store.Reader.AuditEntry.Query().Where(chained, misstored(migrate.AuditEntriesTable)).Order(ent.Asc(auditentry.FieldSequence)).
		Limit(1).Select(auditentry.FieldSequence).Scan(ctx, &numbers)
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	return &numbers[0], nil
}

// sequenceBelow selects the entries before a number from firstMisstored. SQLite compares it as it sorts.
func sequenceBelow(number string) func(*entsql.Selector) {
	return func(s *entsql.Selector) { s.Where(entsql.LT(s.C(auditentry.FieldSequence), number)) }
}

// misstoredUnchained counts the entries outside the chain that misstored selects, or that have empty changes.
func (t *Trail) misstoredUnchained(ctx context.Context) (int, error) {
	if t.store.Postgres() {
		return 0, nil
	}
	query := t.store.Reader.AuditEntry.Query().Where(auditentry.SequenceLTE(0))
	emptied, err := query.Clone().Where(emptyIn(auditentry.FieldChanges)).Count(ctx)
	if err != nil || emptied > 0 {
		return emptied, err
	}
	return query.Where(misstored(migrate.AuditEntriesTable)).Count(ctx)
}

// emptyIn selects rows with an empty value in one of these columns: servers store NULL instead.
func emptyIn(columns ...string) func(*entsql.Selector) {
	return func(s *entsql.Selector) {
		var empty []*entsql.Predicate
		for _, name := range columns {
			empty = append(empty, entsql.ExprP("length("+s.C(name)+") = 0"))
		}
		s.Where(entsql.Or(empty...))
	}
}

// headMisstored reports whether the head has values that no server stores: of another class, or empty instead of NULL.
func (t *Trail) headMisstored(ctx context.Context) (bool, error) {
	heads := t.store.Reader.AuditHead.Query()
	found, err := heads.Clone().Where(emptyIn(audithead.FieldHash, audithead.FieldSeal, audithead.FieldIds, audithead.FieldOrigin)).Exist(ctx)
	if err != nil || found || t.store.Postgres() {
		return found, err
	}
	return heads.Where(misstored(migrate.AuditHeadsTable)).Exist(ctx)
}

// Owners returns the ids of the deployments that have entries or a head, in any order, and the number of rows whose
// deployment is no number.
func Owners(ctx context.Context, st *store.Store) (ids []int64, strays int, err error) {
	ctx = tenant.System(ctx)
	entries, heads := st.Reader.AuditEntry.Query(), st.Reader.AuditHead.Query()
	if !st.Postgres() {
		stray := func(s *entsql.Selector) {
			s.Where(entsql.ExprP("typeof(" + s.C(auditentry.FieldDeploymentID) + ") <> 'integer'"))
		}
		owned := func(s *entsql.Selector) {
			s.Where(entsql.ExprP("typeof(" + s.C(auditentry.FieldDeploymentID) + ") = 'integer'"))
		}
		strays, err = entries.Clone().Where(stray).Count(ctx)
		if err != nil {
			return nil, 0, err
		}
		more, err := heads.Clone().Where(stray).Count(ctx)
		if err != nil {
			return nil, 0, err
		}
		strays += more
		entries, heads = entries.Where(owned), heads.Where(owned)
	}
	if err := heads.Select(audithead.FieldDeploymentID).Scan(ctx, &ids); err != nil {
		return nil, 0, err
	}
	var writers []int64
	err = entries.Unique(true).Select(auditentry.FieldDeploymentID).Scan(ctx, &writers)
	return append(ids, writers...), strays, err
}
