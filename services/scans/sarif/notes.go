package sarif

import (
	"fmt"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// notes collects what was changed or could not be read in a run. Equal faults are one note, so that a report with a
// million of them has one warning.
type notes struct {
	list []*note
	of   map[string]*note
	// blocker is the first fault that leaves open whether missing results are still in the code.
	blocker string
}

// note is a fault, with the JSON pointer of its first place.
type note struct {
	pointer, problem string
	n                int
}

func (n *note) String() string {
	text := n.pointer + " " + n.problem
	if n.n > 1 {
		text += fmt.Sprintf(" (and %d more like it)", n.n-1)
	}
	return text
}

// add adds a fault. blocks says that missing results may still be in the code because of it.
func (all *notes) add(pointer, problem string, blocks bool) {
	if blocks && all.blocker == "" {
		all.blocker = pointer + " " + problem
	}
	key := anyIndex(pointer) + " " + problem
	known := all.of[key]
	if known == nil {
		if len(all.list) > maxWarnings {
			return
		}
		if all.of == nil {
			all.of = map[string]*note{}
		}
		known = &note{pointer: pointer, problem: problem}
		all.of[key], all.list = known, append(all.list, known)
	}
	known.n++
}

// anyIndex replaces the indexes of a JSON pointer.
func anyIndex(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i, part := range parts {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// tell makes the notes warnings of the run.
func (run *Run) tell(all *notes) {
	for _, n := range all.list {
		run.warn("%s", n)
	}
}

// Partial returns why missing results may still be in the code although the run succeeded: a part that could not be
// read may be one of them. It is empty if everything was read. It is complete after [Report.Results].
func (run *Run) Partial() string {
	if run.notes.blocker != "" {
		return run.notes.blocker
	}
	return run.resultNotes.blocker
}

// here is the JSON pointer of the last token, for people.
func (r *reader) here() string { return jsonstream.Cut(jsonstream.Clean(r.Pointer()), 200) }

// ignore skips the next value, which has another type than wanted.
func (r *reader) ignore(run *Run, want string, blocks bool) error {
	kind := jsonstream.KindName(r.Kind())
	err := r.Skip()
	run.notes.add(r.here(), "is "+kind+", want "+want+": ignored", blocks)
	return err
}

// list reads the elements of a list. A single object is its only element, and anything else is ignored. blocks says
// that missing results may still be in the code if it is no list.
func (r *reader) list(run *Run, blocks bool, element func(i int) error) error {
	switch r.Kind() {
	case '[', 'n':
		return r.Array(element)
	case '{':
		err := element(0)
		run.notes.add(r.here(), "is an object, want an array: read as its only element", blocks)
		return err
	}
	return r.ignore(run, "an array", blocks)
}

// object reads the members of an object. Anything else is ignored, except null, which is an empty object.
func (r *reader) object(run *Run, blocks bool, member func(name string) error) error {
	switch r.Kind() {
	case '{':
		return r.Object(member)
	case 'n':
		return r.Skip()
	}
	return r.ignore(run, "an object", blocks)
}

// text reads a short text. A number or boolean is converted; anything else is ignored.
func (r *reader) text(run *Run, into *string, blocks bool) error {
	kind := r.Kind()
	switch kind {
	case '"', '0', 't', 'f':
	case 'n':
		return r.Skip()
	default:
		return r.ignore(run, "a string", blocks)
	}
	token, err := r.Token()
	if err != nil {
		return err
	}
	*into = jsonstream.Cut(redactTokens(jsonstream.OneLine(jsonstream.Clean(token.String()))), 255)
	if kind != '"' {
		run.notes.add(r.here(), "is "+jsonstream.KindName(kind)+", want a string: converted", blocks)
	}
	return nil
}

// decode reads the next value. A part that cannot be used is a note. blocks decides by the pointer of the part within
// the value whether missing results may still be in the code because of it; the pointer of the whole value is empty.
func (r *reader) decode(run *Run, out any, blocks func(pointer string) bool) (problem string, err error) {
	problem, err = r.Decode(out, func(f jsonstream.Fix) {
		run.notes.add(r.here()+f.Pointer, f.Problem, blocks(f.Pointer))
	})
	if problem != "" {
		run.notes.add(r.here(), "is ignored: "+problem, blocks(""))
	}
	return problem, err
}

func always(string) bool { return true }
func never(string) bool  { return false }

// optional is decode for a part that is kept, so that its size is charged.
func (r *reader) optional(run *Run, out any, blocks func(pointer string) bool) error {
	start := r.Offset()
	if _, err := r.decode(run, out, blocks); err != nil {
		return err
	}
	if !r.charge(int(r.Offset() - start)) {
		run.reject("%s takes more than the %d bytes that a report may describe", r.here(), r.limits.MaxMetadataBytes)
	}
	return nil
}
