package issuefilter

import (
	"strconv"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/projects/gitref"
)

// projects adds the conditions on the project of a finding.
func (c *Conditions) projects(f *findingsv1.IssuesFilter) {
	c.ids(finding.FieldProjectID, f.GetRepositoryIds())
	for _, names := range []ProjectNames{
		{Names: given(f.GetRepositoryNames())}, {Visibilities: words(f.GetRepoVisibilities(), "REPOSITORY_VISIBILITY_")},
		{Tags: given(f.GetRepositoryTags())}, {Teams: given(f.GetTeamNames()), SeenTeams: c.seenTeams},
	} {
		if rest := names.text(c.DeploymentID); len(rest) > 0 {
			c.add(term{column: finding.FieldProjectID, rows: rest})
		}
	}
}

// refs adds the conditions on the ref of a finding.
func (c *Conditions) refs(f *findingsv1.IssuesFilter) {
	c.List = append(c.List, Refs(c.DeploymentID, given(f.GetRefs()))...)
	var options []term
	for _, id := range given(f.GetRepositoryRefIds()) {
		if strings.HasPrefix(id, "refs/") { // as the refIds of agentic-workflow issues
			options = append(options, term{column: finding.FieldRef, words: []string{id}})
			continue
		}
		projectID, ref, ok := ParseRefID(id)
		if !ok && c.err == nil {
			c.err = apierr.InvalidArgument("filter.repositoryRefIds",
				"filter.repositoryRefIds: got %q, want a full ref, such as refs/heads/main, or the id of a project, a colon and a full ref, such as 12:refs/heads/main", id)
		}
		options = append(options, term{all: []term{{column: finding.FieldProjectID, ids: []int64{projectID}}, {column: finding.FieldRef, words: []string{ref}}}})
	}
	c.either(options...)
	if f.GetOnPrimaryBranch() {
		c.add(term{column: primaryBranch})
	}
}

// Refs selects findings on one of the refs: full ones, short names of branches, or the primary branch of each project.
// No ref means no condition.
func Refs(deploymentID int64, refs []string) []Condition {
	var named []string
	for _, ref := range refs {
		if ref != gitref.Default {
			named = append(named, gitref.Full(ref))
		}
	}
	switch {
	case len(refs) == 0:
		return nil
	case len(named) == len(refs):
		return []Condition{OneOf(finding.FieldRef, named...)}
	case len(named) == 0:
		c := of(deploymentID, term{column: primaryBranch})
		c.Column = finding.FieldRef
		return []Condition{c}
	}
	c := of(deploymentID, term{any: []term{{column: primaryBranch}, {column: finding.FieldRef, words: distinct(named)}}})
	c.Column = finding.FieldRef
	return []Condition{c}
}

// ParseRefID parses an id from RefID. It accepts only the form that RefID writes.
func ParseRefID(id string) (projectID int64, ref string, ok bool) {
	number, ref, _ := strings.Cut(id, ":")
	projectID, err := strconv.ParseInt(number, 10, 64)
	return projectID, ref, err == nil && projectID > 0 && strings.HasPrefix(ref, "refs/") && RefID(projectID, ref) == id
}

// OnPrimaryBranch limits findings to the primary branch of their project: the one that a person set, or else the
// default branch. A scalar subquery keeps PostgreSQL from joining and sorting all findings for one page. The plus keeps
// SQLite from indexes that have the ref but not the order.
func OnPrimaryBranch(deploymentID int64) predicate.Finding {
	return func(s *entsql.Selector) {
		ref := s.C(finding.FieldRef)
		if s.Dialect() == dialect.SQLite {
			ref = "+" + ref
		}
		s.Where(text(ref, " = (SELECT COALESCE(NULLIF(owner.primary_branch, ''), owner.default_branch) FROM projects owner",
			" WHERE owner.deployment_id = ", arg{deploymentID}, " AND owner.id = ", s.C(finding.FieldProjectID), ")"))
	}
}
