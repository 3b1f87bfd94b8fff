package columns

// meanAge is a median between two ages on different days. The finding before it is the last one that was opened on its
// day, and the finding after it is the first one on its day.
type meanAge struct {
	group         int32
	end, part     int // positions in the ends, and in the ranges of the opening days
	before, after int // opening days
	openings
}

// openings are the times at which the two findings were opened.
type openings struct{ latest, earliest uint32 }

// days is the mean age at the end, in whole days.
func (m *meanAge) days(end uint32) int32 {
	return int32((2*int64(end) - int64(m.latest) - int64(m.earliest)) / (2 * day))
}

// exactMeans finds the openings of the means. It is a second pass over the findings, because only few of their exact
// times matter.
func (s *Snapshot) exactMeans(f *Filter, by *Grouping, ends []uint32, opened *openingDays, means []meanAge) []meanAge {
	if len(means) == 0 {
		return nil
	}
	type place struct {
		group     int32
		part, day int
	}
	of := map[place][]int{} // the means that depend on an opening day
	for i, m := range means {
		for _, day := range []int{m.before, m.after} {
			key := place{m.group, m.part, day}
			of[key] = append(of[key], i)
		}
	}
	start := func() []openings {
		found := make([]openings, len(means))
		for i := range found {
			found[i].earliest = maxTime
		}
		return found
	}
	found := fold(s, f, start, func(found []openings, c *chunk, i int) {
		group := by.of(c, i)
		if group < 0 {
			return
		}
		c.openTimes(i, func(from, to uint32) {
			for part := range opened.ranges {
				day := opened.ranges[part].dayOf(from)
				for _, n := range of[place{group, part, day}] {
					m, end := &means[n], ends[means[n].end]
					switch {
					case from >= end || to < end:
					case day == m.before:
						found[n].latest = max(found[n].latest, from)
					default:
						found[n].earliest = min(found[n].earliest, from)
					}
				}
			}
		})
	}, func(into, other []openings) []openings {
		for i, o := range other {
			into[i] = openings{max(into[i].latest, o.latest), min(into[i].earliest, o.earliest)}
		}
		return into
	})
	for i := range means {
		means[i].openings = found[i]
	}
	return means
}
