package columns

import (
	"slices"
	"sort"
)

// chunkSize is the number of findings copied to change one. A chunk of twice the size is split.
const chunkSize = 4096

// chunk holds findings by id. It is immutable.
type chunk struct {
	base   int64    // first id
	id     []uint32 // relative to base
	place  []uint32
	rule   []uint32
	attr   []Attr
	kind   []uint32
	since  []int64  // relevant since, in microseconds
	offset []uint32 // first transition of each finding, plus the end
	at     []uint32
	status []Status
	oldest uint32 // oldest transition
}

func (c *chunk) len() int { return len(c.id) }

func (c *chunk) idOf(i int) int64 { return c.base + int64(c.id[i]) }

// history returns a finding's history; at and status are parallel.
func (c *chunk) history(i int) (at []uint32, status []Status) {
	from, to := c.offset[i], c.offset[i+1]
	return c.at[from:to], c.status[from:to]
}

// begin initializes a chunk for its first finding.
func (c *chunk) begin(id int64) {
	if c.len() == 0 {
		c.base, c.offset, c.oldest = id, append(c.offset, 0), ^uint32(0)
	}
}

func (c *chunk) add(r Row) {
	c.begin(r.ID)
	c.id = append(c.id, uint32(r.ID-c.base))
	c.place, c.rule, c.attr = append(c.place, r.Place), append(c.rule, r.Rule), append(c.attr, r.Attr)
	c.kind, c.since = append(c.kind, r.Kind), append(c.since, r.Since)
	last := uint32(0)
	for _, t := range r.Transitions {
		// Clocks of nodes differ slightly. The order of events is authoritative.
		last = max(last, t.At)
		c.at, c.status = append(c.at, last), append(c.status, t.Status)
		c.oldest = min(c.oldest, last)
	}
	c.offset = append(c.offset, uint32(len(c.at)))
}

func (c *chunk) bytes() int64 {
	return int64(200 + 4*(cap(c.id)+cap(c.place)+cap(c.rule)+cap(c.kind)+cap(c.offset)+cap(c.at)) + 8*cap(c.since) + 2*cap(c.attr) + cap(c.status))
}

// copy copies findings of another chunk.
func (c *chunk) copy(from *chunk, first, end int) {
	c.begin(from.idOf(first))
	for _, id := range from.id[first:end] {
		c.id = append(c.id, uint32(from.base+int64(id)-c.base))
	}
	c.place, c.rule = append(c.place, from.place[first:end]...), append(c.rule, from.rule[first:end]...)
	c.attr, c.kind = append(c.attr, from.attr[first:end]...), append(c.kind, from.kind[first:end]...)
	c.since = append(c.since, from.since[first:end]...)
	low, high := from.offset[first], from.offset[end]
	shift := uint32(len(c.at)) - low
	for _, offset := range from.offset[first+1 : end+1] {
		c.offset = append(c.offset, offset+shift)
	}
	c.at, c.status = append(c.at, from.at[low:high]...), append(c.status, from.status[low:high]...)
	c.oldest = min(c.oldest, from.oldest) // a lower bound: the oldest transition may not be copied
}

// with merges rows by id into a copy of the chunk, and splits it if it is too long.
func (c *chunk) with(rows []Row) []*chunk {
	w := newChunkWriter(2 * chunkSize)
	next := 0
	for _, r := range rows {
		end := next + sort.Search(c.len()-next, func(i int) bool { return c.idOf(next+i) >= r.ID })
		w.copy(c, next, end)
		w.add(r)
		if next = end; next < c.len() && c.idOf(next) == r.ID {
			next++
		}
	}
	w.copy(c, next, c.len())
	return w.done()
}

// chunkWriter builds chunks of at most limit findings.
type chunkWriter struct {
	limit   int
	chunks  []*chunk
	current *chunk
}

func newChunkWriter(limit int) *chunkWriter { return &chunkWriter{limit: limit, current: &chunk{}} }

// capacity starts another chunk if the current one is full or cannot hold an id, and returns how many more findings
// fit.
func (w *chunkWriter) capacity(id int64) int {
	if n := w.current.len(); n > 0 && (n >= w.limit || id-w.current.base >= 1<<32) {
		w.end()
	}
	return w.limit - w.current.len()
}

func (w *chunkWriter) add(r Row) {
	w.capacity(r.ID)
	w.current.add(r)
}

func (w *chunkWriter) copy(from *chunk, first, end int) {
	for first < end {
		n := min(w.capacity(from.idOf(end-1)), end-first)
		w.current.copy(from, first, first+n)
		first += n
	}
}

// end finishes the current chunk and trims its memory.
func (w *chunkWriter) end() {
	c := w.current
	c.id, c.place, c.rule, c.attr = slices.Clone(c.id), slices.Clone(c.place), slices.Clone(c.rule), slices.Clone(c.attr)
	c.kind, c.since = slices.Clone(c.kind), slices.Clone(c.since)
	c.offset, c.at, c.status = slices.Clone(c.offset), slices.Clone(c.at), slices.Clone(c.status)
	w.chunks, w.current = append(w.chunks, c), &chunk{}
}

func (w *chunkWriter) done() []*chunk {
	if w.current.len() > 0 {
		w.end()
	}
	return w.chunks
}
