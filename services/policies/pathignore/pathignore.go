// Package pathignore has the patterns of paths whose findings a policy ignores. A deployment has patterns for each
// product, and a project has its own. Scans, which send and apply them, share it with the API that changes them.
package pathignore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/policies/gitignore"
)

// The kinds of the events of findings that a policy begins or ends to ignore.
const (
	EventIgnored  = "path_ignored"
	EventReturned = "path_returned"
)

// Actor is the actor of these events, unless a scan applies the patterns. The audit trail says who changed them.
const Actor = "policy"

// SuppressionKind is the kind of the suppression of such a finding.
const SuppressionKind = "policy"

// Before and after the pattern in a reason.
const (
	ReasonBefore   = "ignored by the policy pattern `"
	ReturnedBefore = "no longer ignored by the policy pattern `"
	ReasonAfter    = "`"
)

// Reason says which pattern ignores a finding.
func Reason(pattern string) string { return ReasonBefore + pattern + ReasonAfter }

// Returned says which pattern ignored a finding before.
func Returned(pattern string) string { return ReturnedBefore + pattern + ReasonAfter }

// Policy has the patterns of a deployment, by product.
type Policy map[string][]string

// Read reads the patterns of the context's deployment.
func Read(ctx context.Context, db *ent.Client) (Policy, error) {
	rows, err := db.PathIgnore.Query().All(ctx)
	if err != nil {
		return nil, err
	}
	p := make(Policy, len(rows))
	for _, row := range rows {
		p[row.Product] = row.Patterns
	}
	return p, nil
}

// For returns the patterns that apply to a project. It is nil before the first scan of a project.
func (p Policy) For(of *ent.Project) *Matcher {
	m := &Matcher{patterns: map[string][]string{}, lists: map[string]*gitignore.List{}}
	for _, product := range vocabulary.Products {
		patterns := slices.Clone(p[product])
		if of != nil {
			patterns = slices.Concat(patterns, of.IgnoredFiles, of.ProductIgnoredFiles[product])
		}
		if patterns = usable(patterns); len(patterns) > 0 {
			m.patterns[product] = patterns
		}
	}
	return m
}

// usable leaves out patterns that cannot be used. Earlier versions stored any pattern of a project.
func usable(patterns []string) []string {
	return slices.DeleteFunc(patterns, func(text string) bool { return gitignore.Check(text) != nil })
}

// Matcher has the patterns of a project, by product. It is not safe for concurrent use.
type Matcher struct {
	patterns map[string][]string
	lists    map[string]*gitignore.List // compiled when they are first used
}

// Match returns the pattern that ignores the findings of a product in a file.
func (m *Matcher) Match(product, path string) (pattern string, ignored bool) {
	if m == nil || len(m.patterns[product]) == 0 || path == "" {
		return "", false
	}
	list := m.lists[product]
	if list == nil {
		list, _ = gitignore.New(m.patterns[product]...) // usable has checked them
		m.lists[product] = list
	}
	return list.Match(path)
}

// Empty reports whether there are no patterns.
func (m *Matcher) Empty() bool { return m == nil || len(m.patterns) == 0 }

// Equal reports whether two matchers have the same patterns.
func (m *Matcher) Equal(other *Matcher) bool {
	if m.Empty() || other.Empty() {
		return m.Empty() && other.Empty()
	}
	return !slices.ContainsFunc(vocabulary.Products, func(product string) bool {
		return !slices.Equal(m.patterns[product], other.patterns[product])
	})
}

// Skipped returns the patterns of files that a scan of a product may skip. Scanners do not treat exceptions as Git
// does. So patterns before an exception, which may except their files, are not among them: they apply to the results.
func (m *Matcher) Skipped(product string) []string {
	if m == nil {
		return nil
	}
	patterns := m.patterns[product]
	for n := len(patterns) - 1; n >= 0; n-- {
		if strings.HasPrefix(patterns[n], "!") {
			return patterns[n+1:]
		}
	}
	return patterns
}

// SkippedByAll returns the patterns of files that a scan of several products may skip for all of them.
func (m *Matcher) SkippedByAll(products []string) (common []string) {
	if len(products) == 0 {
		products = vocabulary.Products
	}
	for _, pattern := range m.Skipped(products[0]) {
		missing := func(product string) bool { return !slices.Contains(m.Skipped(product), pattern) }
		if !slices.Contains(common, pattern) && !slices.ContainsFunc(products[1:], missing) {
			common = append(common, pattern)
		}
	}
	return common
}

// Check returns the first pattern that is refused, as a *gitignore.Error.
func Check(patterns []string) *gitignore.Error {
	_, err := gitignore.New(patterns...)
	bad := (*gitignore.Error)(nil)
	errors.As(err, &bad)
	return bad
}

// Queue is the queue of Apply.
const Queue = "path_ignores"

// Apply is the job that applies changed patterns to the stored findings of a deployment.
type Apply struct {
	DeploymentID int64 `json:"deployment_id"`
}

// Kind is the name in the queue.
func (Apply) Kind() string { return "apply_path_ignores" }

// InsertOpts lets one run cover all changes that are stored before it begins.
func (Apply) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = Queue
	return opts
}
