package ingest

import (
	"context"
	"time"

	"github.com/palisade/palisade/ent/pendingimport"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// announceFrom is how many findings an import has to make to be announced: lists step over fewer in a moment.
	announceFrom = 1000
	// announcePatience is how long an import waits for it.
	announcePatience = 2 * time.Second
)

// announce tells lists the time that the fresh findings of this import have while they are not committed (see
// ent.PendingImport). It goes round the transaction, which takes it back when it is committed. Where it fails, lists
// are slower and nothing else, so that an import does not; but the findings get another time then, because the
// announcement may be there all the same.
func (s *session) announce(ctx context.Context, fresh int) error {
	current, ok := store.CurrentTransaction(ctx)
	if !ok || !s.store.Postgres() || fresh < announceFrom {
		return nil
	}
	since, takenBack := s.now, false
	current.OnEnd(func(committed bool) {
		if !committed || !takenBack {
			s.aside(context.WithoutCancel(ctx), "DELETE FROM pending_imports WHERE deployment_id = ? AND relevant_since = ?", since)
		}
	})
	if s.aside(ctx, "INSERT INTO pending_imports (deployment_id, relevant_since) VALUES (?, ?)", since) {
		rows, err := s.tx.PendingImport.Delete().Where(pendingimport.DeploymentID(s.deploymentID), pendingimport.RelevantSince(since)).Exec(ctx)
		if err != nil {
			return err
		}
		takenBack = rows > 0
	}
	if !takenBack {
		s.now = max(store.Now(), since+1)
	}
	return nil
}

// aside runs a statement about the import outside of its transaction, and reports whether it surely did.
func (s *session) aside(ctx context.Context, query string, since int64) bool {
	ctx, cancel := context.WithTimeout(ctx, announcePatience)
	defer cancel()
	return s.store.ExecOutside(ctx, query, s.deploymentID, since) == nil
}
