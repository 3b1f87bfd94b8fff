package findings

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/ent/ruleversion"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/columns"
	"github.com/palisade/palisade/services/findings/exploit"
	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
)

// group is a rule or a project with the number of its findings.
type group struct {
	columns.Group
	id, rank, count int64
	severity        int // of severities
}

// ListIssueGroups lists rules or projects with the exact numbers of their findings, from the columns in memory.
func (s *Issues) ListIssueGroups(ctx context.Context, r *findingsv1.ListIssueGroupsRequest) (*findingsv1.ListIssueGroupsResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("issue groups"+tenant.Visibility(ctx), filter)
	if err != nil {
		return nil, err
	}
	after, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	of, chosen, err := s.chooseAll(ctx, r)
	if err != nil {
		return nil, err
	}
	byProject := r.GetGroupBy() == findingsv1.GroupBy_GROUP_BY_PROJECT
	ids, numbers := of.Rules(), []columns.Group(nil)
	if byProject {
		ids, numbers = groupPlaces(of.Places(), of.ByPlace(&chosen.Filter))
	} else {
		numbers = of.ByRule(&chosen.Filter)
	}
	groups := groupsOf(ids, numbers, r)
	out := &findingsv1.ListIssueGroupsResponse{Total: int64(len(groups))}
	if continued {
		first := slices.IndexFunc(groups, func(g group) bool {
			return cmp.Or(cmp.Compare(g.rank, after.Order), cmp.Compare(g.id, after.ID)) > 0
		})
		if first < 0 {
			first = len(groups)
		}
		groups = groups[first:]
	}
	if limit := cmp.Or(int(r.GetLimit()), list.DefaultSize); len(groups) > limit {
		groups = groups[:limit]
		last := groups[limit-1]
		out.Cursor = page.Encode(digest, page.Key{Order: last.rank, ID: last.id})
	}
	out.Fetched = int64(len(groups))
	if byProject {
		out.ProjectGroups = convertProjects(groups, chosen.Projects)
		return out, nil
	}
	out.Groups, err = s.convertGroups(ctx, groups)
	return out, err
}

// groupPlaces adds up the places of each project.
func groupPlaces(places []columns.Place, numbers []columns.Group) (projects []int64, sums []columns.Group) {
	at := map[int64]int{}
	for i, place := range places {
		n, known := at[place.Project]
		if !known {
			n = len(projects)
			at[place.Project], projects, sums = n, append(projects, place.Project), append(sums, columns.Group{})
		}
		sums[n].Add(numbers[i])
	}
	return projects, sums
}

func convertProjects(groups []group, projects map[int64]*ent.Project) []*findingsv1.ProjectGroup {
	list := make([]*findingsv1.ProjectGroup, len(groups))
	for i, g := range groups {
		list[i] = &findingsv1.ProjectGroup{IssuesCount: g.count, ProjectId: g.id, ProjectName: projects[g.id].Name, Severity: g.worst()}
	}
	return list
}

// worst is the highest severity of a group.
func (g group) worst() findingsv1.Severity {
	return findingsv1.Severity(findingsv1.Severity_value["SEVERITY_"+strings.ToUpper(severities[g.severity])])
}

// groupsOf returns the rules or projects with findings in the order of a request.
func groupsOf(ids []int64, numbers []columns.Group, r *findingsv1.ListIssueGroupsRequest) []group {
	var groups []group
	for i, of := range numbers {
		g := group{Group: of, id: ids[i]}
		for severity, n := range of.Severities {
			if g.count += int64(n); n > 0 {
				g.severity = severity
			}
		}
		if g.rank = g.count; r.GetSortBy() == findingsv1.SortBy_SORT_BY_SEVERITY {
			g.rank = int64(g.severity)
		}
		if g.rank = groupRank(g.rank, r.GetSortDirection()); g.count > 0 {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id)) })
	return groups
}

// ruleRows has the rows that groups show.
type ruleRows struct {
	rules      map[int64]*ent.Rule
	documents  map[string]*ent.RuleDocument
	versions   map[int64]*ent.RuleVersion // by document
	advisories map[int64]string           // of rules with supply-chain findings
	exploits   exploit.Known
	deployment string
}

