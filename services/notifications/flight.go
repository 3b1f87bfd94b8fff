package notifications

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/notifications/retry"
)

const (
	// sendTimeout limits one attempt. sendGrace is the extra time for a sender that ignores it; after that its result is
	// not waited for.
	sendTimeout = 20 * time.Second
	sendGrace   = time.Second
)

// errNoEnd is the failure of an attempt with a sender that did not return in time.
var errNoEnd = &channel.Error{Public: "the receiver did not let the exchange end within " + sendTimeout.String()}

// flight is a delivery being sent.
type flight struct {
	row  *ent.Delivery
	rule *openRule
	done func(error) // reports to the circuit
}

// outcome is the result of a flight.
type outcome struct {
	flight
	sent     bool // false: not tried, or interrupted
	status   int
	err      error
	duration time.Duration
	at       int64
}

// send makes one attempt. It returns soon after sendTimeout or the end of ctx, even if the sender hangs.
func (f flight) send(ctx context.Context) outcome {
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	begun := time.Now()
	tried := make(chan outcome, 1)
	go func() {
		status, err := f.rule.send(sending, messageOf(f.row, f.rule))
		tried <- outcome{status: status, err: err}
	}()
	out := outcome{err: errNoEnd}
	select {
	case out = <-tried:
	case <-sending.Done():
		late := time.NewTimer(sendGrace)
		defer late.Stop()
		select {
		case out = <-tried:
		case <-late.C:
		}
	}
	out.flight, out.duration, out.at = f, time.Since(begun), store.Now()
	// Stopping the process interrupts attempts. Recipients that have the message are recorded anyway.
	out.sent = out.err == nil || ctx.Err() == nil || len(describe(out.err).accepted) > 0
	return out
}

// ended returns the final state after the last attempt; ok is false if the delivery is retried.
func (o outcome) ended(now time.Time) (state, reason string, ok bool) {
	detail := describe(o.err)
	switch {
	case o.err == nil:
		return stateDelivered, "", true
	case detail.permanent && len(detail.refused) > 0 && len(o.received()) > 0: // all others were permanently refused
		return stateDelivered, detail.text, true
	case detail.permanent:
		return stateAbandoned, detail.text, true
	case now.UnixMicro() >= o.row.GiveUpAt:
		return stateAbandoned, detail.text + "; given up after " + retry.GiveUpAfter.String(), true
	}
	return "", detail.text, false
}

// nextAttempt is when a delivery is retried.
func (o outcome) nextAttempt(now time.Time) time.Time {
	delay := max(retry.Delay(o.row.Attempts+1, rand.Float64()), min(describe(o.err).retryAfter, retry.GiveUpAfter))
	// The last attempt is made when the time is up, not before.
	return time.UnixMicro(min(now.Add(delay).UnixMicro(), max(o.row.GiveUpAt, now.UnixMicro()+1)))
}

// received returns the recipients that have the e-mail, if some still lack it.
func (o outcome) received() []string {
	return append(o.row.DeliveredTo[:len(o.row.DeliveredTo):len(o.row.DeliveredTo)], describe(o.err).accepted...)
}
