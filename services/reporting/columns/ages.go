package columns

// maxCells bounds the memory of one pass over the findings: 16 MB a processor.
const maxCells = 4 << 20

// MedianAges computes how old, in whole days of 24 hours, the findings were that were open at ascending ends: the
// median by group and end, the lower whole number between the two in the middle, 0 when nothing was open. An age counts
// from when the finding was opened last.
func (s *Snapshot) MedianAges(f *Filter, by *Grouping, ends []uint32) [][]int32 {
	medians := make([][]int32, by.Groups)
	for len(ends) > 0 {
		days := s.daysUntil(ends[len(ends)-1])
		part := ends[:min(len(ends), max(1, maxCells/(days*by.Groups)-1))]
		ends = ends[len(part):]
		for group, list := range s.medianAges(f, by, part, days) {
			medians[group] = append(medians[group], list...)
		}
	}
	return medians
}

// daysUntil is how many ages in days there can be.
func (s *Snapshot) daysUntil(end uint32) int {
	if end <= s.oldest {
		return 2
	}
	return int((end-s.oldest)/day) + 2
}

// opened numbers the days on which findings were opened, so that all that are opened on one have the same age at an
// end. Such days begin at the time of day of the end, so ends of several times of day (buckets begin at midnight, but
// the last one ends when the period does, or now) count in stretches, each with days of its own.
type opened struct {
	stretches []stretch
	oldest    uint32
	days      int
}

type stretch struct {
	first, last int // ends
	phase       uint32
	shift       uint32 // makes days begin at the time of day
	base        uint32 // number of the day of the oldest opening
}

func newOpened(ends []uint32, oldest uint32, days int) *opened {
	o := &opened{oldest: oldest, days: days}
	for i, end := range ends {
		if n := len(o.stretches); n > 0 && o.stretches[n-1].phase == end%day {
			o.stretches[n-1].last = i + 1
		} else {
			shift := 2*day - end%day - 1
			o.stretches = append(o.stretches, stretch{i, i + 1, end % day, shift, (oldest + shift) / day})
		}
	}
	return o
}

// dayOf is the number of the day, from 0, of a stretch on which something was opened. It ends at the time of day of the
// stretch, inclusive: 24 hours later the age is one day.
func (s *stretch) dayOf(at uint32) int { return int((at+s.shift)/day - s.base) }

// ageAt is the age at an end of what was opened on a day.
func (o *opened) ageAt(end uint32, dayNumber int) int32 {
	return int32((end+day-end%day)/day) - int32((o.oldest+day-end%day+day-1)/day) - int32(dayNumber)
}

func (s *Snapshot) medianAges(f *Filter, by *Grouping, ends []uint32, days int) [][]int32 {
	line, opened := newTimeline(ends), newOpened(ends, s.oldest, days)
	width := (len(ends) + 1) * days
	changes := fold(s, f, func() []int32 { return make([]int32, by.Groups*width) }, func(changes []int32, c *chunk, i int) {
		group := by.of(c, i)
		if group < 0 {
			return
		}
		table := changes[int(group)*width:]
		c.openTimes(i, func(from, to uint32) {
			first, last := line.after(from), line.after(to)
			for n := range opened.stretches {
				part := &opened.stretches[n]
				low, high := max(first, part.first), min(last, part.last)
				if low >= high {
					continue
				}
				d := part.dayOf(from)
				table[low*days+d]++
				if high < part.last {
					table[high*days+d]--
				}
			}
		})
	}, sum)
	medians := make([][]int32, by.Groups)
	for group := range medians {
		medians[group] = opened.medians(changes[group*width:(group+1)*width], ends)
	}
	return medians
}

// medians adds up the changes of one group from end to end.
func (o *opened) medians(changes []int32, ends []uint32) []int32 {
	list := make([]int32, len(ends))
	open := make([]int32, o.days)
	for _, part := range o.stretches {
		clear(open)
		for n := part.first; n < part.last; n++ {
			var total int32
			for d, change := range changes[n*o.days : (n+1)*o.days] {
				open[d] += change
				total += open[d]
			}
			if total > 0 {
				// Both in the middle; they are the same one when the number is odd.
				young, old := o.nth(open, ends[n], (total-1)/2), o.nth(open, ends[n], total/2)
				list[n] = (young + old) / 2
			}
		}
	}
	return list
}

// nth is the age of one of the open findings, the oldest being number 0.
func (o *opened) nth(open []int32, end uint32, n int32) int32 {
	for d, count := range open {
		if n < count {
			return o.ageAt(end, d)
		}
		n -= count
	}
	return 0 // not reached: n is below the sum
}