// convertGroups reads the rules of groups, with six queries at most for any number of them.
func (s *Issues) convertGroups(ctx context.Context, groups []group) ([]*findingsv1.RuleGroup, error) {
	if len(groups) == 0 {
		return nil, nil
	}
	a, err := s.readRules(ctx, groups)
	if err != nil {
		return nil, err
	}
	list := make([]*findingsv1.RuleGroup, len(groups))
	for i, g := range groups {
		if list[i], err = a.convert(g); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (s *Issues) readRules(ctx context.Context, groups []group) (*ruleRows, error) {
	a := &ruleRows{rules: map[int64]*ent.Rule{}, documents: map[string]*ent.RuleDocument{}, versions: map[int64]*ent.RuleVersion{}}
	ids, ofPackages := make([]int64, len(groups)), make([]int64, 0, len(groups))
	for i, g := range groups {
		ids[i] = g.id
		if g.Has(vocabulary.SCA) {
			ofPackages = append(ofPackages, g.id)
		}
	}
	db := s.store.Reader
	rows, err := db.Rule.Query().Where(store.WithIDs[predicate.Rule](ids)).All(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		a.rules[row.ID], names[i] = row, row.Name
	}
	if a.advisories, err = advisoriesOf(ctx, db, ofPackages); err != nil {
		return nil, err
	}
	if a.exploits, err = exploit.Read(ctx, db, slices.Collect(maps.Values(a.advisories))); err != nil {
		return nil, err
	}
	documents, err := db.RuleDocument.Query().Where(store.OneOf(ruledocument.FieldName, names)).All(ctx)
	if err != nil || len(documents) == 0 {
		return a, err
	}
	for _, document := range documents {
		a.documents[document.Name] = document
	}
	if err := a.readVersions(ctx, db, documents); err != nil {
		return nil, err
	}
	deploymentID, _ := tenant.FromContext(ctx)
	a.deployment, err = db.Deployment.Query().Where(deployment.ID(deploymentID)).Select(deployment.FieldName).String(ctx)
	return a, err
}

// readVersions reads the newest version of documents.
func (a *ruleRows) readVersions(ctx context.Context, db *ent.Client, documents []*ent.RuleDocument) error {
	ids := make([]int64, len(documents))
	for i, document := range documents {
		ids[i] = document.ID
	}
	deploymentID, _ := tenant.FromContext(ctx)
	versions, err := db.RuleVersion.Query().Where(func(v *entsql.Selector) {
		newest := entsql.Table(ruledocument.Table).As("newest")
		v.Where(store.InIDs(v.C(ruleversion.FieldRuleDocumentID), ids))
		v.Where(entsql.Exists(entsql.Dialect(v.Dialect()).Select(newest.C(ruledocument.FieldID)).From(newest).Where(entsql.And(
			entsql.EQ(newest.C(ruledocument.FieldDeploymentID), deploymentID),
			entsql.ColumnsEQ(newest.C(ruledocument.FieldID), v.C(ruleversion.FieldRuleDocumentID)),
			entsql.ColumnsEQ(newest.C(ruledocument.FieldVersion), v.C(ruleversion.FieldVersion)),
		))))
	}).All(ctx)
	for _, version := range versions {
		a.versions[version.RuleDocumentID] = version
	}
	return err
}

func (a *ruleRows) convert(g group) (*findingsv1.RuleGroup, error) {
	out := &findingsv1.RuleGroup{
		IssuesCount: g.count, RuleId: g.id, Severity: g.worst(),
		RuleVisibility: findingsv1.RuleVisibility_RULE_VISIBILITY_ORG_PRIVATE,
		RuleMeta:       &findingsv1.RuleGroupMeta{Rule: &findingsv1.RuleGroupRule{RuleId: g.id}},
	}
	row := a.rules[g.id]
	if row == nil { // deleted concurrently
		return out, nil
	}
	about := &findingsv1.FindingRule{}
	if err := proto.Unmarshal(row.Content, about); err != nil {
		return nil, fmt.Errorf("rule %d: %w", row.ID, err)
	}
	out.RulePath, out.RuleSourceUri, out.RuleMeta.Author = row.Name, about.GetHelpUri(), row.Tool
	if row.Origin != nil {
		out.RuleMeta.Rule.Origin = findingsv1.RuleOrigin(findingsv1.RuleOrigin_value["RULE_ORIGIN_"+strings.ToUpper(*row.Origin)])
	}
	a.addAttributes(out, g, a.advisories[g.id])
	if document := a.documents[row.Name]; document != nil {
		return out, a.addDocument(out, document)
	}
	return out, nil
}

// addAttributes adds the facts of each type that the findings have.
func (a *ruleRows) addAttributes(out *findingsv1.RuleGroup, g group, advisory string) {
	if g.Has(vocabulary.SAST) || g.Has(vocabulary.AISAST) {
		out.SastAttributes = &findingsv1.RuleGroupSastAttributes{}
	}
	if g.Has(vocabulary.Secrets) {
		out.SecretsAttributes = &findingsv1.RuleGroupSecretsAttributes{}
	}
	if !g.Has(vocabulary.SCA) {
		return
	}
	out.ScaAttributes = &findingsv1.RuleGroupScaAttributes{}
	if score := a.exploits.Score(advisory); score != nil {
		class := "EPSS_PROBABILITY_" + strings.ToUpper(a.exploits.Probability(advisory))
		out.ScaAttributes.EpssScore = &findingsv1.ScaEpssScore{
			Score: score.GetScore(), Percentile: score.GetPercentile(), UpdatedAt: a.exploits.ScoredAt(advisory),
			Categorization: findingsv1.EpssProbability(findingsv1.EpssProbability_value[class]),
		}
	}
}

// addDocument adds the rule that the deployment's scanners run.
func (a *ruleRows) addDocument(out *findingsv1.RuleGroup, document *ent.RuleDocument) error {
	out.RuleVisibility = findingsv1.RuleVisibility(findingsv1.RuleVisibility_value["RULE_VISIBILITY_"+strings.ToUpper(document.Visibility)])
	out.RuleDeploymentName = a.deployment
	version := a.versions[document.ID]
	if version == nil { // changed concurrently
		return nil
	}
	out.RuleShaSum, out.RuleLastChangeAt = hex.EncodeToString(version.Digest), timestamppb.New(store.Time(version.CreatedAt))
	out.RuleMeta.Rule.RuleVersionId = strconv.FormatInt(version.ID, 10)
	out.RuleDefinition = &structpb.Struct{}
	if err := protojson.Unmarshal(version.Document, out.RuleDefinition); err != nil {
		return fmt.Errorf("document of rule %s: %w", document.Name, err)
	}
	return nil
}
