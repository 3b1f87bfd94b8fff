package notifications

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/projects/existing"
)

// reportNames are what the filters of reports name, and exists.
type reportNames struct {
	projects           map[string]string
	projectIDs         map[int64]bool
	tags, teams, rules map[string]bool
}

// reportNamesOf looks up the names of filters, with one query for each kind.
func reportNamesOf(ctx context.Context, db *ent.Client, list ...*reportingv1.ReportFilters) (*reportNames, error) {
	all := &reportingv1.ReportFilters{}
	for _, f := range list {
		all.Projects, all.ProjectIds = append(all.Projects, f.GetProjects()...), append(all.ProjectIds, f.GetProjectIds()...)
		all.Tags, all.Teams, all.RuleIds = append(all.Tags, f.GetTags()...), append(all.Teams, f.GetTeams()...), append(all.RuleIds, f.GetRuleIds()...)
	}
	n := &reportNames{}
	var err error
	if n.projects, err = existing.Projects(ctx, db, all.GetProjects()); err != nil {
		return nil, err
	}
	if n.projectIDs, err = existing.ProjectIDs(ctx, db, all.GetProjectIds()); err != nil {
		return nil, err
	}
	if n.tags, err = existing.Tags(ctx, db, all.GetTags()); err != nil {
		return nil, err
	}
	if n.teams, err = existing.Teams(ctx, db, all.GetTeams()); err != nil {
		return nil, err
	}
	n.rules, err = existing.Rules(ctx, db, all.GetRuleIds())
	return n, err
}

// unknownName is a name in the filters of a report that does not exist.
type unknownName struct {
	field, kind, name string
}

// unknown returns the names in some filters that do not exist, in the order of the fields.
func (n *reportNames) unknown(f *reportingv1.ReportFilters) (list []unknownName) {
	add := func(field, kind string, names []string, exists func(name string) bool) {
		for i, name := range names {
			if !exists(name) {
				list = append(list, unknownName{fmt.Sprintf("send_report.filters.%s[%d]", field, i), kind, name})
			}
		}
	}
	ids := make([]string, len(f.GetProjectIds()))
	for i, id := range f.GetProjectIds() {
		ids[i] = strconv.FormatInt(id, 10)
	}
	add("projects", "project", f.GetProjects(), func(name string) bool { return n.projects[name] != "" })
	add("projectIds", "project", ids, func(name string) bool {
		id, _ := strconv.ParseInt(name, 10, 64)
		return n.projectIDs[id]
	})
	add("tags", "tag", f.GetTags(), func(name string) bool { return n.tags[name] })
	add("teams", "team", f.GetTeams(), func(name string) bool { return n.teams[name] })
	add("ruleIds", "rule", f.GetRuleIds(), func(name string) bool { return n.rules[name] })
	return list
}

// checkReport refuses names that do not exist. old is the rule that is replaced, or nil: the names that it has are
// kept, and config_error says what is wrong with them.
func checkReport(ctx context.Context, db *ent.Client, report *reportingv1.ReportSchedule, old *ent.NotificationRule) error {
	names, err := reportNamesOf(ctx, db, report.GetFilters())
	if err != nil {
		return err
	}
	before := names.unknown(reportOf(old).GetFilters())
	for _, one := range names.unknown(report.GetFilters()) {
		if !slices.ContainsFunc(before, func(had unknownName) bool { return had.kind == one.kind && had.name == one.name }) {
			return apierr.InvalidArgument("notificationRule."+one.field, "%s: there is no %s %s", one.field, one.kind, apierr.Quote(one.name))
		}
	}
	return nil
}

// reportOf is the report of a stored rule; nil if it has none, or one that this program did not write.
func reportOf(row *ent.NotificationRule) *reportingv1.ReportSchedule {
	if row == nil || len(row.SendReport) == 0 {
		return nil
	}
	report := &reportingv1.ReportSchedule{}
	if err := proto.Unmarshal(row.SendReport, report); err != nil {
		return nil
	}
	return report
}

// reportNamesOfRules looks up what the reports of rules name.
func reportNamesOfRules(ctx context.Context, db *ent.Client, rows []*ent.NotificationRule) (*reportNames, error) {
	var list []*reportingv1.ReportFilters
	for _, row := range rows {
		list = append(list, reportOf(row).GetFilters())
	}
	return reportNamesOf(ctx, db, list...)
}

// reportText is the config_error text about a report whose filters name what does not exist; "" if none does.
func (n *reportNames) reportText(report *reportingv1.ReportSchedule) string {
	var parts []string
	for _, one := range n.unknown(report.GetFilters()) {
		parts = append(parts, fmt.Sprintf("there is no %s %q", one.kind, one.name))
	}
	if len(parts) == 0 {
		return ""
	}
	return "send_report.filters has names that do not exist: " + strings.Join(parts, "; ")
}
