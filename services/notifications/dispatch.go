package notifications

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// maxFlights is the maximum number of concurrent messages of a node, maxFlightsOfRule of one receiver, so that a slow
	// receiver does not block others. One deployment gets at most half; see slots.
	maxFlights       = 64
	maxFlightsOfRule = 8
	// recordSize and recordDelay control how many outcomes share a transaction.
	recordSize  = 64
	recordDelay = 100 * time.Millisecond
	// recordTimeout applies to the last outcomes of a run, lastRecordTimeout if the process must end at once.
	recordTimeout     = 20 * time.Second
	lastRecordTimeout = 2 * time.Second
	// turnTimeout applies to the reads and writes of one turn.
	turnTimeout = 2 * time.Minute
	// ruleTTL is how long a run caches a rule.
	ruleTTL = 5 * time.Second
	// leaseTime is how long a node has to send a delivery and write its outcome. Deliveries not sent when less than
	// leaseReserve is left are released.
	leaseTime    = 75 * time.Second
	leaseReserve = sendTimeout + 5*time.Second
)

// dispatch is the state of one run. One goroutine owns it; only the requests to receivers are concurrent.
type dispatch struct {
	engine   *engine
	stopping <-chan struct{} // closed when the process begins to stop
	claims   *claims
	waiting  map[int64][]*ent.Delivery // leased and not sent yet, by rule
	flights  *slots
	finished chan outcome
	rules    map[int64]*openRule
	// staleBefore: rules read before this time are read again.
	staleBefore time.Time

	outcomes  []outcome
	firstAt   time.Time // time of the first outcome
	expanding bool      // there may be events to expand
}

func newDispatch(e *engine, stopping <-chan struct{}) *dispatch {
	return &dispatch{
		engine: e, stopping: stopping, claims: newClaims(), waiting: map[int64][]*ent.Delivery{}, flights: newSlots(maxFlights, maxFlightsOfRule),
		finished: make(chan outcome, maxFlights), rules: map[int64]*openRule{}, expanding: true,
	}
}

// run turns events into deliveries and sends due ones, until nothing is left to wait for or the process stops. more is
// true if work is left. In any case it waits for messages in flight, for a bounded time, and writes their outcomes.
func (d *dispatch) run(ctx context.Context) (more bool, err error) {
	for more = true; more && err == nil && ctx.Err() == nil && !d.isStopping(); {
		more, err = d.turn(ctx)
	}
	return more, errors.Join(err, d.finish(ctx))
}

func (d *dispatch) isStopping() bool {
	select {
	case <-d.stopping:
		return true
	default:
		return false
	}
}

func (d *dispatch) turn(ctx context.Context) (more bool, err error) {
	if err := d.work(ctx); err != nil {
		return false, err
	}
	if d.flights.used > 0 || len(d.waiting) > 0 || len(d.outcomes) > 0 || d.expanding || !d.claims.idle {
		d.await(ctx)
		return true, nil
	}
	return d.sleep(ctx), nil
}

// work does the work that is due. Only the messages that it launches outlive it.
func (d *dispatch) work(running context.Context) (err error) {
	ctx, cancel := context.WithTimeout(running, turnTimeout)
	defer cancel()
	if d.expanding {
		if d.expanding, err = d.engine.expand(ctx); err != nil {
			return err
		}
	}
	if err := d.claim(ctx); err != nil {
		return err
	}
	if err := d.openRules(ctx); err != nil {
		return err
	}
	if err := d.hush(ctx, time.Now()); err != nil {
		return err
	}
	d.launch(running)
	if err := d.recordIfMany(ctx); err != nil {
		return err
	}
	return d.engine.announceOpened(ctx)
}

// finish releases unsent deliveries, waits for messages in flight, and writes all outcomes.
func (d *dispatch) finish(ctx context.Context) error {
	for id := range d.waiting {
		d.release(id)
	}
	patience := time.NewTimer(sendTimeout + 2*sendGrace) // each flight ends before; a bound in case one does not
	defer patience.Stop()
	for overdue := false; d.flights.used > 0 && !overdue; {
		select {
		case o := <-d.finished:
			d.finishFlight(o)
		case <-patience.C:
			overdue = true
		}
	}
	timeout := recordTimeout
	if ctx.Err() != nil {
		timeout = lastRecordTimeout
	}
	// Write the outcomes even if the process is about to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return d.record(ctx)
}

