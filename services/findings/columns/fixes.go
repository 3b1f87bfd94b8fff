package columns

import "slices"

// FixTimes lists how long findings were open before they left the backlog as fixed, in seconds, by group and bucket. A
// time begins with the last opening. The first bucket begins at since, and each ends where the next begins.
func (s *Snapshot) FixTimes(f *Filter, by *Grouping, since uint32, ends []uint32) [][][]uint32 {
	line := newTimeline(ends)
	lists := fold(s, f, func() [][]uint32 { return make([][]uint32, by.Groups*len(ends)) }, func(lists [][]uint32, c *chunk, i int) {
		group := by.of(c, i)
		if group < 0 {
			return
		}
		at, status := c.history(i)
		before, from := None, uint32(0)
		for j, after := range status {
			move := moveOf(before, after)
			before = after
			switch {
			case move == Opened:
				from = at[j]
			case move == WasFixed && at[j] >= since:
				if bucket := line.after(at[j]); bucket < len(ends) {
					n := int(group)*len(ends) + bucket
					lists[n] = append(lists[n], at[j]-from)
				}
			}
		}
	}, func(into, from [][]uint32) [][]uint32 {
		for i := range into {
			into[i] = append(into[i], from[i]...)
		}
		return into
	})
	groups := make([][][]uint32, by.Groups)
	for group := range groups {
		groups[group] = lists[group*len(ends) : (group+1)*len(ends)]
	}
	return groups
}

// Quantiles returns the median and the 90th percentile of times, which it sorts. The median of an even number is the
// mean of the two middle times, rounded down. Nine of ten times are at most the 90th percentile. Both are 0 without
// times.
func Quantiles(times []uint32) (median, p90 int64) {
	n := len(times)
	if n == 0 {
		return 0, 0
	}
	slices.Sort(times)
	return (int64(times[(n-1)/2]) + int64(times[n/2])) / 2, int64(times[(9*n+9)/10-1])
}
