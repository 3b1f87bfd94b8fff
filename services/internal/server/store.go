package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/dbcopy"
	"github.com/palisade/palisade/services/internal/store"
)

// OpenStore opens the database of a configuration. It refuses the target of an unfinished copy, because rows are
// missing and a write would prevent the copy from resuming.
func OpenStore(ctx context.Context, cfg config.Config) (*store.Store, error) {
	if cfg.Database == "" {
		if err := dbcopy.Unfinished(cfg.Data); err != nil {
			return nil, err
		}
	}
	st, err := store.Open(ctx, store.Options{Database: cfg.Database, DataDir: cfg.Data, MaxOpen: cfg.DBMaxOpen})
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	if st.Postgres() {
		if err := dbcopy.UnfinishedPostgres(ctx, st); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	return st, nil
}

// PendingAuditFile is the file beside the store with audit entries that the database has not accepted yet.
func PendingAuditFile(cfg config.Config) string { return filepath.Join(cfg.Data, "audit-pending") }

// keepPending keeps such entries in the file until the trail is closed. The server also starts without it.
func (s *Server) keepPending(ctx context.Context, trail *audit.Trail) {
	if err := trail.KeepPending(ctx, PendingAuditFile(s.config)); err != nil {
		s.log.WarnContext(ctx, "audit entries that the database does not accept are only in memory", "error", err)
	}
	s.onClose("audit trail", trail.Close)
}
