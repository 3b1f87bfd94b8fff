package scans

import (
	"context"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
)

// monitored is the policy of rules that never make a scan fail.
const monitored = "rule-board-audit"

// blockPart is the number of findings that are read at a time.
const blockPart = 5000

// blocking evaluates the remediation policies for the open findings of a scan. reported has the keys of the reported
// findings (reportedKey). Findings of monitored rules do not count.
func blocking(ctx context.Context, tx *ent.Tx, of *ent.Project, row *ent.Scan, policies []remediation.Policy, reported map[uint64]struct{}) (remediation.Decision, error) {
	if len(policies) == 0 || len(reported) == 0 {
		return remediation.Decision{}, nil
	}
	tags, err := tagsOfProject(ctx, tx, of.ID)
	if err != nil {
		return remediation.Decision{}, err
	}
	var facts []remediation.Facts
	for after := int64(0); ; {
		rows, err := tx.Finding.Query().
			Where(finding.ProjectID(of.ID), finding.Ref(row.Ref), finding.Tool(scannerTool), finding.State(lifecycle.Unresolved),
				finding.PolicyModeNotNil(), finding.PolicyModeNEQ(monitored), finding.IDGT(after)).
			Order(ent.Asc(finding.FieldID)).Limit(blockPart).All(ctx)
		if err != nil {
			return remediation.Decision{}, err
		}
		rules, err := rulesOf(ctx, tx, rows)
		if err != nil {
			return remediation.Decision{}, err
		}
		for _, f := range rows {
			fact, ok, err := factsOf(f, rules[f.RuleID], reported)
			if err != nil {
				return remediation.Decision{}, err
			}
			if ok {
				fact.Project, fact.Tags, fact.New = of.Name, tags, f.FirstSeenScanID == row.ID
				facts = append(facts, fact)
			}
			after = f.ID
		}
		if len(rows) < blockPart {
			return remediation.Block(policies, facts), nil
		}
	}
}

// factsOf returns what policies compare. ok is false for a finding that the scan did not report.
func factsOf(f *ent.Finding, of *ent.Rule, reported map[uint64]struct{}) (facts remediation.Facts, ok bool, err error) {
	content, err := blob.Decode(f.Content)
	if err != nil {
		return facts, false, err
	}
	id := content.GetMatchBasedId()
	if _, ok := reported[reportedKey(id)]; !ok || id == "" {
		id = "" // the scanner does not know it
		if _, ok := reported[reportedKey(content.GetToolFingerprint())]; !ok || content.GetToolFingerprint() == "" {
			return facts, false, nil
		}
	}
	facts = remediation.Facts{
		MatchBasedID: id, Product: f.IssueType, Severity: f.Severity, Status: f.Status,
		Reachability: text(f.Exposure), ValidationState: text(f.ValidationState), Verdict: text(f.AutotriageVerdict),
	}
	if of != nil {
		facts.RuleName, facts.Category, facts.Confidence = of.Name, of.Category, of.Confidence
	}
	if f.Status == lifecycle.ProvisionallyIgnored {
		facts.Status = lifecycle.Open // what only automation ignored still blocks (contract facts, section 4)
	}
	return facts, true, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func rulesOf(ctx context.Context, tx *ent.Tx, rows []*ent.Finding) (map[int64]*ent.Rule, error) {
	ids := make([]int64, len(rows))
	for i, f := range rows {
		ids[i] = f.RuleID
	}
	rules, err := tx.Rule.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(rule.FieldID), ids)) }).
		Select(rule.FieldID, rule.FieldName, rule.FieldCategory, rule.FieldConfidence).All(ctx)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*ent.Rule, len(rules))
	for _, r := range rules {
		byID[r.ID] = r
	}
	return byID, nil
}

func tagsOfProject(ctx context.Context, tx *ent.Tx, projectID int64) ([]string, error) {
	links, err := tx.ProjectTag.Query().Where(projecttag.ProjectID(projectID)).All(ctx)
	if err != nil || len(links) == 0 {
		return nil, err
	}
	ids := make([]int64, len(links))
	for i, link := range links {
		ids[i] = link.TagID
	}
	return tx.Tag.Query().Where(store.OneOf(tag.FieldID, ids)).Order(ent.Asc(tag.FieldName)).Select(tag.FieldName).Strings(ctx)
}