// release releases the waiting deliveries of a rule.
func (d *dispatch) release(ruleID int64) {
	for _, row := range d.waiting[ruleID] {
		d.finishFlight(outcome{flight: flight{row: row}})
	}
	delete(d.waiting, ruleID)
}

// launch sends as many messages as allowed, in fair turns.
func (d *dispatch) launch(ctx context.Context) {
	for {
		var waiting []receiver
		for id, rows := range d.waiting {
			if rule := d.rules[id]; rule == nil || d.engine.paces.free(rule.pace, time.Now()) {
				waiting = append(waiting, receiverOf(rows[0]))
			}
		}
		next, ok := d.flights.choose(waiting)
		if !ok {
			return
		}
		of := waiting[next]
		rule, row := d.rules[of.ruleID], d.waiting[of.ruleID][0]
		if time.Until(store.Time(row.LockedUntil)) < leaseReserve {
			d.pop(of.ruleID)
			d.finishFlight(outcome{flight: flight{row: row}})
			continue
		}
		done, err := d.engine.breakers.of(rule.endpoint).Allow()
		if err != nil { // the circuit is open or half open: all messages of the rule wait
			d.release(of.ruleID)
			continue
		}
		d.pop(of.ruleID)
		d.flights.take(of)
		d.engine.paces.begin(rule.pace, time.Now())
		f := flight{row: row, rule: rule, done: done}
		go func() { d.finished <- f.send(ctx) }()
	}
}

func (d *dispatch) pop(ruleID int64) {
	if d.waiting[ruleID] = d.waiting[ruleID][1:]; len(d.waiting[ruleID]) == 0 {
		delete(d.waiting, ruleID)
	}
}

// finishFlight processes an outcome.
func (d *dispatch) finishFlight(o outcome) {
	d.claims.slots.release(receiverOf(o.row))
	if o.done != nil {
		d.flights.release(receiverOf(o.row))
		d.engine.paces.end(o.rule.pace, time.Now())
		switch {
		case !o.sent:
			o.done(errInterrupted)
		case len(describe(o.err).accepted) > 0: // the mail server works
			o.done(nil)
		default:
			o.done(o.err)
		}
		if o.sent {
			d.engine.senders.causes.note(context.Background(), receiverOf(o.row), o.rule.channel, o.err, slog.Int64("delivery_id", o.row.ID))
		}
	}
	if len(d.outcomes) == 0 {
		d.firstAt = time.Now()
	}
	d.outcomes = append(d.outcomes, o)
}

// await waits for outcomes, or for a short time.
func (d *dispatch) await(ctx context.Context) {
	pause := min(recordDelay, max(time.Until(d.claims.notBefore), time.Millisecond))
	if d.expanding {
		pause = 0
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case o := <-d.finished:
		d.finishFlight(o)
		for len(d.finished) > 0 {
			d.finishFlight(<-d.finished)
		}
	case <-d.engine.wake:
		d.recheck()
	case <-timer.C:
	case <-d.stopping:
	case <-ctx.Done():
	}
}

// recheck resets all timers after a change.
func (d *dispatch) recheck() {
	d.expanding, d.staleBefore, d.claims.notBefore = true, time.Now(), time.Time{}
}

// sleep waits for the next due delivery; more is false if none is due within period.
func (d *dispatch) sleep(ctx context.Context) (more bool) {
	next := d.claims.nextDue
	if next.IsZero() || time.Until(next) > period {
		return false
	}
	timer := time.NewTimer(max(time.Until(next), time.Until(d.claims.notBefore), time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.engine.wake:
		d.recheck()
	case <-d.stopping:
	case <-ctx.Done():
	}
	return true
}

func (d *dispatch) recordIfMany(ctx context.Context) error {
	if len(d.outcomes) >= recordSize || len(d.outcomes) > 0 && time.Since(d.firstAt) >= recordDelay {
		return d.record(ctx)
	}
	return nil
}

// record writes outcomes. If that fails, they are kept for the end of the run.
func (d *dispatch) record(ctx context.Context) error {
	if len(d.outcomes) == 0 {
		return nil
	}
	if err := d.engine.record(ctx, d.outcomes); err != nil {
		return fmt.Errorf("write what became of deliveries: %w", err)
	}
	d.outcomes = nil
	return nil
}
