package steps

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/palisade/palisade/services/workflows/step"
)

// Limits of globs: matching many stars is slow.
const (
	maxGlobs     = 100
	maxGlobBytes = 300
	maxStars     = 6
)

// fileSet selects files by globs. A glob matches the whole path: * stays within a path segment and ** crosses segments.
// A glob without a slash matches the file name. A glob that ends in a slash matches everything below it. Without
// include all files match; exclude takes precedence.
type fileSet struct{ include, exclude []string }

func newFileSet(include, exclude words) (fileSet, error) {
	var set fileSet
	for _, list := range []struct {
		name string
		got  words
		to   *[]string
	}{{"include", include, &set.include}, {"exclude", exclude, &set.exclude}} {
		if len(list.got) > maxGlobs {
			return set, fmt.Errorf("%s must hold at most %d globs, got %d", list.name, maxGlobs, len(list.got))
		}
		for _, glob := range list.got {
			if glob == "" || len(glob) > maxGlobBytes || strings.Count(glob, "*") > maxStars {
				return set, fmt.Errorf("%s: %.40q must have 1 to %d characters and at most %d stars", list.name, glob, maxGlobBytes, maxStars)
			}
			if strings.HasSuffix(glob, "/") {
				glob += "**"
			}
			glob = strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
			// The library validates a pattern only as far as it matches a path.
			if _, err := path.Match(glob, ""); err != nil || strings.Count(glob, "{") != strings.Count(glob, "}") {
				return set, globError(glob)
			}
			*list.to = append(*list.to, glob)
		}
	}
	return set, nil
}

func globError(glob string) error {
	return fmt.Errorf("%.40q is not a glob: brackets and braces must be closed", glob)
}

// matches reports whether a file is selected.
func (s fileSet) matches(file string) (bool, error) {
	if len(s.include) > 0 {
		if chosen, err := anyMatch(s.include, file); err != nil || !chosen {
			return false, err
		}
	}
	left, err := anyMatch(s.exclude, file)
	return !left, err
}

func anyMatch(globs []string, file string) (bool, error) {
	for _, glob := range globs {
		name := file
		if !strings.Contains(glob, "/") {
			name = path.Base(file)
		}
		matches, err := doublestar.Match(glob, name)
		if err != nil {
			return false, step.Permanent("%w", globError(glob))
		}
		if matches {
			return true, nil
		}
	}
	return false, nil
}
