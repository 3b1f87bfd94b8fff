package notifications

import (
	"context"
	"log/slog"

	"github.com/palisade/palisade/services/internal/buckets"
	"github.com/palisade/palisade/services/internal/telemetry"
	"github.com/palisade/palisade/services/notifications/channel"
)

const (
	// causesAtOnce is how many failures of a deployment's channel are logged at once, causesPerSecond how many later.
	causesAtOnce    = 10
	causesPerSecond = 0.1
	// maxCauses is how many deployments and channels are counted.
	maxCauses = 1000
)

// causes logs why messages could not be sent. Tenants get a text that reveals nothing about the operator's network.
type causes struct {
	log   *slog.Logger
	rates *buckets.Buckets[causeKey]
}

type causeKey struct {
	deploymentID int64
	channel      string
}

func newCauses(log *slog.Logger) *causes {
	return &causes{log: log, rates: buckets.New[causeKey](maxCauses, causesPerSecond, causesAtOnce)}
}

// note logs a failed attempt; nil is success. more identifies the message: ctx has the id of a request.
func (c *causes) note(ctx context.Context, of receiver, kind string, err error, more ...slog.Attr) {
	if err == nil || !c.rates.Of(causeKey{of.deploymentID, kind}).Allow() {
		return
	}
	attrs := append(more, slog.String("channel", kind), slog.Int64("deployment_id", of.deploymentID))
	if of.ruleID != 0 {
		attrs = append(attrs, slog.Int64("rule_id", of.ruleID))
	}
	attrs = append(attrs, slog.String("error", describe(err).text), telemetry.Cause(channel.Cause(err)))
	c.log.LogAttrs(ctx, slog.LevelWarn, "a notification could not be sent", attrs...)
}
