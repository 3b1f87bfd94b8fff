// Package memory decides which memories apply to a finding, and which ones go into a prompt. It does not use the
// database.
package memory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
)

// Stages of a memory, as stored.
const (
	Live      = "live"
	Suggested = "suggested"
	Deleted   = "deleted"
)

// Contexts of a memory.
const (
	Triage   = "TRIAGE"
	Guidance = "GUIDANCE"
)

// Facts are the properties of a finding that scopes are compared with.
type Facts struct {
	RuleID, ProjectID int64
	// ProjectTagIDs are the tags of the project.
	ProjectTagIDs []int64
	// Path is the file's path, relative to the repository root.
	Path string
	// VulnerabilityClasses are the rule's classes.
	VulnerabilityClasses []string
}

// InScope reports whether a memory applies to the finding: all conditions of its scope must hold. Deleted memories
// never apply; other stages do not matter. The filter memoryIdInScope is the same in SQL
// (services/findings/issuefilter).
func InScope(m *ent.AiMemory, f Facts) bool {
	switch {
	case m.Stage == Deleted,
		m.RuleID != nil && *m.RuleID != f.RuleID,
		m.ProjectID != nil && *m.ProjectID != f.ProjectID,
		m.ProjectTagID != nil && !slices.Contains(f.ProjectTagIDs, *m.ProjectTagID),
		m.VulnerabilityClass != "" && !slices.Contains(f.VulnerabilityClasses, m.VulnerabilityClass):
		return false
	}
	return len(m.PathPrefixes) == 0 || slices.ContainsFunc(m.PathPrefixes, func(prefix string) bool { return PathWithin(f.Path, prefix) })
}

// PathWithin reports whether a path equals or is inside a file or directory: app does not contain application.
func PathWithin(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// CleanPrefix normalises a path prefix: no slash at either end, no dot for the root.
func CleanPrefix(prefix string) string {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(prefix), "./"), "/")
}

// Choose selects the memories for a prompt: live ones in the finding's scope, for the given context, with at most limit
// bytes of content. The most specific come first, then the newest. A memory that does not fit is omitted, never cut.
func Choose(memories []*ent.AiMemory, f Facts, context string, limit int) []*ent.AiMemory {
	var chosen []*ent.AiMemory
	for _, m := range memories {
		if m.Stage == Live && (len(m.Context) == 0 || slices.Contains(m.Context, context)) && InScope(m, f) {
			chosen = append(chosen, m)
		}
	}
	slices.SortFunc(chosen, func(a, b *ent.AiMemory) int {
		return cmp.Or(cmp.Compare(specificity(b), specificity(a)), cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(b.ID, a.ID))
	})
	return slices.DeleteFunc(chosen, func(m *ent.AiMemory) bool {
		if len(m.Content) > limit {
			return true
		}
		limit -= len(m.Content)
		return false
	})
}

// specificity is higher for memories with a narrower scope.
func specificity(m *ent.AiMemory) (points int) {
	for _, p := range []struct {
		named  bool
		points int
	}{
		{m.RuleID != nil, 8}, {len(m.PathPrefixes) > 0, 4}, {m.ProjectID != nil, 4}, {m.VulnerabilityClass != "", 2}, {m.ProjectTagID != nil, 1},
	} {
		if p.named {
			points += p.points
		}
	}
	return points
}
