package feed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
)

// snapshot is a set of PostgreSQL transactions: all numbers below next except the open ones. The zero value is empty.
type snapshot struct {
	next int64
	open []int64 // ascending
}

// parseSnapshot reads the text of a pg_snapshot, xmin:xmax:xip_list.
func parseSnapshot(text string) (snapshot, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return snapshot{}, fmt.Errorf("the snapshot %q does not have three parts", text)
	}
	next, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return snapshot{}, fmt.Errorf("the snapshot %q: %w", text, err)
	}
	s := snapshot{next: next}
	if parts[2] == "" {
		return s, nil
	}
	for number := range strings.SplitSeq(parts[2], ",") {
		tx, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return snapshot{}, fmt.Errorf("the snapshot %q: %w", text, err)
		}
		s.open = append(s.open, tx)
	}
	slices.Sort(s.open)
	return s, nil
}

func (s snapshot) equal(other snapshot) bool {
	return s.next == other.next && slices.Equal(s.open, other.open)
}

// ended returns the transactions that were open in s and have ended in the later snapshot.
func (s snapshot) ended(later snapshot) (list []int64) {
	for _, tx := range s.open {
		if _, open := slices.BinarySearch(later.open, tx); !open {
			list = append(list, tx)
		}
	}
	return list
}

// contains reports whether s has all transactions of the other snapshot.
func (s snapshot) contains(other snapshot) bool {
	for _, tx := range s.open {
		if _, open := slices.BinarySearch(other.open, tx); tx < other.next && !open {
			return false
		}
	}
	return other.next <= s.next
}

// position is a place in the feed of a deployment: the events that a watcher has.
type position struct {
	// id is the highest id among the events without a transaction number. Only these count while seen and target are
	// empty: on SQLite always, on PostgreSQL for events from before the numbers.
	id int64
	// seen has the transactions whose events the watcher has.
	seen snapshot
	// Inside a range, the watcher also has the events that target contains and seen does not, up to transaction tx and
	// event txEvent. Otherwise they are empty.
	target      snapshot
	tx, txEvent int64
}

func (p position) numbered() bool { return p.seen.next > 0 || p.target.next > 0 }

// whole reports whether the position is not inside a range.
func (p position) whole() bool { return p.target.next == 0 }

func (p position) equal(other position) bool {
	return p.id == other.id && p.seen.equal(other.seen) && p.target.equal(other.target) && p.tx == other.tx && p.txEvent == other.txEvent
}

// after returns the position behind an event of the range that starts at p.
func (p position) after(e *ent.FindingEvent) position {
	if e.Tx == nil {
		return position{id: e.ID}
	}
	p.tx, p.txEvent = *e.Tx, e.ID
	return p
}

// end returns the position behind the range.
func (p position) end() position { return position{seen: p.target} }

// inside returns the position behind an event between from and to.
func inside(from, to position, e *ent.FindingEvent) position {
	if from.target = to.target; to.whole() {
		from.target = to.seen
	}
	return from.after(e)
}

// within reports whether head contains everything before p.
func (p position) within(head position) bool {
	if head.numbered() {
		return head.seen.contains(p.seen) && head.seen.contains(p.target)
	}
	return !p.numbered() && p.id <= head.id
}
