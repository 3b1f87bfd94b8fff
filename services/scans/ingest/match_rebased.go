package ingest

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/store"
)

// rebasedFiles finds files that have another path only because the report places its files differently: a tool that now
// runs in a container, or a checkout in another directory. The former path is the end of the present one, or the other
// way round, and no other file fits. It reads the paths of the unjoined findings, and only if the coverage has rebased
// paths.
func (m *matcher) rebasedFiles(ctx context.Context, g *matches) (map[uint64]uint64, error) {
	if len(g.coverage.Rebased) == 0 {
		return nil, nil
	}
	present := map[uint64]bool{}
	for n := range g.joined {
		present[g.traces.at(n).Path] = true
	}
	former := map[string]bool{}
	for part := range slices.Chunk(g.unjoined, closeBatch) {
		var paths []*string
		err := m.tx.Finding.Query().Where(finding.DeploymentID(m.deploymentID)).Modify(store.FoundByIDs(part)).
			Select(finding.FieldFilePath).Scan(ctx, &paths)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if path != nil && *path != "" && !present[identity.PathHash(*path)] {
				former[*path] = true
			}
		}
	}
	return pairByEnd(former, g.coverage.Rebased), nil
}

// pairByEnd pairs paths where one is the end of the other, if both fit only each other.
func pairByEnd(former map[string]bool, now []string) map[uint64]uint64 {
	whole, ends := set(now), map[string][]string{} // ends has the present paths by their ends
	for _, path := range now {
		for end := range endsOf(path) {
			ends[end] = append(ends[end], path)
		}
	}
	fits, back := map[string][]string{}, map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(former)) {
		found := map[string]bool{}
		for _, longer := range ends[path] {
			found[longer] = true
		}
		for end := range endsOf(path) {
			if whole[end] {
				found[end] = true
			}
		}
		delete(found, path)
		for _, other := range slices.Sorted(maps.Keys(found)) {
			fits[path], back[other] = append(fits[path], other), append(back[other], path)
		}
	}
	pairs := map[uint64]uint64{}
	for path, others := range fits {
		if len(others) == 1 && len(back[others[0]]) == 1 {
			pairs[identity.PathHash(path)] = identity.PathHash(others[0])
		}
	}
	return pairs
}

// endsOf yields a path, and its ends that begin at a directory.
func endsOf(path string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for end, more := path, true; more; _, end, more = strings.Cut(end, "/") {
			if end != "" && !yield(end) {
				return
			}
		}
	}
}
