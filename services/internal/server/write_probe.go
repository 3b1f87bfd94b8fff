package server

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
)

// Intervals of the write probe. Tests shorten the first two.
var (
	// writeProbeInterval is how often a node probes whether its database accepts writes.
	writeProbeInterval = 5 * time.Second
	// writeProbeAgain is the interval while the database does not.
	writeProbeAgain = time.Second
	// writeProbeTimeout limits one probe. A write that waits longer is queued behind other work.
	writeProbeTimeout = 3 * time.Second
)

// errProbed rolls back a successful probe.
var errProbed = errors.New("the database accepts writes")

// ProbeWrite makes a change and rolls it back.
func ProbeWrite(ctx context.Context, st *store.Store) error {
	ctx, cancel := context.WithTimeout(ctx, writeProbeTimeout)
	defer cancel()
	err := st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		// The name is unique, so that no node waits for the probe of another.
		if err := tx.Setting.Create().SetName("write_probe_" + rand.Text()).SetValue([]byte{0}).Exec(ctx); err != nil {
			return err
		}
		return errProbed
	})
	if errors.Is(err, errProbed) {
		return nil
	}
	return err
}

// Refusal returns in public words why a database refuses writes. "" means unknown, because the database is busy.
func Refusal(err error) string {
	mapped := apierr.Map(err)
	switch code := status.Code(mapped); {
	case code == codes.DeadlineExceeded, code == codes.Canceled, apierr.IsBusy(err):
		return ""
	case apierr.IsReadOnly(err):
		return "the database accepts no writes: it is read only"
	case apierr.Is(mapped, errorsv1.Reason_REASON_STORAGE_FULL):
		return "the database accepts no writes: the disk is full"
	case code == codes.Unavailable:
		return "the database cannot be reached"
	}
	return "the database refuses changes; the log says why"
}

// watchWrites probes periodically whether the database accepts writes, and makes the node not ready while it does not.
// A busy database changes nothing: the node keeps its state during a long import.
func (p *probes) watchWrites(ctx context.Context, log *slog.Logger, probe func(context.Context) error) {
	wait := time.NewTimer(writeProbeInterval)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		case <-p.refusal:
			wait.Reset(writeProbeAgain)
			continue
		}
		switch err := probe(ctx); {
		case err == nil:
			if p.writable() {
				log.InfoContext(ctx, "the database accepts writes again: this node is ready")
			}
		case ctx.Err() == nil:
			p.noteRefusal(ctx, log, err)
		}
		if p.refusing.Load() == nil {
			wait.Reset(writeProbeInterval)
		} else {
			wait.Reset(writeProbeAgain)
		}
	}
}

func (p *probes) noteRefusal(ctx context.Context, log *slog.Logger, err error) (changed bool) {
	reason := Refusal(err)
	if changed = reason != "" && p.refused(reason); changed {
		log.ErrorContext(ctx, "the database accepts no writes: this node is not ready until it does", "error", err)
	}
	return changed
}

// writeFailed makes the node not ready at once when a write of a call shows that the database refuses writes. The probe
// then decides when it is ready again.
func (p *probes) writeFailed(log *slog.Logger, err error) {
	if !p.ready.Load() || !apierr.RefusesWrites(err) || !p.noteRefusal(context.Background(), log, err) {
		return
	}
	select {
	case p.refusal <- struct{}{}:
	default: // the probe wakes up already
	}
}

// watchWrites starts the probe, which also keeps the room for deletes when the disk has space again. It ends with the
// server.
func (s *Server) watchWrites(st *store.Store, room *spool.Room) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.probes.watchWrites(ctx, s.log, func(ctx context.Context) error {
			_ = room.Keep() // the start has logged why it fails
			err := ProbeWrite(ctx, st)
			if err == nil && s.probes.refusing.Load() != nil {
				st.ReplaceConnections() // some may still lead to a server that refused writes
			}
			return err
		})
	}()
	s.onClose("write probe", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}
