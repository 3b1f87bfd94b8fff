package ingest

import (
	"context"
	"time"

	"github.com/palisade/palisade/ent/pendingimport"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// announceThreshold is the number of created findings from which an import is announced. Lists can skip fewer
	// quickly.
	announceThreshold = 1000
	// announceTimeout limits how long an import waits for the announcement.
	announceTimeout = 2 * time.Second
)

// announce publishes the creation time of this import's findings while they are uncommitted (see ent.PendingImport). It
// writes outside of the transaction; the transaction deletes the announcement when it commits. If it fails, lists are
// slower, so the import continues. The findings then get another creation time, because the announcement may have been
// written after all.
func (s *session) announce(ctx context.Context, fresh int) error {
	current, ok := store.CurrentTransaction(ctx)
	if !ok || !s.store.Postgres() || fresh < announceThreshold {
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

// aside runs a statement outside of the transaction, and reports whether it certainly succeeded.
func (s *session) aside(ctx context.Context, query string, since int64) bool {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	return s.store.ExecOutside(ctx, query, s.deploymentID, since) == nil
}
