package identity

import (
	"regexp"
	"slices"
	"strings"
)

// maxPrints is the number of named fingerprints that evidence keeps.
const maxPrints = 4

// A mark is a name in the upper half and a value in the lower: two entries that both have the name and differ in the
// value contradict each other.
type mark = uint64

// logicalMark is the name of the mark of a logical location. Names of fingerprints are larger.
const logicalMark = 1

// strictness says which marks count.
type strictness int

const (
	// byPrints: fingerprints.
	byPrints strictness = iota
	// byResource: and the name of a resource. Its code may have changed, or equal the code of another resource.
	byResource
	// byName: and any name, if no code says more. Functions are renamed more often than resources.
	byName
)

// lineHash matches the names of fingerprints that are hashes of code, such as primaryLocationLineHash: an edit of the
// code changes them. So they are evidence like code, and a difference proves nothing. syntactic_id is the same from the
// scanner protocol.
var lineHash = regexp.MustCompile(`(?i)(line|context|code|snippet|region|content|source)_?hash|^syntactic_id$`)

// occurrenceNumber matches what CodeQL appends to the hash of a line: the number of equal lines before it.
var occurrenceNumber = regexp.MustCompile(`:[0-9]+$`)

// fingerprintOf splits "name:value". lines says that it is a hash of code, without the number of equal lines before.
func fingerprintOf(text string) (name, value string, lines bool) {
	name, value, _ = strings.Cut(strings.TrimSpace(text), ":")
	if lines = lineHash.MatchString(name); lines {
		value = occurrenceNumber.ReplaceAllString(value, "")
	}
	return name, value, lines
}

// printsOf returns the fingerprints that identify a result, sorted: the best one, and the others.
func printsOf(best string, others []string) (prints [maxPrints]mark) {
	var all []mark
	for i := -1; i < len(others); i++ {
		text := best
		if i >= 0 {
			text = others[i]
		}
		name, value, lines := fingerprintOf(text)
		if value == "" || lines {
			continue
		}
		m := max(hashOf("name", name)>>32, logicalMark+1)<<32 | hashOf("value", value)>>32
		if !slices.ContainsFunc(all, func(other mark) bool { return other>>32 == m>>32 }) {
			all = append(all, m)
		}
	}
	all = all[:min(len(all), maxPrints)]
	slices.Sort(all)
	copy(prints[:], all)
	return prints
}

// hasCode reports whether there is evidence of the code itself.
func (e *Evidence) hasCode() bool { return e.Snippet != 0 || e.Code != 0 || e.Pattern != 0 }

// marks appends the marks that count, sorted.
func (e *Evidence) marks(to []mark, s strictness) []mark {
	if e.Logical != 0 && (s == byName && !e.hasCode() || s == byResource && e.Resource) {
		to = append(to, logicalMark<<32|e.Logical>>32)
	}
	for _, print := range e.Prints {
		if print != 0 {
			to = append(to, print)
		}
	}
	return to
}

// hasMarks reports whether any mark can contradict another.
func (e *Evidence) hasMarks() bool { return e.Logical != 0 || e.Prints != [maxPrints]mark{} }

// Contradict reports whether two results have a fingerprint of the same name with different values, or different
// logical locations and no code.
func Contradict(a, b *Evidence) bool { return contradict(a, b, byName) }

func contradict(a, b *Evidence, s strictness) bool {
	var x, y [maxPrints + 1]mark
	for _, m := range a.marks(x[:0], s) {
		for _, n := range b.marks(y[:0], s) {
			if m>>32 == n>>32 && m != n {
				return true
			}
		}
	}
	return false
}

// maxClasses bounds the combinations of names in one group. Members with further combinations are not joined.
const maxClasses = 16

// class has the members of a group whose marks have the same names.
type class struct {
	names   []uint64
	members []int32
}

func classesOf(members []int32, of func(int32) *Evidence, s strictness) (all []class) {
	for _, member := range members {
		var buffer [maxPrints + 1]mark
		names := of(member).marks(buffer[:0], s)
		for i := range names {
			names[i] >>= 32
		}
		at := slices.IndexFunc(all, func(c class) bool { return slices.Equal(c.names, names) })
		if at < 0 {
			if len(all) == maxClasses {
				continue
			}
			at = len(all)
			all = append(all, class{names: slices.Clone(names)})
		}
		all[at].members = append(all[at].members, member)
	}
	return all
}

// eachCompatible yields the parts of a group in which no finding contradicts a result, those with the most equal marks
// first. A member may be in several parts until it is joined.
func (m *matcher) eachCompatible(g group, s strictness, yield func(group)) {
	if !m.marked {
		yield(g)
		return
	}
	known := classesOf(g.known, func(k int32) *Evidence { return &m.known[k].Evidence }, s)
	results := classesOf(g.results, func(r int32) *Evidence { return &m.results[r] }, s)
	if !slices.ContainsFunc(known, func(a class) bool {
		return slices.ContainsFunc(results, func(b class) bool { return len(commonNames(a.names, b.names)) > 0 })
	}) {
		yield(g) // nothing to compare
		return
	}
	for common := maxPrints + 1; common >= 0; common-- {
		for _, a := range known {
			for _, b := range results {
				names := commonNames(a.names, b.names)
				if len(names) != common {
					continue
				}
				part := m.rest(group{a.members, b.members})
				if common > 0 {
					m.refine(part, func(e *Evidence) uint64 { return e.valuesOf(names, s) }, yield)
				} else if len(part.known) > 0 && len(part.results) > 0 {
					yield(part)
				}
			}
		}
	}
}

func commonNames(a, b []uint64) (names []uint64) {
	for _, name := range a {
		if slices.Contains(b, name) {
			names = append(names, name)
		}
	}
	return names
}

// valuesOf combines the values of the named marks.
func (e *Evidence) valuesOf(names []uint64, s strictness) uint64 {
	var buffer [maxPrints + 1]mark
	hash := uint64(1)
	for _, m := range e.marks(buffer[:0], s) {
		if slices.Contains(names, m>>32) {
			hash = mix(hash, m)
		}
	}
	return hash
}
