package store

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
)

// txKey is the context key of the transaction of Write.
type txKey struct{}

// txHolder is filled when the transaction begins: ent hides the *sql.Tx that it works on, and a library that writes with
// SQL of its own (the job queue) needs it to take part in the transaction.
type txHolder struct {
	store *Store
	tx    *sql.Tx
}

// Tx returns the transaction of the Write that ctx comes from; ok is false outside of one, and in that of another store.
// It ends with that Write: never commit it, roll it back or keep it.
func (s *Store) Tx(ctx context.Context) (_ *sql.Tx, ok bool) {
	holder, _ := ctx.Value(txKey{}).(*txHolder)
	if holder == nil || holder.store != s || holder.tx == nil {
		return nil, false
	}
	return holder.tx, true
}

// writerDriver tells the holder in the context which transaction was begun.
type writerDriver struct{ *entsql.Driver }

// Tx begins a transaction.
func (d writerDriver) Tx(ctx context.Context) (dialect.Tx, error) {
	begun, err := d.Driver.Tx(ctx)
	if err != nil {
		return nil, err
	}
	if holder, ok := ctx.Value(txKey{}).(*txHolder); ok {
		if tx, ok := begun.(*entsql.Tx); ok {
			holder.tx, _ = tx.Tx.(*sql.Tx)
		}
	}
	return begun, nil
}
