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
	// sendTimeout bounds one attempt. landTimeout is what a sender gets that does not end by itself then: after it nobody
	// waits for it any more.
	sendTimeout = 20 * time.Second
	landTimeout = time.Second
)

// errNeverEnded is why an attempt failed whose sender did not end in time.
var errNeverEnded = &channel.Error{Public: "the receiver did not let the exchange end within " + sendTimeout.String()}

// flight is a delivery on its way.
type flight struct {
	row  *ent.Delivery
	rule *openRule
	done func(error) // tells the circuit
}

// outcome is what became of a flight.
type outcome struct {
	flight
	sent     bool // false: not tried, or cut off
	status   int
	err      error
	duration time.Duration
	at       int64
}

// send makes one attempt. It returns soon after sendTimeout, or after the end of ctx, whatever the sender does.
func (f flight) send(ctx context.Context) outcome {
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	begun := time.Now()
	tried := make(chan outcome, 1)
	go func() {
		status, err := f.rule.send(sending, messageOf(f.row))
		tried <- outcome{status: status, err: err}
	}()
	out := outcome{err: errNeverEnded}
	select {
	case out = <-tried:
	case <-sending.Done():
		late := time.NewTimer(landTimeout)
		defer late.Stop()
		select {
		case out = <-tried:
		case <-late.C:
		}
	}
	out.flight, out.duration, out.at = f, time.Since(begun), store.Now()
	// A process that stops cuts attempts off. What some recipients have is known all the same.
	out.sent = out.err == nil || ctx.Err() == nil || len(describe(out.err).accepted) > 0
	return out
}

// ended says how a delivery ends for which the last attempt was made; ok is false when it is tried again.
func (o outcome) ended(now time.Time) (state, reason string, ok bool) {
	detail := describe(o.err)
	switch {
	case o.err == nil:
		return stateDelivered, "", true
	case detail.permanent && len(detail.refused) > 0 && len(o.haveIt()) > 0: // all others were refused for good
		return stateDelivered, detail.text, true
	case detail.permanent:
		return stateAbandoned, detail.text, true
	case now.UnixMicro() >= o.row.GiveUpAt:
		return stateAbandoned, detail.text + "; given up after " + retry.Patience.String(), true
	}
	return "", detail.text, false
}

// nextAttempt is when a delivery is tried again.
func (o outcome) nextAttempt(now time.Time) time.Time {
	delay := max(retry.Delay(o.row.Attempts+1, rand.Float64()), min(describe(o.err).retryAfter, retry.Patience))
	// The last attempt is made when the time is up, not before.
	return time.UnixMicro(min(now.Add(delay).UnixMicro(), max(o.row.GiveUpAt, now.UnixMicro()+1)))
}

// haveIt are the recipients of an e-mail that have it by now, if not all do.
func (o outcome) haveIt() []string {
	return append(o.row.DeliveredTo[:len(o.row.DeliveredTo):len(o.row.DeliveredTo)], describe(o.err).accepted...)
}
