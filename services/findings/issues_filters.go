package findings

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
)

// Lengths of the lists of filters.
const (
	maxFilterItems = 1000
	maxFacetValues = 100
)

// GetIssueFilters returns the values that the selected findings have, with exact numbers from the columns in memory.
func (s *Issues) GetIssueFilters(ctx context.Context, r *findingsv1.GetIssueFiltersRequest) (*findingsv1.GetIssueFiltersResponse, error) {
	of, chosen, err := s.chooseAll(ctx, r)
	if err != nil {
		return nil, err
	}
	numbers := of.Count(&chosen.Filter)
	f := &facets{values: map[string]map[string]*findingsv1.IssueFacetValue{}, out: &findingsv1.GetIssueFiltersResponse{}}
	f.facts(of.Kinds(), numbers.Kinds)
	owners := f.places(of.Places(), numbers.Places, chosen.Projects)
	byType := func(issueType string) []int32 {
		limited := chosen.Filter
		limited.Kinds = ofType(issueType, of.Kinds(), chosen.Kinds)
		return of.Count(&limited).Rules
	}
	byRule := ruleNumbers{numbers.Rules, byType(vocabulary.Secrets), byType(vocabulary.SCA)}
	if err := f.rules(ctx, s.store.Reader, of.Rules(), byRule); err != nil {
		return nil, err
	}
	if err := f.organization(ctx, s.store.Reader, owners); err != nil {
		return nil, err
	}
	f.finish()
	return f.out, nil
}

// facets collect the numbers of findings by field and value.
type facets struct {
	values map[string]map[string]*findingsv1.IssueFacetValue
	out    *findingsv1.GetIssueFiltersResponse
}

// add counts findings. The id is of the project, rule, team or tag with this name; 0 for other values.
func (f *facets) add(field, value string, id, n int64) {
	if n == 0 || value == "" {
		return
	}
	values := f.values[field]
	if values == nil {
		values = map[string]*findingsv1.IssueFacetValue{}
		f.values[field] = values
	}
	if values[value] == nil {
		values[value] = &findingsv1.IssueFacetValue{Value: value, Id: id}
	}
	values[value].Count += n
}

// names are the values of a field in their order, at most maxFilterItems.
func (f *facets) names(field string) []string {
	names := slices.Sorted(maps.Keys(f.values[field]))
	return names[:min(len(names), maxFilterItems)]
}

// factFields are the fields about columns that have few words: the prefix of the enum, and the word of null; "" means
// that no value of the filter selects null.
var factFields = []struct{ name, column, prefix, null string }{
	{"issueTypes", "issue_type", "ISSUE_TYPE_", ""},
	{"severities", "severity", "SEVERITY_", ""},
	{"status", "state", "ISSUE_STATUS_", ""},
	{"triageReasons", "triage_reason", "FINDING_TRIAGE_REASON_", ""},
	{"reachabilities", "exposure", "REACHABILITY_", ""},
	{"validationStates", "validation_state", "VALIDATION_STATE_", ""},
	{"aiVerdicts", "autotriage_verdict", "VERDICT_", "no_verdict"},
}

func (f *facets) facts(kinds []columns.Facts, numbers []int32) {
	for i, facts := range kinds {
		n := int64(numbers[i])
		f.out.Total += n
		for _, field := range factFields {
			word, null, known := facts.Word(field.column)
			if null {
				word = field.null
			}
			if known && word != "" {
				f.add(field.name, field.prefix+strings.ToUpper(word), 0, n)
			}
		}
		if policy, _, known := facts.Word("policy_mode"); known {
			f.add("policySlugs", cmp.Or(policy, issuefilter.Monitored), 0, n)
		}
		if way, null, _ := facts.Word("transitivity"); !null {
			f.add("transitivities", strings.Replace(strings.ToUpper(way), "UNKNOWN", "UNKNOWN_TRANSITIVITY", 1), 0, n)
		}
		f.add("aggregateIssueStates", issuefilter.AggregateState(facts).String(), 0, n)
	}
}

// places adds the projects and refs. It returns the numbers of findings by project.
func (f *facets) places(places []columns.Place, numbers []int32, projects map[int64]*ent.Project) map[int64]int64 {
	owners, refs := map[int64]int64{}, map[int64][]*findingsv1.IssueRefFilterItem{}
	for i, place := range places {
		n := int64(numbers[i])
		if n == 0 {
			continue
		}
		owner := projects[place.Project]
		owners[owner.ID] += n
		f.add("repositoryNames", owner.Name, owner.ID, n)
		f.add("refs", place.Ref, 0, n)
		refs[owner.ID] = append(refs[owner.ID], &findingsv1.IssueRefFilterItem{
			Id: issuefilter.RefID(owner.ID, place.Ref), RefName: place.Ref, IsPrimary: place.Ref == issuefilter.PrimaryRef(owner),
		})
	}
	f.out.RepoNames, f.out.Refs = f.names("repositoryNames"), f.names("refs")
	chosen := slices.SortedFunc(maps.Keys(owners), func(a, b int64) int {
		return cmp.Or(cmp.Compare(projects[a].Name, projects[b].Name), cmp.Compare(a, b))
	})
	room := maxFilterItems // of refs, for all projects
	for _, id := range chosen[:min(len(chosen), maxFilterItems)] {
		f.out.Repos = append(f.out.Repos, &findingsv1.IssueRepoFilterItem{Id: id, Name: projects[id].Name})
		if room == 0 {
			continue
		}
		list := refs[id]
		slices.SortFunc(list, func(a, b *findingsv1.IssueRefFilterItem) int { return cmp.Compare(a.GetRefName(), b.GetRefName()) })
		list = list[:min(len(list), room)]
		room -= len(list)
		f.out.RepoRefGroups = append(f.out.RepoRefGroups, &findingsv1.IssueRefGroup{
			RepoName: projects[id].Name, RepoRefs: list,
			HasPrimaryRef: slices.ContainsFunc(list, (*findingsv1.IssueRefFilterItem).GetIsPrimary),
		})
	}
	return owners
}

