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

// txKey is the context key of the transaction of Write.
type txKey struct{}

// Transaction is that of one Write. Its methods are for the goroutine that runs the function of that Write.
type Transaction struct {
	store *Store
	// tx is filled when the transaction begins: ent hides the *sql.Tx that it works on, and a library that writes with SQL
	// of its own (the job queue) needs it to take part in the transaction.
	tx     *sql.Tx
	part   *part // on SQLite
	before []func(ctx context.Context, tx *ent.Tx) error
	ended  []func(committed bool)
	// catalog collects what the transaction changes of what lists of findings show of other tables.
	catalog *catalog.Changes
}

// CurrentTransaction returns the transaction of the Write that ctx comes from; ok is false outside of one.
func CurrentTransaction(ctx context.Context) (t *Transaction, ok bool) {
	t, _ = ctx.Value(txKey{}).(*Transaction)
	return t, t != nil && t.tx != nil
}

// BeforeCommit lets fn write what belongs to everything that the transaction has changed, as its last statements: when
// the function of the Write has returned nil. An error of fn rolls the transaction back.
func (t *Transaction) BeforeCommit(fn func(ctx context.Context, tx *ent.Tx) error) {
	t.before = append(t.before, fn)
}

// OnEnd tells fn whether the transaction was committed, when it has ended.
func (t *Transaction) OnEnd(fn func(committed bool)) { t.ended = append(t.ended, fn) }

func (t *Transaction) beforeCommit(ctx context.Context, tx *ent.Tx) error {
	for _, fn := range t.before {
		if err := fn(ctx, tx); err != nil {
			return err
		}
	}
	return t.reviseCatalog(ctx, tx)
}

// reviseCatalog is the very last statement: the rows of deployments that it locks are waited for by nobody who holds
// something that this transaction still wants.
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

// Tx returns the transaction of the Write that ctx comes from; ok is false outside of one, and in that of another
// store. It ends with that Write: never commit it, roll it back or keep it.
func (s *Store) Tx(ctx context.Context) (_ *sql.Tx, ok bool) {
	current, ok := CurrentTransaction(ctx)
	if !ok || current.store != s {
		return nil, false
	}
	return current.tx, true
}

// writerDriver tells the Transaction in the context which transaction was begun.
type writerDriver struct{ *entsql.Driver }

// Tx begins a transaction; on SQLite a part of one that several share.
func (d writerDriver) Tx(ctx context.Context) (dialect.Tx, error) {
	current, ok := ctx.Value(txKey{}).(*Transaction)
	if ok && current.part != nil {
		begun, err := current.part.begin(ctx)
		if err != nil {
			return nil, err
		}
		current.tx = current.part.tx
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
