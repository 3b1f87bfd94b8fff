package columns

// Backlog counts open findings by group and end. ends is ascending.
func (s *Snapshot) Backlog(f *Filter, by *Grouping, ends []uint32) [][]int32 {
	width := len(ends) + 1
	line := newTimeline(ends)
	changes := fold(s, f, func() []int32 { return make([]int32, by.Groups*width) }, func(changes []int32, c *chunk, i int) {
		group := by.of(c, i)
		if group < 0 {
			return
		}
		row := changes[int(group)*width:]
		c.openTimes(i, func(from, to uint32) {
			first, last := line.after(from), line.after(to)
			row[first]++
			row[last]--
		})
	}, sum)
	counts := make([][]int32, by.Groups)
	for group := range counts {
		row := changes[group*width : (group+1)*width-1]
		for i := 1; i < len(row); i++ {
			row[i] += row[i-1]
		}
		counts[group] = row
	}
	return counts
}

// OpenByAttr counts the findings open at a time, by Attr.
func (s *Snapshot) OpenByAttr(f *Filter, at uint32) []int32 {
	return fold(s, f, func() []int32 { return make([]int32, Attrs) }, func(counts []int32, c *chunk, i int) {
		if c.statusAt(i, at).Open() {
			counts[c.attr[i]]++
		}
	}, sum)
}

// statusAt is a finding's status at a time.
func (c *chunk) statusAt(i int, end uint32) Status {
	at, status := c.history(i)
	for j := len(at) - 1; j >= 0; j-- {
		if at[j] < end {
			return status[j]
		}
	}
	return None
}
