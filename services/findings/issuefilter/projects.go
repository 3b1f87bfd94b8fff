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
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
)

// projects adds the conditions on the project of a finding.
func (c *conditions) projects(f *findingsv1.IssuesFilter) {
	c.ids(finding.FieldProjectID, f.GetRepositoryIds())
	if names := given(f.GetRepositoryNames()); len(names) > 0 {
		keys := make([]string, len(names))
		for i, name := range names {
			keys[i] = strings.ToLower(name)
		}
		c.ofProjects(" IN ", " AND name_key IN ", anyOf(keys))
	}
	if visibilities := words(f.GetRepoVisibilities(), "REPOSITORY_VISIBILITY_"); len(visibilities) > 0 {
		c.ofProjects(" IN ", " AND visibility IN ", anyOf(visibilities))
	}
	if tags := given(f.GetRepositoryTags()); len(tags) > 0 {
		c.ofProjects(" IN ", " AND id IN (SELECT l.project_id FROM project_tags l JOIN tags t ON t.id = l.tag_id WHERE l.deployment_id = ",
			arg{c.deploymentID}, " AND t.deployment_id = ", arg{c.deploymentID}, " AND t.name IN ", anyOf(tags), ")")
	}
	if teams := given(f.GetTeamNames()); len(teams) > 0 { // teams have at most three levels (contract facts 2.5)
		c.ofProjects(" IN ", " AND id IN (SELECT l.project_id FROM team_projects l JOIN teams t ON t.id = l.team_id",
			" LEFT JOIN teams above ON above.id = t.parent_id LEFT JOIN teams top ON top.id = above.parent_id WHERE l.deployment_id = ",
			arg{c.deploymentID}, " AND (t.name IN ", anyOf(teams), " OR above.name IN ", anyOf(teams), " OR top.name IN ", anyOf(teams), "))")
	}
	if f.GetIncludeArchived() {
		c.ofProjects(" IN ", " AND archived_at IS NOT NULL")
	} else {
		c.ofProjects(" NOT IN ", " AND archived_at IS NOT NULL")
	}
}

// ofProjects adds a condition on the project of a finding: how is IN or NOT IN, and rest selects projects.
func (c *conditions) ofProjects(how string, rest ...any) {
	c.raw(func(s *entsql.Selector) []any {
		parts := append([]any{s.C(finding.FieldProjectID), how, "(SELECT id FROM projects WHERE deployment_id = ", arg{c.deploymentID}}, rest...)
		return append(parts, ")")
	})
}

// refs adds the conditions on the ref of a finding.
func (c *conditions) refs(f *findingsv1.IssuesFilter) {
	var options []predicate.Finding
	var named []string
	for _, ref := range given(f.GetRefs()) {
		if ref != gitref.Default {
			named = append(named, gitref.Full(ref))
		} else if len(options) == 0 {
			options = append(options, OnPrimaryBranch(c.deploymentID))
		}
	}
	switch len(named) {
	case 0:
	case 1:
		options = append(options, finding.Ref(named[0]))
	default:
		options = append(options, store.OneOf(finding.FieldRef, named))
	}
	c.either(options)
	options = nil
	for _, id := range given(f.GetRepositoryRefIds()) {
		projectID, ref, ok := ParseRefID(id)
		if !ok && c.err == nil {
			c.err = apierr.InvalidArgument("filter.repositoryRefIds",
				"filter.repositoryRefIds: got %q, want the id of a project, a colon and a full ref, such as 12:refs/heads/main", id)
		}
		options = append(options, finding.And(finding.ProjectID(projectID), finding.Ref(ref)))
	}
	c.either(options)
	if f.GetOnPrimaryBranch() {
		c.add(OnPrimaryBranch(c.deploymentID))
	}
}

// RefID is the id of a ref of a project (IssueRef.id).
func RefID(projectID int64, ref string) string { return strconv.FormatInt(projectID, 10) + ":" + ref }

// ParseRefID parses an id from RefID.
func ParseRefID(id string) (projectID int64, ref string, ok bool) {
	number, ref, ok := strings.Cut(id, ":")
	projectID, err := strconv.ParseInt(number, 10, 64)
	return projectID, ref, ok && err == nil && ref != ""
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
