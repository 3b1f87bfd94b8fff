package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// quickCheckTimeout bounds the check of a database's pages. A reader keeps the write-ahead log from being emptied.
const quickCheckTimeout = 10 * time.Minute

// Corruption says what is wrong with the pages of a database; "" if nothing is known.
func Corruption(ctx context.Context, st *store.Store) string {
	problem, err := st.QuickCheck(ctx)
	if problem == "" && apierr.IsCorrupt(err) {
		return err.Error()
	}
	return problem
}

// checkPages looks through the database once, beside what is served, and takes the node out of service when it is
// corrupt.
func (p *probes) checkPages(ctx context.Context, st *store.Store, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, quickCheckTimeout)
	defer cancel()
	if problem := Corruption(ctx, st); problem != "" {
		p.damaged(ctx, log, problem)
	}
}

// damaged takes the node out of service, for HTTP and gRPC alike. There is no way back but a start with a database that
// is whole.
func (p *probes) damaged(ctx context.Context, log *slog.Logger, problem string) {
	if !p.corrupt.Swap(true) {
		log.ErrorContext(ctx, "the database is corrupt: this node is not ready any more; stop it and restore a backup", "problem", problem)
		p.health.Shutdown()
	}
}

// checkPages begins the check, and ends it with the server.
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
