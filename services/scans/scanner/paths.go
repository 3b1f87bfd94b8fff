package scanner

import (
	"path"
	"regexp"
	"slices"
	"strings"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

const (
	// failedPlaceless is why a scan closes nothing if it could not look at a file that it does not list.
	failedPlaceless = "the scanner reported an error in a file that it neither searched nor skipped"
	// failedSkipped is why a scan closes nothing if it does not say which file it skipped.
	failedSkipped = "the scanner reported a skipped file without its path"
)

// absolute is the start of an absolute path.
var absolute = regexp.MustCompile(`^(/|[A-Za-z]:[\\/])`)

// pathResolver finds the files that a scanner names in other forms than in its findings: ./a.py, .\a.py,
// /builds/acme/web/a.py.
type pathResolver struct {
	// known are the searched and skipped files by their paths with slashes.
	known map[string]string
}

// resolve writes the paths of a coverage as findings have them. The first coverage comes with the results and lists all
// files that the scan looked for. Later ones come with the completion: their files have errors.
func (r *pathResolver) resolve(c *storev1.ScannerCoverage) {
	if r.known == nil {
		r.results(c)
		return
	}
	var skipped []string
	for _, name := range c.GetSkippedPaths() {
		found := r.find(name)
		if len(found) == 0 {
			c.Failure = failedPlaceless
		}
		skipped = append(skipped, found...)
	}
	c.SkippedPaths = skipped
}

func (r *pathResolver) results(c *storev1.ScannerCoverage) {
	r.known = make(map[string]string, len(c.GetSearchedPaths()))
	for _, list := range [][]string{c.GetSearchedPaths(), c.GetRenamedPaths(), c.GetSkippedPaths()} {
		for i, name := range list {
			list[i] = path.Clean(name)
		}
	}
	for _, name := range c.GetSearchedPaths() {
		r.known[slashed(name)] = name
	}
	skipped := c.GetSkippedPaths()
	for _, name := range slices.Clone(skipped) {
		if found := r.find(name); len(found) > 0 {
			skipped = append(skipped, found...)
		} else if absolute.MatchString(name) { // where the repository starts is unknown
			skipped = append(skipped, ends(slashed(name))...)
		} else {
			skipped = append(skipped, slashed(name))
		}
	}
	slices.Sort(skipped)
	c.SkippedPaths = slices.Compact(skipped)
	for _, name := range c.GetSkippedPaths() {
		r.known[slashed(name)] = name
	}
}

// find returns the listed files that a path may mean: itself, or those that it ends with.
func (r *pathResolver) find(name string) (found []string) {
	name = slashed(name)
	if file, ok := r.known[name]; ok {
		return []string{file}
	}
	for _, end := range ends(name) {
		if file, ok := r.known[end]; ok {
			found = append(found, file)
		}
	}
	return found
}

// slashed is a clean path with slashes.
func slashed(name string) string { return path.Clean(strings.ReplaceAll(name, `\`, "/")) }

// ends returns what follows each slash of a path.
func ends(name string) (list []string) {
	for {
		_, rest, more := strings.Cut(name, "/")
		if !more {
			return list
		}
		name, list = rest, append(list, rest)
	}
}
