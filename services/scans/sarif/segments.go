package sarif

import (
	"strconv"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// segment is a part of the file with results: an array, or one result that is a member of an object.
type segment struct {
	// offset is the offset of the bracket of the array, or the end of the member's name.
	offset int64
	member bool
	// pointer is the JSON pointer of the array or the member.
	pointer string
}

// place is the place of a result in the file.
type place struct {
	*segment
	index int // in the segment
}

func (p place) String() string {
	if p.member {
		return p.pointer
	}
	return p.pointer + "/" + strconv.Itoa(p.index)
}

// resultMembers are members of a result that hardly are the name of one.
var resultMembers = map[string]bool{"message": true, "ruleId": true, "ruleIndex": true, "locations": true, "level": true, "kind": true}

// countResults counts and checks the results, and records their offset for the second pass. A repeated key adds to the
// count: JSON leaves its meaning open, and this way no results are lost.
func (r *reader) countResults(run *Run) error {
	if run.hasResults {
		run.warn("results appears more than once; all of them are read")
	}
	var err error
	switch k := r.Kind(); k {
	case 'n': // like an absent one, it says nothing about results
		return r.Skip()
	case '[':
		err = r.countElements(run)
	case '{':
		err = r.countMembers(run)
	default:
		run.reject("results is %s, want an array", jsonstream.KindName(k))
		return r.Skip()
	}
	run.hasResults = true
	if run.Results > r.limits.MaxResults {
		run.reject("it has more than %d results, the most that one run may have", r.limits.MaxResults)
	}
	return err
}

// countElements counts the results in an array.
func (r *reader) countElements(run *Run) error {
	first := true
	return r.Array(func(int) error {
		if first {
			first = false
			if err := r.segment(run, segment{offset: r.Offset() - 1, pointer: r.here()}); err != nil {
				return err
			}
		}
		return r.countElement(run)
	})
}

// countElement counts one element of results. Arrays in the array are read through.
func (r *reader) countElement(run *Run) error {
	if r.Kind() == '[' {
		err := r.Array(func(int) error { return r.countElement(run) })
		run.notes.add(r.here(), "is an array, want an object: its elements are read as results", true)
		return err
	}
	run.Results++
	raw, ok, err := r.Value()
	if ok && err == nil {
		if run.Results == 1 {
			run.image.first(raw)
		}
		r.sample(run, raw)
	}
	return err
}

// countMembers counts the results in an object: it is one result, or each of its members is one.
func (r *reader) countMembers(run *Run) error {
	results, segments := run.Results, len(run.segments)
	whole := segment{offset: r.Offset(), member: true, pointer: r.here()}
	one := false
	err := r.Object(func(name string) error {
		one = one || resultMembers[name]
		switch r.Kind() {
		case '[':
			return r.countElements(run)
		case '{':
			run.Results++
			if err := r.segment(run, segment{offset: r.Offset(), member: true, pointer: r.here()}); err != nil {
				return err
			}
		}
		return r.Skip()
	})
	if !one || err != nil {
		run.notes.add(r.here(), "is an object, want an array: its members are read as results", true)
		return err
	}
	run.Results, run.segments = results+1, run.segments[:segments]
	run.notes.add(r.here(), "is an object, want an array: it is read as one result", true)
	return r.segment(run, whole)
}

func (r *reader) segment(run *Run, s segment) error {
	if len(run.segments) > 100 && !r.charge(len(s.pointer)+64) {
		return &jsonstream.LimitError{What: "results in more objects than a report may have, in bytes", Max: r.limits.MaxMetadataBytes}
	}
	run.segments = append(run.segments, s)
	return nil
}
