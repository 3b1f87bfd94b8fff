package notifications

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/retry"
)

const (
	// maxFlights is how many messages a node sends at a time, maxFlightsOfRule how many of them to one receiver: a slow one
	// leaves room for the others.
	maxFlights       = 16
	maxFlightsOfRule = 8
	// claimSize is how many deliveries are taken at a time, maxWaitingOfRule how many of a rule may wait here before no more
	// of it are taken.
	claimSize        = 64
	maxWaitingOfRule = 16
	// recordSize and recordDelay say when outcomes are written: one transaction for many.
	recordSize  = 64
	recordDelay = 100 * time.Millisecond
	// claimPause keeps an empty ledger from being asked at every turn.
	claimPause = 200 * time.Millisecond
	// sendTimeout bounds one attempt.
	sendTimeout = 20 * time.Second
	// leaseTime is how long a node has to send what it took and to write what became of it. What is not sent when less than
	// leaseReserve is left of it is given back.
	leaseTime    = 75 * time.Second
	leaseReserve = sendTimeout + 5*time.Second
)

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

// dispatch is the sending of one run. One goroutine owns it; only the calls to receivers run beside it.
type dispatch struct {
	engine  *engine
	until   time.Time
	waiting map[int64][]*ent.Delivery // by rule
	flights map[int64]int             // by rule
	flying  int
	landed  chan outcome
	rules   map[int64]*openRule

	outcomes  []outcome
	firstAt   time.Time // of outcomes
	claimNext time.Time
	expanding bool // events may wait
}

func newDispatch(e *engine, until time.Time) *dispatch {
	return &dispatch{
		engine: e, until: until, waiting: map[int64][]*ent.Delivery{}, flights: map[int64]int{},
		landed: make(chan outcome, maxFlights), rules: map[int64]*openRule{}, expanding: true,
	}
}

// run turns events into deliveries and sends what is due, until the slice of time is over or there is nothing to wait for.
// more is true if something is left. Whatever happens, it waits for what it sent and writes what became of it.
func (d *dispatch) run(ctx context.Context) (more bool, err error) {
	for more = true; more && err == nil && ctx.Err() == nil && time.Now().Before(d.until); {
		more, err = d.turn(ctx)
	}
	return more, errors.Join(err, d.finish(ctx))
}

func (d *dispatch) turn(ctx context.Context) (more bool, err error) {
	if d.expanding {
		if d.expanding, err = d.engine.expand(ctx); err != nil {
			return false, err
		}
	}
	if err := d.claim(ctx); err != nil {
		return false, err
	}
	d.launch(ctx)
	if err := d.recordIfMany(ctx); err != nil {
		return false, err
	}
	if d.flying > 0 || len(d.waiting) > 0 || d.expanding {
		d.await(ctx)
		return true, nil
	}
	if err := d.record(ctx); err != nil {
		return false, err
	}
	return d.sleep(ctx)
}

// finish gives back what was not tried, waits for what is on its way, and writes everything down.
func (d *dispatch) finish(ctx context.Context) error {
	for _, rows := range d.waiting {
		for _, row := range rows {
			d.land(outcome{flight: flight{row: row}})
		}
	}
	for d.flying > 0 {
		d.land(<-d.landed)
	}
	// What was sent is to be known even when this process is about to end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	return d.record(ctx)
}

// claim takes more when little waits.
func (d *dispatch) claim(ctx context.Context) error {
	waiting := 0
	for _, rows := range d.waiting {
		waiting += len(rows)
	}
	if waiting > claimSize/2 || time.Now().Before(d.claimNext) {
		return nil
	}
	rows, err := d.engine.claim(ctx, claimSize, d.closedTo())
	if err != nil {
		return fmt.Errorf("take deliveries: %w", err)
	}
	if len(rows) < claimSize {
		d.claimNext = time.Now().Add(claimPause)
	}
	for _, row := range rows {
		d.waiting[row.RuleID] = append(d.waiting[row.RuleID], row)
	}
	return d.openRules(ctx, rows)
}

// closedTo are the rules of which nothing is to be taken now: their circuit is open, or enough of them waits here.
func (d *dispatch) closedTo() []int64 {
	ids := d.engine.breakers.openRules()
	for id, rows := range d.waiting {
		if len(rows) >= maxWaitingOfRule {
			ids = append(ids, id)
		}
	}
	for id := range d.flights {
		if r := d.rules[id]; r != nil && d.engine.breakers.of(r.endpoint).State() == gobreaker.StateHalfOpen {
			ids = append(ids, id)
		}
	}
	return ids
}

