package columns

// maxCells limits the memory of one pass over the findings: 16 MB per processor.
const maxCells = 4 << 20

// MedianAges computes the median age of open findings, by group and end, in whole days of 24 hours. The median of an
// even number is the mean of the two middle ages, to the second, and is rounded down afterwards. Without open findings
// it is 0. The age counts from the last opening. ends is ascending.
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

// daysUntil is the number of possible ages in days.
func (s *Snapshot) daysUntil(end uint32) int {
	if end <= s.oldest {
		return 2
	}
	return int((end-s.oldest)/day) + 2
}

// openingDays numbers the days of openings, so that all findings opened on one day have the same age at an end. Such a
// day begins at the end's time of day. Buckets begin at midnight, but the last one may end at another time, so ends are
// divided into ranges with the same time of day, each with its own days.
type openingDays struct {
	ranges []phaseRange
	oldest uint32
	days   int
}

type phaseRange struct {
	first, last int // positions in ends
	phase       uint32
	shift       uint32 // aligns days to the time of day
	base        uint32 // day number of the oldest opening
}

func newOpeningDays(ends []uint32, oldest uint32, days int) *openingDays {
	o := &openingDays{oldest: oldest, days: days}
	for i, end := range ends {
		if n := len(o.ranges); n > 0 && o.ranges[n-1].phase == end%day {
			o.ranges[n-1].last = i + 1
		} else {
			shift := 2*day - end%day - 1
			o.ranges = append(o.ranges, phaseRange{i, i + 1, end % day, shift, (oldest + shift) / day})
		}
	}
	return o
}

// dayOf is the day number, from 0, of an opening in a range. The day ends at the range's time of day, inclusive: 24
// hours later the age is one day.
func (s *phaseRange) dayOf(at uint32) int { return int((at+s.shift)/day - s.base) }

// ageAt is the age at an end of findings opened on a day.
func (o *openingDays) ageAt(end uint32, dayNumber int) int32 {
	return int32((end+day-end%day)/day) - int32((o.oldest+day-end%day+day-1)/day) - int32(dayNumber)
}

func (s *Snapshot) medianAges(f *Filter, by *Grouping, ends []uint32, days int) [][]int32 {
	line, opened := newTimeline(ends), newOpeningDays(ends, s.oldest, days)
	width := (len(ends) + 1) * days
	changes := fold(s, f, func() []int32 { return make([]int32, by.Groups*width) }, func(changes []int32, c *chunk, i int) {
		group := by.of(c, i)
		if group < 0 {
			return
		}
		table := changes[int(group)*width:]
		c.openTimes(i, func(from, to uint32) {
			first, last := line.after(from), line.after(to)
			for n := range opened.ranges {
				part := &opened.ranges[n]
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
	var open []meanAge
	for group := range medians {
		var more []meanAge
		medians[group], more = opened.medians(changes[group*width:(group+1)*width], ends)
		for _, m := range more {
			m.group = int32(group)
			open = append(open, m)
		}
	}
	for _, m := range s.exactMeans(f, by, ends, opened, open) {
		medians[m.group][m.end] = m.days(ends[m.end])
	}
	return medians
}

// medians accumulates the changes of one group from end to end. The second result are the medians that depend on the
// time of day: the means of ages whose sum in days is odd.
func (o *openingDays) medians(changes []int32, ends []uint32) (list []int32, odd []meanAge) {
	list = make([]int32, len(ends))
	open := make([]int32, o.days)
	for r, part := range o.ranges {
		clear(open)
		for n := part.first; n < part.last; n++ {
			var total int32
			for d, change := range changes[n*o.days : (n+1)*o.days] {
				open[d] += change
				total += open[d]
			}
			if total > 0 {
				// The two middle ones; equal if the number is odd.
				before, after := nth(open, (total-1)/2), nth(open, total/2)
				both := o.ageAt(ends[n], before) + o.ageAt(ends[n], after)
				if list[n] = both / 2; both%2 == 1 {
					odd = append(odd, meanAge{end: n, part: r, before: before, after: after})
				}
			}
		}
	}
	return list, odd
}

// nth is the opening day of the nth open finding, oldest first.
func nth(open []int32, n int32) int {
	for d, count := range open {
		if n < count {
			return d
		}
		n -= count
	}
	return 0 // unreachable: n is below the sum
}
