package notifications

import (
	"context"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/notifications/automations"
	"github.com/palisade/palisade/services/notifications/channel"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/policies/remediation"
)

// codeTypes are the findings that rules send. A rule that names a remediation policy sends findings of all products,
// because policies are about all.
var codeTypes = []string{vocabulary.SAST, vocabulary.AISAST}

// sendsPolicies reports whether the rule sends the findings of remediation policies.
func sendsPolicies(rule *ent.NotificationRule) bool {
	return rule.SendFindings && namesPolicy(rule.PolicySlugs)
}

// isForPeople reports whether people read the messages of the rule one by one.
func isForPeople(rule *ent.NotificationRule) bool {
	return slices.Contains([]string{channel.Email, channel.Slack, channel.SlackApp}, rule.Channel)
}

// newFindings reads the findings that this scan saw first and that no scan of another ref of the project had seen
// before. Findings that the code itself suppressed at that time are left out. The current state of a finding does not
// matter.
func newFindings(
	ctx context.Context, tx *ent.Tx, event *ent.NotificationEvent, rules []*ent.NotificationRule, most int,
) ([]*ent.Finding, error) {
	types := codeTypes
	if slices.ContainsFunc(rules, sendsPolicies) {
		types = vocabulary.Products
	}
	return tx.Finding.Query().
		Where(
			finding.DeploymentID(event.DeploymentID), finding.FirstSeenScanID(event.ScanID), finding.IDGT(event.AfterFindingID),
			finding.IssueTypeIn(types...),
			func(s *entsql.Selector) {
				history := entsql.Dialect(s.Dialect()).Table(findingevent.Table).As("history")
				created := entsql.Dialect(s.Dialect()).Select(history.C(findingevent.FieldID)).From(history)
				s.Where(entsql.NotExists(created.Where(entsql.And(
					entsql.ColumnsEQ(history.C(findingevent.FieldDeploymentID), s.C(finding.FieldDeploymentID)),
					entsql.ColumnsEQ(history.C(findingevent.FieldFindingID), s.C(finding.FieldID)),
					entsql.EQ(history.C(findingevent.FieldKind), "created"),
					entsql.EQ(history.C(findingevent.FieldToStatus), lifecycle.Ignored),
				))))
				earlier := entsql.Dialect(s.Dialect()).Table(finding.Table).As("earlier")
				known := entsql.Dialect(s.Dialect()).Select(earlier.C(finding.FieldID)).From(earlier)
				s.Where(entsql.NotExists(known.Where(entsql.And(
					entsql.ColumnsEQ(earlier.C(finding.FieldDeploymentID), s.C(finding.FieldDeploymentID)),
					entsql.ColumnsEQ(earlier.C(finding.FieldProjectID), s.C(finding.FieldProjectID)),
					entsql.ColumnsEQ(earlier.C(finding.FieldFingerprint), s.C(finding.FieldFingerprint)),
					entsql.ColumnsLT(earlier.C(finding.FieldID), s.C(finding.FieldID)),
				))))
			},
		).
		Order(ent.Asc(finding.FieldID)).Limit(most).All(ctx)
}

// batch is a part of the new findings of a scan.
type batch struct {
	about    *scanContext
	rows     []*ent.Finding
	findings []payload.Finding
	// applying are the slugs of the remediation policies that apply to a finding, if a rule names any policy.
	applying map[int64][]string
}

func readBatch(
	ctx context.Context, db *ent.Client, about *scanContext, rules []*ent.NotificationRule, rows []*ent.Finding,
) (part *batch, err error) {
	part = &batch{about: about, rows: rows}
	part.findings, err = about.findings(rows)
	if err != nil || len(rows) == 0 || !slices.ContainsFunc(rules, sendsPolicies) {
		return part, err
	}
	policies, err := remediation.Load(ctx, db)
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	part.applying, err = automations.Applying(ctx, db, about.scan, policies, ids)
	return part, err
}

// chosen returns the positions of the findings that a rule with these policies sends.
func (b *batch) chosen(slugs []string) (positions []int) {
	for i, row := range b.rows {
		if b.isChosen(slugs, row, b.findings[i].Metadata.PolicySlug) {
			positions = append(positions, i)
		}
	}
	return positions
}

func (b *batch) isChosen(slugs []string, row *ent.Finding, mode string) bool {
	isCode := slices.Contains(codeTypes, row.IssueType)
	if len(slugs) == 0 {
		return isCode
	}
	return isCode && slices.Contains(slugs, mode) ||
		slices.ContainsFunc(b.applying[row.ID], func(slug string) bool { return slices.Contains(slugs, slug) })
}

// policiesKey is the same text for the same policies of rules.
func policiesKey(rule *ent.NotificationRule) string { return fmt.Sprintf("%q", rule.PolicySlugs) }

// findingDeliveries builds the messages about findings for each rule whose receiver is a program, filtered by its
// policies. Rules with the same policies share the bodies.
func findingDeliveries(tx *ent.Tx, rules []*ent.NotificationRule, part *batch) []*ent.DeliveryCreate {
	bodies := map[string][][]byte{}
	var made []*ent.DeliveryCreate
	for _, rule := range rules {
		if !rule.SendFindings || isForPeople(rule) {
			continue
		}
		key := policiesKey(rule)
		messages, known := bodies[key]
		if !known {
			for positions := range slices.Chunk(part.chosen(rule.PolicySlugs), payload.MaxFindings) {
				list := make([]payload.Finding, len(positions))
				for i, at := range positions {
					list[i] = part.findings[at]
				}
				messages = append(messages, payload.Findings(list))
			}
			bodies[key] = messages
		}
		for _, m := range messages {
			made = append(made, newDelivery(tx, rule, part.about.scan, kindFindings, m))
		}
	}
	return made
}
