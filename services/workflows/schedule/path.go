package schedule

import (
	"strconv"
	"strings"
)

// Indexed is the path of a branch of a foreach or parallel step at a path.
func Indexed(path, step string, index int) string {
	return under(path, step+"["+strconv.Itoa(index)+"]")
}

// Named is the path of the branch of a split step that begins with the step next.
func Named(path, step, next string) string { return under(path, step+"."+next) }

func under(path, segment string) string {
	if path == "" {
		return segment
	}
	return path + "/" + segment
}

// Parent is the path of the step that forked into the branch. The parent of "" is "".
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return ""
}

// Branch returns the key of the innermost branch of a path: the index of a foreach or parallel step, or the name of the
// branch's first step. It is "" for the path "".
func Branch(path string) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	if i := strings.IndexByte(last, '['); i >= 0 {
		return strings.TrimSuffix(last[i+1:], "]")
	}
	_, name, _ := strings.Cut(last, ".")
	return name
}

// Index is Branch as a number; ok is false for a branch of a split.
func Index(path string) (index int, ok bool) {
	index, err := strconv.Atoi(Branch(path))
	return index, err == nil && strings.HasSuffix(path, "]")
}

// Enclosing lists a path and its enclosing paths, innermost first. The last is always "".
func Enclosing(path string) []string {
	paths := []string{path}
	for path != "" {
		path = Parent(path)
		paths = append(paths, path)
	}
	return paths
}
