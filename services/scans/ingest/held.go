package ingest

import "context"

// Held has the closes of one analysis that a scan decided but did not apply, because they are too many at once.
type Held struct {
	Analysis
	ID int64
	// Closes is how many findings this scan would have closed; Open is how many were open.
	Closes, Open int
	// Rejected says that a person rejected closes of some of these findings before, so only a person can confirm them.
	Rejected bool
}

// settle applies the closes of one analysis, or holds them. Closes wait if they are too many at once and nothing but
// this report supports them. If the previous report misses the same findings, they are closed. last has the closes that
// an earlier scan held, or nil.
func (c *closer) settle(ctx context.Context, g *matches, closes closings, last *hold) error {
	now, wait, err := c.divide(ctx, g, closes, last)
	if err != nil {
		return err
	}
	if err := c.closeNow(ctx, now); err != nil {
		return err
	}
	if last != nil {
		last.close(now)
	}
	if wait.total() == 0 || g.newer != nil { // only the newest scan holds closes
		return nil
	}
	held := Held{Analysis: g.Analysis, Closes: wait.total(), Open: g.open - now.total()}
	if last != nil && last.row.State == HoldPending && last.waitsForAll(wait) {
		held.ID, held.Rejected = last.row.ID, len(last.rejected) > 0
		c.Held = append(c.Held, held)
		return nil
	}
	fresh, err := c.createHold(ctx, g, wait, held, last)
	if err != nil {
		return err
	}
	held.ID, held.Rejected = fresh.ID, fresh.RejectedBefore
	c.Held = append(c.Held, held)
	return nil
}

// divide decides which closes are applied now, and which wait.
func (c *closer) divide(ctx context.Context, g *matches, closes closings, last *hold) (now, wait closings, err error) {
	now, wait, fresh := closings{}, closings{}, closings{}
	for key, ids := range closes {
		if key.certain {
			now[key] = ids
			continue
		}
		for _, id := range ids {
			switch last.answer(id, g.coverage) {
			case closesAgain:
				again := key
				again.decision = key.missedAgain()
				now[again] = append(now[again], id)
			case waitsAgain:
				wait[key] = append(wait[key], id)
			default:
				fresh[key] = append(fresh[key], id)
			}
		}
	}
	undecided := fresh.total() + wait.total()
	if undecided == 0 {
		return now, wait, nil
	}
	limits, err := c.closeLimits(ctx)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case limits.GetOff():
		now.add(fresh)
		now.add(wait)
		wait = closings{}
	case tooMany(limits, undecided, g.open-now.total()):
		wait.add(fresh)
	default:
		now.add(fresh)
	}
	return now, wait, nil
}

// add adds other closes.
func (c closings) add(other closings) {
	for key, ids := range other {
		c[key] = append(c[key], ids...)
	}
}
