// Package memory says which memories count for a finding, and which of them go into a prompt. It has no database in it.
package memory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
)

// Stages of a memory, as the table has them.
const (
	Live      = "live"
	Suggested = "suggested"
	Deleted   = "deleted"
)

// What a memory is for.
const (
	Triage   = "TRIAGE"
	Guidance = "GUIDANCE"
)

// Facts are what a memory's scope is compared with.
type Facts struct {
	RuleID, ProjectID int64
	// ProjectTagIDs are the tags of the project.
	ProjectTagIDs []int64
	// Path is that of the file, relative to the root of the repository.
	Path string
	// VulnerabilityClasses are those of the rule.
	VulnerabilityClasses []string
}

// InScope reports whether a memory is about the finding: all that it names must be true of it. Deleted memories are
// about nothing; the stage does not matter otherwise. The filter memoryIdInScope says the same in SQL
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
	return len(m.PathPrefixes) == 0 || slices.ContainsFunc(m.PathPrefixes, func(prefix string) bool { return Below(f.Path, prefix) })
}

// Below reports whether a path is a file or directory, or is in it: app is not the beginning of application.
func Below(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// CleanPrefix spells a path prefix as it is stored: without a slash, or a dot for the root, at either end.
func CleanPrefix(prefix string) string {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(prefix), "./"), "/")
}

// Choose picks, from memories in any order, those that go into a prompt: live ones in the scope of the finding, for the
// context asked for, and no more than limit bytes of content. The most specific come first, the newest of equals; what
// does not fit is left out whole, never cut.
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

// specificity is higher for memories that say more exactly what they are about.
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
