package list

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/names"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

const (
	// maxNames is the maximum number of names of a filter, as in the protos.
	maxNames = 1000
	// maxRef is the maximum length of a ref. The protos limit the joined list only.
	maxRef = 255
)

// lookup returns the values that are stored names.
type lookup func(ctx context.Context, db *ent.Client, values []string) ([]string, error)

// SplitNames splits the values of filters by name at commas: clients join lists with them. A value stays whole if such
// a name is stored, because names may contain commas. The issue types are all types of the list: a name means the same
// for each of them.
func (f *Filter) SplitNames(ctx context.Context, db *ent.Client, issueTypes ...string) error {
	for _, of := range []struct {
		parameter string
		values    *[]string
		stored    lookup
	}{
		{"repos", &f.Repos, storedProjects},
		{"ref", &f.Refs, f.storedRefs(issueTypes)},
		{"component_tags", &f.ComponentTags, f.storedIn(finding.FieldComponentTag, issueTypes)},
		{"rules", &f.Rules, f.storedRules(rule.FieldName)},
		{"categories", &f.Categories, f.storedRules(rule.FieldCategory)},
	} {
		split, err := names.Split(of.parameter, *of.values, maxNames, func(values []string) ([]string, error) {
			return of.stored(ctx, db, values)
		})
		if err != nil {
			return err
		}
		*of.values = split
	}
	return checkRefs(f.Refs)
}

// checkRefs refuses refs that are too long.
func checkRefs(refs []string) error {
	for i, ref := range refs {
		if n := utf8.RuneCountInString(ref); n > maxRef {
			name := fmt.Sprintf("ref[%d]", i)
			return apierr.InvalidArgument(name, "%s must have at most %d characters, got %d", name, maxRef, n)
		}
	}
	return nil
}

// storedProjects returns the values that are names of projects, in any case.
func storedProjects(ctx context.Context, db *ent.Client, values []string) ([]string, error) {
	return spelled(values, strings.ToLower, func(keys []string) ([]string, error) {
		return db.Project.Query().Where(store.OneOf(project.FieldNameKey, keys)).Select(project.FieldNameKey).Strings(ctx)
	})
}

// storedRefs returns a function for the values that are refs of findings, short or full.
func (f *Filter) storedRefs(issueTypes []string) lookup {
	stored := f.storedIn(finding.FieldRef, issueTypes)
	return func(ctx context.Context, db *ent.Client, values []string) ([]string, error) {
		return spelled(values, gitref.Full, func(refs []string) ([]string, error) { return stored(ctx, db, refs) })
	}
}

// storedIn returns a function for the values that a column of findings of the issue types has.
func (f *Filter) storedIn(column string, issueTypes []string) lookup {
	return func(ctx context.Context, db *ent.Client, values []string) ([]string, error) {
		return db.Finding.Query().
			Where(finding.DeploymentID(f.DeploymentID), store.OneOf(finding.FieldIssueType, issueTypes), store.OneOf(column, values)).
			Unique(true).Select(column).Strings(ctx)
	}
}

// storedRules returns a function for the values that a column of rules has.
func (f *Filter) storedRules(column string) lookup {
	return func(ctx context.Context, db *ent.Client, values []string) ([]string, error) {
		return db.Rule.Query().Where(rule.DeploymentID(f.DeploymentID), store.OneOf(column, values)).
			Unique(true).Select(column).Strings(ctx)
	}
}

// spelled returns the values whose stored spelling stored returns.
func spelled(values []string, spelling func(string) string, stored func([]string) ([]string, error)) ([]string, error) {
	keys := make([]string, len(values))
	for i, value := range values {
		keys[i] = spelling(value)
	}
	found, err := stored(keys)
	return slices.DeleteFunc(values, func(value string) bool { return !slices.Contains(found, spelling(value)) }), err
}
