package ai

import (
	"context"
	"fmt"
	"math"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// hourly is the maximum number of analyses per hour and deployment (contract facts 2.5).
const hourly = 1000

// usage is a deployment's number of orders in the calendar month and hour (both UTC) of a time. A fix counts as an
// analysis. Orders that failed give their quota back.
type usage struct {
	month, hour int64
	now         time.Time
}

// usage counts for the whole deployment, independent of what the caller may see.
func (a *Assistant) usage(ctx context.Context, db *ent.Client, deploymentID int64) (usage, error) {
	u := usage{now: time.Now().UTC()}
	var err error
	if u.month, err = ordered(ctx, db, deploymentID, u.monthStart()); err != nil {
		return u, err
	}
	u.hour, err = ordered(ctx, db, deploymentID, u.now.Truncate(time.Hour))
	return u, err
}

// ordered counts the orders since a time that are waiting or done.
func ordered(ctx context.Context, db *ent.Client, deploymentID int64, since time.Time) (int64, error) {
	ctx = tenant.System(ctx)
	analyses, err := db.AiAnalysis.Query().Where(aianalysis.DeploymentID(deploymentID), aianalysis.CreatedAtGTE(store.Micros(since)),
		aianalysis.Counted(true), aianalysis.StatusNEQ(failed)).Count(ctx)
	if err != nil {
		return 0, err
	}
	fixes, err := db.AiFix.Query().Where(aifix.DeploymentID(deploymentID), aifix.StatusNEQ(fixFailed),
		aifix.RequestedAtGTE(store.Micros(since))).Count(ctx)
	return int64(analyses) + int64(fixes), err
}

func (u usage) monthStart() time.Time {
	return time.Date(u.now.Year(), u.now.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// check rejects a request for more analyses than are left. Such a request has no effect.
func (u usage) check(more, monthly int64) error {
	switch {
	case u.month+more > monthly:
		return exhausted("a month", u.month, monthly, more, u.now, u.monthStart().AddDate(0, 1, 0))
	case u.hour+more > hourly:
		return exhausted("an hour", u.hour, hourly, more, u.now, u.now.Truncate(time.Hour).Add(time.Hour))
	}
	return nil
}

func exhausted(period string, used, most, more int64, now, reset time.Time) error {
	text := fmt.Sprintf("the quota of %d analyses %s does not suffice: %d are used, %d more were asked for; it resets at %s",
		most, period, used, more, reset.Format(time.RFC3339))
	wait := time.Duration(math.Ceil(reset.Sub(now).Seconds())) * time.Second
	return apierr.New(codes.ResourceExhausted, errorsv1.Reason_REASON_RATE_LIMITED, text, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
}

// lockQuota serializes the callers of one deployment, so that concurrent requests cannot exceed the quota. SQLite has a
// single writer anyway.
func (a *Assistant) lockQuota(ctx context.Context, tx *ent.Tx, deploymentID int64) error {
	if !a.store.Postgres() {
		return nil
	}
	_, err := tx.Deployment.Query().Where(deployment.ID(deploymentID)).ForUpdate().OnlyID(ctx)
	return err
}
