package notifications

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// maxClaims is the maximum number of messages that a node has leased, maxClaimsOfRule of one rule: the messages in
	// flight and the same number waiting.
	maxClaims       = 2 * maxFlights
	maxClaimsOfRule = 2 * maxFlightsOfRule
	// rulesPerDeployment is the maximum number of rules of a deployment read in one pass over all deployments. A
	// deployment with more gets a pass of its own over manyRules of the rest.
	rulesPerDeployment = 32
	manyRules          = 128
	// receiversPerPass limits a pass. The next pass continues from there.
	receiversPerPass = 512
	// windowsPerClaim limits the receivers with messages read for one claim.
	windowsPerClaim = 64
	// windowSize is the number of messages read per rule: some of them may have to wait for others.
	windowSize = 2 * maxClaimsOfRule
	// maxPutOff limits the number of messages that a claim postpones.
	maxPutOff = 256
	// idleClaimInterval is the minimum time between claims if nothing was found, partialClaimInterval if only a part of
	// the ledger was read, and busyClaimInterval otherwise.
	idleClaimInterval    = 200 * time.Millisecond
	partialClaimInterval = 50 * time.Millisecond
	busyClaimInterval    = 10 * time.Millisecond
	// lockedRecheck is when to look again for messages leased by another node, circuitRecheck for messages with an open
	// circuit.
	lockedRecheck  = time.Second
	circuitRecheck = 2 * time.Second
)

// claims is the state of a run's claims.
type claims struct {
	slots *slots
	// after is the deployment at which the next pass begins, 0 for the first. rules is the same for the rules of
	// deployments with many rules.
	after int64
	rules map[int64]int64
	// notBefore is the time of the next claim. nextDue is when the next known delivery becomes due; zero if there is none.
	notBefore, nextDue time.Time
	// idle: the last pass read everything and found nothing to send now.
	idle bool
}

func newClaims() *claims {
	return &claims{slots: newSlots(maxClaims, maxClaimsOfRule), rules: map[int64]int64{}}
}

// nextReceivers returns the next receivers; all reports that there are no others.
func (d *dispatch) nextReceivers(ctx context.Context, q querier) (found []head, all bool, err error) {
	c := d.claims
	from := c.after
	if found, err = d.engine.heads(ctx, q, receiver{from, math.MaxInt64}, math.MaxInt64, rulesPerDeployment, receiversPerPass); err != nil {
		return nil, false, err
	}
	all = from == 0 && len(found) < receiversPerPass
	if c.after = 0; len(found) == receiversPerPass {
		c.after = found[len(found)-1].deploymentID - 1 // rules of this deployment may be missing
	}
	for _, h := range found[:len(found):len(found)] {
		if h.n < rulesPerDeployment {
			continue
		}
		first := c.rules[h.deploymentID] <= h.ruleID
		more, err := d.engine.heads(ctx, q, receiver{h.deploymentID, max(c.rules[h.deploymentID], h.ruleID)}, h.deploymentID, manyRules, manyRules)
		if err != nil {
			return nil, false, err
		}
		if delete(c.rules, h.deploymentID); len(more) == manyRules {
			c.rules[h.deploymentID] = more[len(more)-1].ruleID
		}
		all = all && first && len(more) < manyRules
		found = append(found, more...)
	}
	return found, all, nil
}

// claim leases deliveries in fair turns among deployments and rules.
func (d *dispatch) claim(ctx context.Context) error {
	c := d.claims
	now := time.Now()
	if now.Before(c.notBefore) {
		return nil
	}
	var all, waits bool
	var ids []int64
	var putOff map[int64]int64
	err := d.engine.read(ctx, func(q querier) (err error) {
		var found []head
		if found, all, err = d.nextReceivers(ctx, q); err != nil {
			return err
		}
		due := d.due(found, now)
		waits = len(due) > 0
		ids, putOff, err = d.plan(ctx, q, due, store.Micros(now))
		return err
	})
	if err != nil {
		return fmt.Errorf("look for deliveries: %w", err)
	}
	rows, err := d.engine.take(ctx, ids, putOff)
	if err != nil {
		return fmt.Errorf("take deliveries: %w", err)
	}
	for _, row := range rows {
		c.slots.take(receiverOf(row))
		d.waiting[row.RuleID] = append(d.waiting[row.RuleID], row)
	}
	c.idle = all && len(rows) == 0
	switch {
	case len(rows) > 0 || len(putOff) > 0:
		c.notBefore = time.Now().Add(busyClaimInterval)
	case all:
		c.notBefore = time.Now().Add(idleClaimInterval)
	default:
		c.notBefore = time.Now().Add(partialClaimInterval)
	}
	if waits && len(rows) == 0 {
		c.nextDue = earlier(c.nextDue, now.Add(lockedRecheck))
	}
	return nil
}

// due selects the receivers with due deliveries and a closed circuit, and sets the next due time of the others.
func (d *dispatch) due(found []head, now time.Time) (due []receiver) {
	closed := d.closed()
	d.claims.nextDue = time.Time{}
	for _, h := range found {
		switch {
		case closed[h.receiver]:
			d.claims.nextDue = earlier(d.claims.nextDue, now.Add(circuitRecheck))
		case h.due <= store.Micros(now):
			due = append(due, h.receiver)
		default:
			d.claims.nextDue = earlier(d.claims.nextDue, store.Time(h.due))
		}
	}
	return due
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// closed returns the receivers that must not get messages now, because their circuit is open or its probe is in flight.
func (d *dispatch) closed() map[receiver]bool {
	closed := map[receiver]bool{}
	for _, e := range d.engine.breakers.openEndpoints() {
		if r := d.rules[e.ruleID]; r == nil || r.endpoint == e { // ignore a replaced config
			closed[e.receiver] = true
		}
	}
	for id := range d.flights.rules {
		if r := d.rules[id]; r != nil && d.engine.breakers.of(r.endpoint).State() == gobreaker.StateHalfOpen {
			closed[r.receiver] = true
		}
	}
	return closed
}

// plan selects the messages to lease, one at a time, always from the receiver with the next turn. It takes a slot for
// each selected message and releases them at the end.
func (d *dispatch) plan(ctx context.Context, q querier, due []receiver, now int64) (ids []int64, putOff map[int64]int64, err error) {
	slots := d.claims.slots
	ready, taken := map[receiver][]int64{}, []receiver{}
	putOff = map[int64]int64{}
	defer func() {
		for _, r := range taken { // claim takes slots for the rows that were really leased
			slots.release(r)
		}
	}()
	for windows := 0; ; {
		i, ok := slots.choose(due)
		if !ok {
			return ids, putOff, nil
		}
		of := due[i]
		if _, read := ready[of]; !read {
			if windows++; windows > windowsPerClaim {
				return ids, putOff, nil
			}
			rows, wait, err := d.engine.window(ctx, q, of, now)
			if err != nil {
				return nil, nil, err
			}
			ready[of] = rows
			for id, until := range wait {
				if len(putOff) < maxPutOff {
					putOff[id] = until
				}
			}
		}
		if len(ready[of]) == 0 {
			slots.serve(of)
			due = slices.Delete(due, i, i+1)
			continue
		}
		ids, ready[of] = append(ids, ready[of][0]), ready[of][1:]
		slots.take(of)
		taken = append(taken, of)
	}
}

func receiverOf(row *ent.Delivery) receiver { return receiver{row.DeploymentID, row.RuleID} }
