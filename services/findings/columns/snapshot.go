package columns

import (
	"cmp"
	"slices"
	"sort"
)

// Place is a ref of a project.
type Place struct {
	Project int64
	Ref     string
}

// Transition is a change of status.
type Transition struct {
	At     uint32
	Status Status
}

// Row is a finding with its history in order of events.
type Row struct {
	ID          int64
	Place       uint32 // see Table.Place
	Rule        uint32 // see Table.Rule
	Kind        uint32 // see Table.Kind
	Attr        Attr
	Since       int64 // relevant since, in microseconds
	Transitions []Transition
}

// Snapshot holds the findings of a deployment at one time.
type Snapshot struct {
	chunks []*chunk
	places []Place
	rules  []int64
	kinds  []Facts
	oldest uint32
	len    int
	bytes  int64
}

// Len is the number of findings.
func (s *Snapshot) Len() int { return s.len }

// Bytes is the approximate size in memory.
func (s *Snapshot) Bytes() int64 { return s.bytes }

// Places lists the refs of projects by number. It must not be modified.
func (s *Snapshot) Places() []Place { return s.places }

// Rules lists the ids of rules by number. It must not be modified.
func (s *Snapshot) Rules() []int64 { return s.rules }

// Kinds lists the Facts by number. It must not be modified.
func (s *Snapshot) Kinds() []Facts { return s.kinds }

// Table assigns numbers to places, rules and Facts, and builds snapshots. It is not safe for concurrent use; its
// snapshots are.
type Table struct {
	places    []Place
	placeOf   map[Place]uint32
	rules     []int64
	ruleOf    map[int64]uint32
	kinds     []Facts
	attrs     []Attr // of the kinds
	kindOf    map[Facts]uint32
	wordBytes int64
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{placeOf: map[Place]uint32{}, ruleOf: map[int64]uint32{}, kindOf: map[Facts]uint32{}}
}

// Place returns the number of a project's ref.
func (t *Table) Place(project int64, ref string) uint32 {
	p := Place{project, ref}
	n, known := t.placeOf[p]
	if !known {
		n = uint32(len(t.places))
		t.places, t.placeOf[p] = append(t.places, p), n
		t.wordBytes += int64(96 + len(ref))
	}
	return n
}

// Rule returns the number of a rule.
func (t *Table) Rule(id int64) uint32 {
	n, known := t.ruleOf[id]
	if !known {
		n = uint32(len(t.rules))
		t.rules, t.ruleOf[id] = append(t.rules, id), n
		t.wordBytes += 40
	}
	return n
}

// Kind returns the number of Facts, and their Attr.
func (t *Table) Kind(f Facts) (uint32, Attr) {
	n, known := t.kindOf[f]
	if !known {
		n = uint32(len(t.kinds))
		t.kinds, t.attrs, t.kindOf[f] = append(t.kinds, f), append(t.attrs, f.Attr()), n
		t.wordBytes += 40
	}
	return n, t.attrs[n]
}

// Build builds a snapshot of all findings. next yields them by ascending id until it returns false.
func (t *Table) Build(next func() (Row, bool)) *Snapshot {
	w := newChunkWriter(chunkSize)
	for row, ok := next(); ok; row, ok = next() {
		w.add(row)
	}
	return t.snapshot(w.done())
}

func (t *Table) snapshot(chunks []*chunk) *Snapshot {
	s := &Snapshot{chunks: chunks, places: t.places, rules: t.rules, kinds: t.kinds, bytes: t.wordBytes}
	s.count()
	return s
}

// count adds up the chunks.
func (s *Snapshot) count() {
	s.oldest = ^uint32(0)
	for _, c := range s.chunks {
		s.len += c.len()
		s.bytes += c.bytes()
		s.oldest = min(s.oldest, c.oldest)
	}
}

// With returns a snapshot where the rows replace the ones with the same id, or are added. s is unchanged.
func (t *Table) With(s *Snapshot, rows []Row) *Snapshot { return t.snapshot(s.merged(rows)) }

// WithPlaces is the same with other places, which begin with the places of s.
func (s *Snapshot) WithPlaces(places []Place, rows []Row) *Snapshot {
	with := &Snapshot{chunks: s.merged(rows), places: places, rules: s.rules, kinds: s.kinds}
	with.count()
	return with
}

// Rows returns the findings of places, by ascending id.
func (s *Snapshot) Rows(places []bool) (rows []Row) {
	for _, c := range s.chunks {
		for i, place := range c.place {
			if !places[place] {
				continue
			}
			row := Row{ID: c.idOf(i), Place: place, Rule: c.rule[i], Kind: c.kind[i], Attr: c.attr[i], Since: c.since[i]}
			at, status := c.history(i)
			for j := range at {
				row.Transitions = append(row.Transitions, Transition{at[j], status[j]})
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// merged returns the chunks with these rows.
func (s *Snapshot) merged(rows []Row) []*chunk {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
	chunks := make([]*chunk, 0, len(s.chunks)+len(rows)/chunkSize+1)
	for i, c := range s.chunks {
		end := len(rows) // rows after the last chunk belong to it
		if i+1 < len(s.chunks) {
			end = sort.Search(len(rows), func(j int) bool { return rows[j].ID >= s.chunks[i+1].base })
		}
		if end == 0 {
			chunks = append(chunks, c)
			continue
		}
		chunks = append(chunks, c.with(rows[:end])...)
		rows = rows[end:]
	}
	if len(rows) > 0 { // there was no chunk
		w := newChunkWriter(chunkSize)
		for _, r := range rows {
			w.add(r)
		}
		chunks = append(chunks, w.done()...)
	}
	return chunks
}
