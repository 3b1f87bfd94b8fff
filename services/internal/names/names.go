// Package names splits lists of stored names that clients join with commas.
package names

import (
	"slices"
	"strings"

	"github.com/palisade/palisade/services/internal/apierr"
)

// Split splits the values of a parameter at commas. A value stays whole if stored returns it, because names may contain
// commas; stored gets the values that have some. Errors: INVALID_ARGUMENT for more than most names.
func Split(parameter string, values []string, most int, stored func(values []string) ([]string, error)) ([]string, error) {
	joined := slices.DeleteFunc(slices.Clone(values), func(value string) bool { return !strings.Contains(value, ",") })
	if len(joined) == 0 {
		return values, nil
	}
	whole, err := stored(joined)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, value := range values {
		if slices.Contains(whole, value) {
			names = append(names, value)
			continue
		}
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				names = append(names, part)
			}
		}
	}
	if n := len(names); n > most {
		return nil, apierr.InvalidArgument(parameter, "%s must have at most %d items, got %d", parameter, most, n)
	}
	return names, nil
}
