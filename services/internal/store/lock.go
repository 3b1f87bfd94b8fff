package store

import (
	"context"

	"github.com/palisade/palisade/ent"
)

// LockDeployment reads the context's deployment and locks its row until the end of the transaction, so that changes to
// what belongs to it follow each other. SQLite has only one writer.
func (s *Store) LockDeployment(ctx context.Context, tx *ent.Tx) (*ent.Deployment, error) {
	query := tx.Deployment.Query()
	if s.Postgres() {
		query.ForUpdate()
	}
	return query.Only(ctx)
}
