package issuefilter

import (
	"slices"
	"strings"
)

// enum is any enum of the API.
type enum interface {
	~int32
	comparable
	String() string
}

// set removes the value that means "no filter".
func set[E enum](values []E) []E {
	kept := make([]E, 0, len(values))
	for _, v := range values {
		if v != 0 {
			kept = append(kept, v)
		}
	}
	return kept
}

// admits reports whether values contain v. An empty list contains all.
func admits[E enum](values []E, v E) bool { return len(values) == 0 || slices.Contains(values, v) }

// words returns the values as columns have them: SEVERITY_HIGH is high.
func words[E enum](values []E, prefix string) []string {
	values = set(values)
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = strings.ToLower(strings.TrimPrefix(v.String(), prefix))
	}
	return list
}
