package steps

import (
	"fmt"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/palisade/palisade/services/workflows/step"
)

// Bounds of globs: matching many stars takes long.
const (
	maxGlobs     = 100
	maxGlobBytes = 300
	maxStars     = 6
)

// fileSet is what globs choose. A glob is compared with the whole path; * stays in a part of it, ** goes over many; one
// without a slash is compared with the name alone; one that ends in a slash means all that is below. No include means
// all; exclude wins.
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
			// The library finds mistakes only as far as a path matches.
			if _, err := path.Match(glob, ""); err != nil || strings.Count(glob, "{") != strings.Count(glob, "}") {
				return set, badGlob(glob)
			}
			*list.to = append(*list.to, glob)
		}
	}
	return set, nil
}

func badGlob(glob string) error {
	return fmt.Errorf("%.40q is no glob: brackets and braces must be closed", glob)
}

// holds reports whether a file is chosen.
func (s fileSet) holds(file string) (bool, error) {
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
			return false, step.Permanent("%w", badGlob(glob))
		}
		if matches {
			return true, nil
		}
	}
	return false, nil
}