// ofType limits kinds to the ones of an issue type.
func ofType(issueType string, kinds []columns.Facts, chosen []bool) []bool {
	limited := make([]bool, len(kinds))
	for i, facts := range kinds {
		word, _, _ := facts.Word("issue_type")
		limited[i] = word == issueType && (chosen == nil || chosen[i])
	}
	return limited
}

// ruleNumbers are the numbers of findings of each rule: all, and of two types.
type ruleNumbers struct{ all, secrets, packages []int32 }

// rules adds the rules with their categories and confidences, and the types of secrets: the type that a rule states, or
// its name.
func (f *facets) rules(ctx context.Context, db *ent.Client, known []int64, numbers ruleNumbers) error {
	counts, secrets := map[int64]int64{}, map[int64]int64{}
	var ofPackages []int64
	for i, n := range numbers.all {
		if n == 0 {
			continue
		}
		counts[known[i]], secrets[known[i]] = int64(n), int64(numbers.secrets[i])
		if numbers.packages[i] > 0 && len(ofPackages) < maxFilterItems {
			ofPackages = append(ofPackages, known[i])
		}
	}
	advisories, err := advisoriesOf(ctx, db, ofPackages)
	if err != nil {
		return err
	}
	rows, err := db.Rule.Query().Where(store.WithIDs[predicate.Rule](slices.Collect(maps.Keys(counts)))).
		Select(rule.FieldID, rule.FieldName, rule.FieldCategory, rule.FieldConfidence, rule.FieldSecretType).All(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b *ent.Rule) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	for _, row := range rows {
		n := counts[row.ID]
		f.add("rules", row.Name, row.ID, n)
		f.add("categories", row.Category, 0, n)
		if row.Confidence != "" {
			f.add("confidences", "CONFIDENCE_"+strings.ToUpper(row.Confidence), 0, n)
		}
		kind := row.Name
		if row.SecretType != nil {
			kind = *row.SecretType
		}
		f.add("secretTypes", kind, 0, secrets[row.ID])
		if len(f.out.Rules) < maxFilterItems {
			f.out.Rules = append(f.out.Rules, &findingsv1.RuleFilterItem{
				Id: row.ID, Name: row.Name, ScaCve: cve.FindString(advisories[row.ID]), ScaGhsa: ghsa.FindString(advisories[row.ID]),
			})
		}
	}
	f.out.RuleNames, f.out.Categories, f.out.SecretTypes = f.names("rules"), f.names("categories"), f.names("secretTypes")
	return nil
}

// organization adds the tags and teams of the projects.
func (f *facets) organization(ctx context.Context, db *ent.Client, owners map[int64]int64) error {
	links, err := db.ProjectTag.Query().All(ctx)
	if err != nil {
		return err
	}
	counts := map[int64]int64{}
	for _, link := range links {
		counts[link.TagID] += owners[link.ProjectID]
	}
	tags, err := db.Tag.Query().All(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(tags, func(a, b *ent.Tag) int { return cmp.Compare(a.Name, b.Name) })
	for _, tag := range tags {
		if f.add("repositoryTags", tag.Name, tag.ID, counts[tag.ID]); counts[tag.ID] > 0 && len(f.out.Tags) < maxFilterItems {
			f.out.Tags = append(f.out.Tags, &findingsv1.IssueTagFilterItem{Id: tag.ID, Name: tag.Name})
		}
	}
	if err := f.teams(ctx, db, owners); err != nil {
		return err
	}
	f.out.RepoTags, f.out.TeamNames = f.names("repositoryTags"), f.names("teamNames")
	return nil
}

// teams adds the teams of the projects that the caller may know of. A project of a team also belongs to the teams above
// it, once.
func (f *facets) teams(ctx context.Context, db *ent.Client, owners map[int64]int64) error {
	teams, err := db.Team.Query().All(ctx)
	if err != nil {
		return err
	}
	byID := map[int64]*ent.Team{}
	for _, team := range teams {
		byID[team.ID] = team
	}
	links, err := db.TeamProject.Query().All(ctx)
	if err != nil {
		return err
	}
	seen, limited := tenant.Teams(ctx)
	type pair struct{ team, project int64 }
	counted := map[pair]bool{}
	for _, link := range links {
		for team := byID[link.TeamID]; team != nil; {
			one := pair{team.ID, link.ProjectID}
			if known := !limited || slices.Contains(seen, team.ID); known && !counted[one] {
				counted[one] = true
				f.add("teamNames", team.Name, team.ID, owners[link.ProjectID])
			}
			if team.ParentID == nil {
				break
			}
			team = byID[*team.ParentID]
		}
	}
	return nil
}

// finish orders the facets: by field, the most frequent value first.
func (f *facets) finish() {
	for _, field := range slices.Sorted(maps.Keys(f.values)) {
		values := slices.SortedFunc(maps.Values(f.values[field]), func(a, b *findingsv1.IssueFacetValue) int {
			return cmp.Or(cmp.Compare(b.GetCount(), a.GetCount()), cmp.Compare(a.GetValue(), b.GetValue()))
		})
		f.out.Facets = append(f.out.Facets, &findingsv1.IssueFacet{Field: field, Values: values[:min(len(values), maxFacetValues)]})
	}
}
