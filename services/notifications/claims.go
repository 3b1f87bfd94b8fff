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
	// maxClaims is how many messages a node has taken at a time, maxClaimsOfRule how many of them are of one rule: what
	// flies and as many that follow.
	maxClaims       = 2 * maxFlights
	maxClaimsOfRule = 2 * maxFlightsOfRule
	// rulesPerDeployment is how many rules of a deployment are looked at in a walk along all, before it goes on to the
	// next deployment. One with more gets a walk of its own, along manyRules of the others.
	rulesPerDeployment = 32
	manyRules          = 128
	// receiversPerWalk bounds a walk. The next one goes on from there.
	receiversPerWalk = 512
	// windowsPerClaim bounds the receivers whose messages are read for one claim.
	windowsPerClaim = 64
	// windowSize is how many messages of a rule are read: some of them may have to wait for others.
	windowSize = 2 * maxClaimsOfRule
	// maxPutOff bounds how many messages a claim puts off.
	maxPutOff = 256
	// claimPause keeps a ledger in which nothing was found from being asked at every turn, walkPause one of which only a
	// part was looked at, and claimGap any other.
	claimPause = 200 * time.Millisecond
	walkPause  = 50 * time.Millisecond
	claimGap   = 10 * time.Millisecond
	// takenPause is when to look again for what another node has, closedPause for what waits for a circuit.
	takenPause  = time.Second
	closedPause = 2 * time.Second
)

// claims is where the claims of a run stand.
type claims struct {
	slots *slots
	// after is the deployment at which the next walk begins, 0 for the first one; rules is the same for the rules of
	// deployments that have many.
	after int64
	rules map[int64]int64
	// notBefore is when to claim again, nextDue when something becomes due that was seen; zero when nothing was.
	notBefore, nextDue time.Time
	// idle says that the last walk saw everything, and nothing that can be sent now.
	idle bool
}

func newClaims() *claims {
	return &claims{slots: newSlots(maxClaims, maxClaimsOfRule), rules: map[int64]int64{}}
}

// walk returns the receivers to look at now; all says that there are no others.
func (d *dispatch) walk(ctx context.Context, q querier) (found []head, all bool, err error) {
	c := d.claims
	from := c.after
	if found, err = d.engine.heads(ctx, q, receiver{from, math.MaxInt64}, math.MaxInt64, rulesPerDeployment, receiversPerWalk); err != nil {
		return nil, false, err
	}
	all = from == 0 && len(found) < receiversPerWalk
	if c.after = 0; len(found) == receiversPerWalk {
		c.after = found[len(found)-1].deploymentID - 1 // some rules of the last one may be missing
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

// claim takes what can be sent soon, in turns among deployments and rules.
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
		if found, all, err = d.walk(ctx, q); err != nil {
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
		c.notBefore = time.Now().Add(claimGap)
	case all:
		c.notBefore = time.Now().Add(claimPause)
	default:
		c.notBefore = time.Now().Add(walkPause)
	}
	if waits && len(rows) == 0 {
		c.nextDue = earlier(c.nextDue, now.Add(takenPause))
	}
	return nil
}

// due chooses the receivers for which something is due and that may be sent to, and notes when the next of the others
// is.
func (d *dispatch) due(found []head, now time.Time) (due []receiver) {
	closed := d.closed()
	d.claims.nextDue = time.Time{}
	for _, h := range found {
		switch {
		case closed[h.receiver]:
			d.claims.nextDue = earlier(d.claims.nextDue, now.Add(closedPause))
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

// closed are the receivers of which nothing is to be taken now: their circuit is open, or its probe is on the way.
func (d *dispatch) closed() map[receiver]bool {
	closed := map[receiver]bool{}
	for _, e := range d.engine.breakers.openEndpoints() {
		if r := d.rules[e.ruleID]; r == nil || r.endpoint == e { // not of a config that was replaced
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

// plan chooses the messages to take, as if each that is chosen were taken: one at a time, of the receiver whose turn it
// is.
func (d *dispatch) plan(ctx context.Context, q querier, due []receiver, now int64) (ids []int64, putOff map[int64]int64, err error) {
	slots := d.claims.slots
	ready, taken := map[receiver][]int64{}, []receiver{}
	putOff = map[int64]int64{}
	defer func() {
		for _, r := range taken { // take counts what is really there
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
