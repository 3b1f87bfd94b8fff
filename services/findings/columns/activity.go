package columns

// Move is a way to enter or leave the backlog.
type Move int

// Moves. A finding that leaves the backlog is counted by its new status. A change outside of the backlog (an ignored
// finding is fixed) is not a move.
const (
	NoMove Move = iota - 1
	Opened
	WasIgnored
	WasFixed
	WasRemoved
	WasProvisionallyIgnored
	Moves // number of moves
)

func moveOf(before, after Status) Move {
	switch {
	case before.Open() == after.Open():
		return NoMove
	case after.Open():
		return Opened
	}
	switch after {
	case Ignored:
		return WasIgnored
	case Fixed:
		return WasFixed
	case Removed:
		return WasRemoved
	case ProvisionallyIgnored:
		return WasProvisionallyIgnored
	}
	return NoMove
}

// Activity counts moves by bucket. The first bucket begins at since, and each ends where the next begins.
func (s *Snapshot) Activity(f *Filter, since uint32, ends []uint32) [][Moves]int32 {
	line := newTimeline(ends)
	counts := fold(s, f, func() []int32 { return make([]int32, len(ends)*int(Moves)) }, func(counts []int32, c *chunk, i int) {
		at, status := c.history(i)
		before := None
		for j, after := range status {
			move := moveOf(before, after)
			before = after
			if move == NoMove || at[j] < since {
				continue
			}
			if bucket := line.after(at[j]); bucket < len(ends) {
				counts[bucket*int(Moves)+int(move)]++
			}
		}
	}, sum)
	buckets := make([][Moves]int32, len(ends))
	for i := range buckets {
		copy(buckets[i][:], counts[i*int(Moves):])
	}
	return buckets
}

// Outcome is the result of a new finding.
type Outcome int

// Outcomes. Silenced findings were not shown to developers.
const (
	Silenced Outcome = iota
	StillOpen
	BecameFixed
	BecameIgnored
	BecameProvisionallyIgnored
	Outcomes // number of outcomes
)

// outcomeAt is a finding's outcome at a time. Removal (its pull request was closed or merged) does not count: the
// status before it does.
func outcomeAt(attr Attr, at []uint32, status []Status, end uint32) Outcome {
	if !attr.Shown() {
		return Silenced
	}
	for j := len(at) - 1; j >= 0; j-- {
		if at[j] >= end {
			continue
		}
		switch status[j] {
		case Fixed:
			return BecameFixed
		case Ignored:
			return BecameIgnored
		case ProvisionallyIgnored:
			return BecameProvisionallyIgnored
		case Open, Reviewing, Fixing:
			return StillOpen
		}
	}
	return StillOpen
}

// Appeared counts findings by the bucket of their first appearance and by their outcome at its end.
func (s *Snapshot) Appeared(f *Filter, since uint32, ends []uint32) [][Outcomes]int32 {
	line := newTimeline(ends)
	counts := fold(s, f, func() []int32 { return make([]int32, len(ends)*int(Outcomes)) }, func(counts []int32, c *chunk, i int) {
		at, status := c.history(i)
		if len(at) == 0 || at[0] < since {
			return
		}
		if bucket := line.after(at[0]); bucket < len(ends) {
			counts[bucket*int(Outcomes)+int(outcomeAt(c.attr[i], at, status, ends[bucket]))]++
		}
	}, sum)
	buckets := make([][Outcomes]int32, len(ends))
	for i := range buckets {
		copy(buckets[i][:], counts[i*int(Outcomes):])
	}
	return buckets
}
