package store

import (
	"context"
	"database/sql"
	"slices"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/catalog"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
)

// txKey is the context key of the current Transaction.
type txKey struct{}

// Transaction is the transaction of one Write. Only the goroutine that runs the function of the Write may call its
// methods.
type Transaction struct {
	store *Store
	// tx is set when the transaction begins. ent hides its *sql.Tx, and the job queue needs it to write in the same
	// transaction.
	tx        *sql.Tx
	savepoint *savepoint // SQLite only
	before    []func(ctx context.Context, tx *ent.Tx) error
	ended     []func(committed bool)
	// catalog collects changes to other tables that lists of findings show.
	catalog *catalog.Changes
}

// CurrentTransaction returns the transaction of the Write that ctx comes from. ok is false outside a Write.
func CurrentTransaction(ctx context.Context) (t *Transaction, ok bool) {
	t, _ = ctx.Value(txKey{}).(*Transaction)
	return t, t != nil && t.tx != nil
}

// BeforeCommit runs fn after the function of the Write has returned nil, as the last statements of the transaction.
// An error of fn rolls the transaction back.
func (t *Transaction) BeforeCommit(fn func(ctx context.Context, tx *ent.Tx) error) {
	t.before = append(t.before, fn)
}

// OnEnd calls fn after the transaction has ended.
func (t *Transaction) OnEnd(fn func(committed bool)) { t.ended = append(t.ended, fn) }

func (t *Transaction) beforeCommit(ctx context.Context, tx *ent.Tx) error {
	for _, fn := range t.before {
		if err := fn(ctx, tx); err != nil {
			return err
		}
	}
	return t.reviseCatalog(ctx, tx)
}

// reviseCatalog must be the last statement. It locks rows of deployments. A transaction that then takes another
// lock could deadlock with one that waits for these rows.
func (t *Transaction) reviseCatalog(ctx context.Context, tx *ent.Tx) error {
	ids, all := t.catalog.Deployments()
	if len(ids) == 0 && !all {
		return nil
	}
	update := tx.Deployment.Update().AddCatalogRevision(1)
	if !all {
		slices.Sort(ids)
		update.Where(OneOf(deployment.FieldID, ids))
	}
	return update.Exec(tenant.System(ctx))
}

func (t *Transaction) end(committed bool) {
	t.tx = nil
	for _, fn := range t.ended {
		fn(committed)
	}
}

// Tx returns the *sql.Tx of the Write that ctx comes from. ok is false outside a Write, and in a Write of another
// store. The transaction ends with the Write: never commit it, roll it back or keep it.
func (s *Store) Tx(ctx context.Context) (_ *sql.Tx, ok bool) {
	current, ok := CurrentTransaction(ctx)
	if !ok || current.store != s {
		return nil, false
	}
	return current.tx, true
}

// writerDriver records the transaction that it begins in the Transaction of the context.
type writerDriver struct{ *entsql.Driver }

// Tx begins a transaction. On SQLite it begins a savepoint of the group's transaction.
func (d writerDriver) Tx(ctx context.Context) (dialect.Tx, error) {
	current, ok := ctx.Value(txKey{}).(*Transaction)
	if ok && current.savepoint != nil {
		begun, err := current.savepoint.begin(ctx)
		if err != nil {
			return nil, err
		}
		current.tx = current.savepoint.tx
		return begun, nil
	}
	begun, err := d.Driver.Tx(ctx)
	if err != nil {
		return nil, err
	}
	if tx, is := begun.(*entsql.Tx); ok && is {
		current.tx, _ = tx.Tx.(*sql.Tx)
	}
	return begun, nil
}
