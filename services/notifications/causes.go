package notifications

import (
	"context"
	"errors"
	"log/slog"
	"net/url"

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
	attrs = append(attrs, slog.String("error", describe(err).text), telemetry.Cause(causeOf(err)))
	c.log.LogAttrs(ctx, slog.LevelWarn, "a notification could not be sent", attrs...)
}

// causeOf is the text of a sender's error for the operator. It leaves out the URL of a request, which can be a secret.
func causeOf(err error) string {
	var known *channel.Error
	for errors.As(err, &known) {
		if err = known.Unwrap(); err == nil {
			return "" // the public text says all
		}
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return err.Error()
}
