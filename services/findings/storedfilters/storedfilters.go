// Package storedfilters keeps names in stored filters up to date: those of saved views, and of reports that are sent on
// a schedule. A filter that keeps an old name would silently select nothing.
package storedfilters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/savedview"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
)

// Kind is what a name is the name of.
type Kind int

// The kinds of names in filters.
const (
	Project Kind = iota
	Tag
	Team
	Rule
)

// rowsAtOnce limits the memory for stored filters.
const rowsAtOnce = 100

// Renaming is a new name of something that filters name.
type Renaming struct {
	Of       Kind
	From, To string
	// Both says that something else has the old name, too. Filters then have both names.
	Both bool
}

// Apply changes the filters of the deployment of ctx that have the old name.
func (r Renaming) Apply(ctx context.Context, tx *ent.Tx) error {
	if err := r.changeViews(ctx, tx); err != nil {
		return fmt.Errorf("rename in saved views: %w", err)
	}
	if err := r.changeReports(ctx, tx); err != nil {
		return fmt.Errorf("rename in reports: %w", err)
	}
	return nil
}

func (r Renaming) changeViews(ctx context.Context, tx *ent.Tx) error {
	for after, more := int64(0), true; more; {
		rows, err := tx.SavedView.Query().Where(savedview.IDGT(after)).Order(ent.Asc(savedview.FieldID)).Limit(rowsAtOnce).
			Select(savedview.FieldID, savedview.FieldContent).All(ctx)
		if err != nil {
			return err
		}
		more = len(rows) == rowsAtOnce
		for _, row := range rows {
			after = row.ID
			view := &findingsv1.SavedViewContent{}
			if err := proto.Unmarshal(row.Content, view); err != nil {
				return fmt.Errorf("saved view %d: %w", row.ID, err)
			}
			f := view.GetFilter()
			if f == nil || !r.change(map[Kind]*[]string{Project: &f.RepositoryNames, Tag: &f.RepositoryTags, Team: &f.TeamNames, Rule: &f.Rules}[r.Of]) {
				continue
			}
			content, err := proto.Marshal(view)
			if err != nil {
				return err
			}
			if err := tx.SavedView.UpdateOneID(row.ID).SetContent(content).Exec(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r Renaming) changeReports(ctx context.Context, tx *ent.Tx) error {
	rows, err := tx.NotificationRule.Query().Where(notificationrule.SendReportNotNil()).Order(ent.Asc(notificationrule.FieldID)).
		Select(notificationrule.FieldID, notificationrule.FieldSendReport).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		report := &reportingv1.ReportSchedule{}
		if err := proto.Unmarshal(row.SendReport, report); err != nil {
			return fmt.Errorf("notification rule %d: %w", row.ID, err)
		}
		f := report.GetFilters()
		if f == nil || !r.change(map[Kind]*[]string{Project: &f.Projects, Tag: &f.Tags, Team: &f.Teams, Rule: &f.RuleIds}[r.Of]) {
			continue
		}
		content, err := proto.Marshal(report)
		if err != nil {
			return err
		}
		if err := tx.NotificationRule.UpdateOneID(row.ID).SetSendReport(content).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// change puts the new name into a list that has the old one. It returns false if the list does not have it.
func (r Renaming) change(names *[]string) bool {
	at := slices.IndexFunc(*names, r.isOld)
	switch {
	case at < 0:
		return false
	case slices.Contains(*names, r.To) && r.Both:
		return false
	case slices.Contains(*names, r.To):
		*names = slices.DeleteFunc(*names, r.isOld)
	case r.Both:
		*names = slices.Insert(*names, at+1, r.To)
	default:
		(*names)[at] = r.To
	}
	return true
}

// isOld compares as filters do: the letter case of projects does not count.
func (r Renaming) isOld(name string) bool {
	if r.Of == Project {
		return strings.EqualFold(name, r.From) && name != r.To
	}
	return name == r.From
}
