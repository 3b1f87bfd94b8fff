package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/tokenrequest"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

// requestExpiryInterval is how often expired requests are deleted.
const requestExpiryInterval = 10 * time.Minute

// TokenRequestsBackground deletes tokens that were confirmed and never picked up.
func TokenRequestsBackground(st *store.Store) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &requestExpiryWorker{store: st, tokens: access.NewTokens(st)})
		},
		Periodic: []*river.PeriodicJob{jobs.Every(requestExpiryInterval, requestExpiry{})},
	}
}

// requestExpiry is the periodic job.
type requestExpiry struct{}

// Kind is the name in the queue.
func (requestExpiry) Kind() string { return "token_request_expiry" }

// InsertOpts keeps jobs from piling up while no node works.
func (requestExpiry) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type requestExpiryWorker struct {
	river.WorkerDefaults[requestExpiry]
	store  *store.Store
	tokens *access.Tokens
}

// Work deletes expired requests in all deployments. There are few at any time.
func (w *requestExpiryWorker) Work(ctx context.Context, _ *river.Job[requestExpiry]) error {
	rows, err := w.store.Reader.TokenRequest.Query().Where(tokenrequest.ExpiresAtLTE(store.Now())).
		Order(tokenrequest.ByID()).All(tenant.System(ctx))
	for _, row := range rows {
		if err := w.expire(tenant.NewContext(ctx, row.DeploymentID), row); err != nil {
			return fmt.Errorf("token request %d: %w", row.ID, err)
		}
	}
	return err
}

// expire deletes a request and revokes its token; the token's value was never handed out.
func (w *requestExpiryWorker) expire(ctx context.Context, request *ent.TokenRequest) error {
	return w.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		deleted, err := tx.TokenRequest.Delete().Where(tokenrequest.ID(request.ID)).Exec(ctx)
		if err != nil || deleted == 0 { // a concurrent run won
			return err
		}
		rows, err := w.tokens.Lock(ctx, tx, token.ID(request.TokenID))
		if err != nil {
			return err
		}
		_, err = revoke(ctx, tx, w.tokens, rows)
		return err
	})
}
