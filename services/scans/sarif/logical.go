package sarif

import (
	"cmp"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// logicalLocation is an entry of the run's table of logical locations.
type logicalLocation struct {
	name   string
	kind   string
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
		entry := logicalLocation{kind: w.ownKind(), parent: -1}
		entry.name, entry.whole = w.ownName()
		if w.ParentIndex != nil {
			entry.parent = int(*w.ParentIndex)
		}
		if full = !r.charge(len(entry.name) + len(entry.kind) + 64); full {
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

// maxKind is the length at which the kind of a logical location is cut. The longest of the specification has 21 bytes.
const maxKind = 64

func (w *wireLogicalLocation) ownKind() string {
	return jsonstream.Cut(jsonstream.OneLine(w.Kind), maxKind)
}

// logicalName is the name of the first logical location of a list, preferably one with a full name.
func (run *Run) logicalName(list []wireLogicalLocation) string {
	name, _ := run.logicalPlace(list)
	return name
}

// logicalPlace is logicalName with the kind.
func (run *Run) logicalPlace(list []wireLogicalLocation) (name, kind string) {
	for i := range list {
		own, ownKind, whole := run.nameOf(&list[i])
		if own != "" && whole {
			return own, ownKind
		}
		if name == "" {
			name, kind = own, ownKind
		}
	}
	return name, kind
}

func (run *Run) nameOf(w *wireLogicalLocation) (name, kind string, whole bool) {
	name, whole = w.ownName()
	kind = w.ownKind()
	parent := -1
	if w.ParentIndex != nil {
		parent = int(*w.ParentIndex)
	}
	if w.Index != nil && *w.Index >= 0 && int(*w.Index) < len(run.logical) {
		entry := run.logical[*w.Index]
		kind = cmp.Or(kind, entry.kind)
		if !whole && w.ParentIndex == nil {
			if name == "" || entry.whole {
				name, whole = entry.name, entry.whole
			}
			parent = entry.parent
		}
	}
	if whole || name == "" {
		return name, kind, whole
	}
	name, whole = run.enclosed(name, parent)
	return name, kind, whole
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
