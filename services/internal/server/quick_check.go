package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// quickCheckTimeout limits the integrity check. While it reads, the write-ahead log cannot be truncated.
const quickCheckTimeout = 10 * time.Minute

// Corruption describes the corruption of a database. "" means that none was found.
func Corruption(ctx context.Context, st *store.Store) string {
	problem, err := st.QuickCheck(ctx)
	if problem == "" && apierr.IsCorrupt(err) {
		return err.Error()
	}
	return problem
}

// checkPages checks the database once while the server runs, and makes the node not ready when it is corrupt.
func (p *probes) checkPages(ctx context.Context, st *store.Store, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, quickCheckTimeout)
	defer cancel()
	if problem := Corruption(ctx, st); problem != "" {
		p.damaged(ctx, log, problem)
	}
}

// damaged makes the node not ready, over HTTP and gRPC. Only a restart with an intact database ends that.
func (p *probes) damaged(ctx context.Context, log *slog.Logger, problem string) {
	if !p.corrupt.Swap(true) {
		log.ErrorContext(ctx, "the database is corrupt: this node is no longer ready; stop it and restore a backup", "problem", problem)
		p.health.Shutdown()
	}
}

// checkPages starts the check. It ends with the server.
func (s *Server) checkPages(st *store.Store) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.probes.checkPages(ctx, st, s.log)
	}()
	s.onClose("page check", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}
