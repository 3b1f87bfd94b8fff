package sarif

import (
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// logicalLocation is an entry of the run's table of logical locations.
type logicalLocation struct {
	name   string
	parent int // index of the enclosing one, or -1
	whole  bool
}

// maxLogical is the length at which the name of a logical location is cut.
const maxLogical = 1024

// logicalLocations reads the table that results refer to by index.
func (r *reader) logicalLocations(run *Run) error {
	full := false
	return r.list(run, true, func(int) error {
		if full {
			return r.Skip()
		}
		var w wireLogicalLocation
		if _, err := r.decode(run, &w, always); err != nil {
			return err
		}
		// A broken entry is kept as an empty one, so that the indexes of the others stay valid.
		entry := logicalLocation{parent: -1}
		entry.name, entry.whole = w.ownName()
		if w.ParentIndex != nil {
			entry.parent = int(*w.ParentIndex)
		}
		if full = !r.charge(len(entry.name) + 48); full {
			run.warn("logicalLocations from index %d on are ignored: the report describes more than fits", len(run.logical))
			return nil
		}
		run.logical = append(run.logical, entry)
		return nil
	})
}

// ownName is the best name of a logical location, and whether it includes the names of the enclosing ones.
func (w *wireLogicalLocation) ownName() (name string, whole bool) {
	for _, full := range []string{w.FullyQualifiedName, w.DecoratedName} {
		if full = jsonstream.OneLine(full); full != "" {
			return jsonstream.Cut(full, maxLogical), true
		}
	}
	return jsonstream.Cut(jsonstream.OneLine(w.Name), maxLogical), false
}

// logicalName is the name of the first logical location of a list, preferably one with a full name.
func (run *Run) logicalName(list []wireLogicalLocation) string {
	best := ""
	for i := range list {
		name, whole := run.nameOf(&list[i])
		if name != "" && whole {
			return name
		}
		if best == "" {
			best = name
		}
	}
	return best
}

func (run *Run) nameOf(w *wireLogicalLocation) (name string, whole bool) {
	name, whole = w.ownName()
	parent := -1
	switch {
	case whole:
		return name, true
	case w.ParentIndex != nil:
		parent = int(*w.ParentIndex)
	case w.Index != nil && *w.Index >= 0 && int(*w.Index) < len(run.logical):
		entry := run.logical[*w.Index]
		if name == "" || entry.whole {
			name, whole = entry.name, entry.whole
		}
		parent = entry.parent
	}
	if whole || name == "" {
		return name, whole
	}
	return run.enclosed(name, parent)
}

// enclosed puts the names of the enclosing logical locations before a name.
func (run *Run) enclosed(name string, parent int) (string, bool) {
	names, whole := []string{name}, false
	for range maxChain {
		if whole || parent < 0 || parent >= len(run.logical) {
			break
		}
		entry := run.logical[parent]
		if entry.name != "" {
			names = append([]string{entry.name}, names...)
		}
		whole, parent = entry.whole, entry.parent
	}
	return jsonstream.Cut(strings.Join(names, "."), maxLogical), len(names) > 1
}