// launch sends as much as may be sent at a time.
func (d *dispatch) launch(ctx context.Context) {
	for id, rows := range d.waiting {
		for len(rows) > 0 && d.flying < maxFlights && d.flights[id] < maxFlightsOfRule {
			r := d.rules[id]
			if time.Until(store.Time(rows[0].LockedUntil)) < leaseReserve {
				d.land(outcome{flight: flight{row: rows[0], rule: r}})
				rows = rows[1:]
				continue
			}
			done, err := d.engine.breakers.of(r.endpoint).Allow()
			if err != nil { // the circuit is open, or its probe is on the way: all of them wait for it
				for _, row := range rows {
					d.land(outcome{flight: flight{row: row, rule: r}})
				}
				rows = nil
				break
			}
			f := flight{row: rows[0], rule: r, done: done}
			rows = rows[1:]
			d.flying++
			d.flights[id]++
			go func() { d.landed <- f.send(ctx) }()
		}
		if len(rows) == 0 {
			delete(d.waiting, id)
		} else {
			d.waiting[id] = rows
		}
	}
}

// send makes one attempt.
func (f flight) send(ctx context.Context) outcome {
	sending, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	begun := time.Now()
	status, err := f.rule.send(sending, messageOf(f.row))
	out := outcome{flight: f, sent: true, status: status, err: err, duration: time.Since(begun), at: store.Now()}
	if err != nil && ctx.Err() != nil { // this process stops
		out.sent = false
	}
	return out
}

// land takes an outcome in.
func (d *dispatch) land(o outcome) {
	if o.done != nil {
		d.flying--
		if d.flights[o.row.RuleID]--; d.flights[o.row.RuleID] == 0 {
			delete(d.flights, o.row.RuleID)
		}
		switch {
		case !o.sent:
			o.done(errCutOff)
		default:
			o.done(o.err)
		}
	}
	if len(d.outcomes) == 0 {
		d.firstAt = time.Now()
	}
	d.outcomes = append(d.outcomes, o)
}

// await takes in what lands, or lets a little time pass.
func (d *dispatch) await(ctx context.Context) {
	pause := recordDelay
	if d.expanding {
		pause = 0
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case o := <-d.landed:
		d.land(o)
		for len(d.landed) > 0 {
			d.land(<-d.landed)
		}
	case <-d.engine.wake:
		d.expanding = true
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sleep waits for the next delivery that becomes due; more is false when none does for long.
func (d *dispatch) sleep(ctx context.Context) (more bool, err error) {
	next, ok, err := d.engine.nextDue(ctx, d.engine.breakers.openRules())
	if err != nil || !ok || time.Until(next) > period {
		return false, err
	}
	if next.After(d.until) {
		next = d.until
	}
	timer := time.NewTimer(max(time.Until(next), time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.engine.wake:
		d.expanding = true
	case <-ctx.Done():
	}
	d.claimNext = time.Time{}
	return true, nil
}

func (d *dispatch) recordIfMany(ctx context.Context) error {
	if len(d.outcomes) >= recordSize || len(d.outcomes) > 0 && time.Since(d.firstAt) >= recordDelay {
		return d.record(ctx)
	}
	return nil
}

func (d *dispatch) record(ctx context.Context) error {
	if len(d.outcomes) == 0 {
		return nil
	}
	outcomes := d.outcomes
	d.outcomes = nil
	if err := d.engine.record(ctx, outcomes); err != nil {
		return fmt.Errorf("write what became of deliveries: %w", err)
	}
	return nil
}

// nextAttempt is when a delivery is tried again that failed as o says; ok is false when it is not.
func (o outcome) nextAttempt(now time.Time) (at time.Time, reason string, ok bool) {
	detail := describe(o.err)
	if detail.permanent {
		return time.Time{}, detail.text, false
	}
	if now.UnixMicro() >= o.row.GiveUpAt {
		return time.Time{}, detail.text + "; given up after " + retry.Patience.String(), false
	}
	delay := max(retry.Delay(o.row.Attempts+1, rand.Float64()), min(detail.retryAfter, retry.Patience))
	// The last attempt is made when the time is up, not before.
	return time.UnixMicro(min(now.Add(delay).UnixMicro(), max(o.row.GiveUpAt, now.UnixMicro()+1))), detail.text, true
}
