package findings

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"
)

// markApart is how many rows are between two marks at least: counting so many takes less than a millisecond.
const markApart = 10_000

// mark is the place in a list behind which a number of its rows lie, those of the boundary the last of them.
type mark struct {
	rows int64
	boundary
}

// marks are the places that jumps into one list have left behind: the next one counts from the nearest before it. Like
// boundaries they belong to a caller and a filter, and to a walk: page 0 begins another one.
type marks struct {
	mu sync.Mutex
	at []mark // by rows
}

// listMarks are those of the lists that were jumped into lately.
type listMarks struct {
	cache *expirable.LRU[pageKey, *marks]
}

func newListMarks() listMarks {
	return listMarks{cache: expirable.NewLRU[pageKey, *marks](1000, nil, 15*time.Minute)}
}

// of returns the marks of a list.
func (l listMarks) of(list pageKey) *marks {
	known, ok := l.cache.Get(list)
	if !ok {
		known = &marks{}
		l.cache.Add(list, known)
	}
	return known
}

// before is the last mark with no more than so many rows; that of no rows is the beginning of the list.
func (m *marks) before(rows int64) mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i, _ := m.find(rows + 1); i > 0 {
		return m.at[i-1]
	}
	return mark{}
}

// add adds a mark, unless another one, or the beginning of the list, is near.
func (m *marks) add(k mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, _ := m.find(k.rows)
	if k.rows < markApart || i > 0 && k.rows-m.at[i-1].rows < markApart || i < len(m.at) && m.at[i].rows-k.rows < markApart {
		return
	}
	m.at = slices.Insert(m.at, i, k)
}

func (m *marks) find(rows int64) (int, bool) {
	return slices.BinarySearchFunc(m.at, rows, func(k mark, rows int64) int { return cmp.Compare(k.rows, rows) })
}
