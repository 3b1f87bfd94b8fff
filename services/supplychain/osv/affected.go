package osv

import (
	"slices"
	"strings"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// zero is OSV's version before all others.
const zero = "0"

// Affects reports whether an advisory with these versions affects a version: it is listed, or lies in a range, as the
// schema's evaluation defines. A version that the ecosystem cannot parse is only in ranges that start before all
// versions and never end.
func Affects(affected *storev1.AffectedVersions, ecosystem, version string) bool {
	version = strings.TrimSpace(version)
	compare := order(ecosystem, false)
	for _, listed := range affected.GetVersions() {
		if listed == version {
			return true
		}
	}
	for _, r := range affected.GetRanges() {
		if inRange(r, version, order(ecosystem, r.GetSemver())) {
			return true
		}
	}
	if _, err := compare(version, version); err != nil {
		return false
	}
	return slices.ContainsFunc(affected.GetVersions(), func(listed string) bool { // 1.0 equals 1.0.0 in PyPI
		order, err := compare(listed, version)
		return err == nil && order == 0
	})
}

// Within returns a function that reports whether a version lies between two inclusive bounds; an empty bound is open. A
// version or bound that the ecosystem cannot parse is in no range. The function is not safe for concurrent use.
func Within(lower, upper string) func(ecosystem, version string) bool {
	type comparisons struct {
		lower, upper func(a, b string) (int, error)
	}
	of := map[string]comparisons{}
	return func(ecosystem, version string) bool {
		version = strings.TrimSpace(version)
		compare, known := of[ecosystem]
		if !known {
			compare = comparisons{order(ecosystem, false), order(ecosystem, false)}
			of[ecosystem] = compare
		}
		if lower != "" {
			if order, err := compare.lower(version, lower); err != nil || order < 0 {
				return false
			}
		}
		if upper != "" {
			if order, err := compare.upper(version, upper); err != nil || order > 0 {
				return false
			}
		}
		return true
	}
}

// inRange evaluates one range. Unparsable events make it match nothing.
func inRange(r *storev1.AffectedRange, version string, compare func(a, b string) (int, error)) bool {
	events := r.GetEvents()
	if endless(events) {
		return true
	}
	if _, err := compare(version, version); err != nil {
		return false
	}
	events, ok := sorted(events, compare)
	if !ok {
		return false
	}
	// after compares the version to an event's version; sorted has parsed all of them.
	after := func(other string) int {
		if other == zero {
			return 1
		}
		order, _ := compare(version, other)
		return order
	}
	inside, limits, within := false, false, false
	for _, event := range events {
		switch {
		case event.GetIntroduced() != "" && after(event.GetIntroduced()) >= 0:
			inside = true
		case event.GetFixed() != "" && after(event.GetFixed()) >= 0:
			inside = false
		case event.GetLastAffected() != "" && after(event.GetLastAffected()) > 0:
			inside = false
		case event.GetLimit() != "":
			limits = true
			within = within || event.GetLimit() == "*" || after(event.GetLimit()) < 0
		}
	}
	return inside && (!limits || within)
}

// endless reports whether the range covers all versions.
func endless(events []*storev1.AffectedEvent) bool {
	for _, event := range events {
		if event.GetIntroduced() != zero {
			return false
		}
	}
	return len(events) > 0
}

// sorted sorts events by version. At the same version, an introduced event comes before an end.
func sorted(events []*storev1.AffectedEvent, compare func(a, b string) (int, error)) ([]*storev1.AffectedEvent, bool) {
	readable := true
	events = slices.Clone(events)
	for _, event := range events {
		if at := versionOf(event); at != zero && at != "*" {
			if _, err := compare(at, at); err != nil {
				return nil, false
			}
		}
	}
	slices.SortStableFunc(events, func(a, b *storev1.AffectedEvent) int {
		left, right := versionOf(a), versionOf(b)
		order, err := 0, error(nil)
		switch {
		case left == right:
		case left == zero || right == "*":
			order = -1
		case right == zero || left == "*":
			order = 1
		default:
			order, err = compare(left, right)
			readable = readable && err == nil
		}
		if order == 0 && (a.GetIntroduced() != "") != (b.GetIntroduced() != "") {
			if a.GetIntroduced() != "" {
				return -1
			}
			return 1
		}
		return order
	})
	return events, readable
}

func versionOf(event *storev1.AffectedEvent) string {
	for _, version := range []string{event.GetIntroduced(), event.GetFixed(), event.GetLastAffected()} {
		if version != "" {
			return version
		}
	}
	return event.GetLimit()
}
