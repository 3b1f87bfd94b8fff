package connlimit

import "time"

// SetClock replaces the clock.
func (l *Limit) SetClock(now func() time.Time) { l.now = now }

// LongestBlock is how long an address cannot connect at most.
const LongestBlock = longestBlock
