package scans

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tag"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/blocking"
)

// gatePart is the number of findings that are read at a time.
const gatePart = 5000

// gate decides whether a scan fails: it evaluates the remediation policies, and the rules in mode block that the
// server decides itself, on the open findings that the scan reported. See docs/decisions/0033-the-server-decides.md.
type gate struct {
	blocking.Comparison
	policies []remediation.Policy
	// findings selects the findings of the scan's analyses.
	findings []predicate.Finding
	// modes are the policy modes of the deployment's rules in the project, by name, for uploads of findings of such rules;
	// nil for scanners, whose findings have the mode that their rule had for the scan.
	modes map[string]string
	// reported returns false for a finding that the scan did not report.
	reported func(*ent.Finding, *storev1.FindingContent) (sighting, bool)
	// older says that a newer scan was stored before. What this scan reported counts even if the newer one has it no more.
	older bool
}

// sighting is a finding as the scan reported it.
type sighting struct {
	// matchBasedID is the id for the answer to the scanner; empty if the scanner has none.
	matchBasedID string
	// decided says that its rule is in mode block and that the scanner leaves the decision to the server.
	decided bool
}

// reportedFinding is a stored finding that the scan reported.
type reportedFinding struct {
	*ent.Finding
	content *storev1.FindingContent
	sighting
	// counts says that policies count it, monitored that its rule is in mode monitor.
	counts, monitored bool
}

// decide evaluates the policies on all findings.
func (g *gate) decide(ctx context.Context) (remediation.Decision, error) {
	before, err := g.Base(ctx)
	if err != nil {
		return remediation.Decision{}, fmt.Errorf("find the base of the scan: %w", err)
	}
	var facts []remediation.Facts
	err = g.each(ctx, before, func(found []reportedFinding, part []remediation.Facts) bool {
		for i := range part {
			if found[i].counts {
				facts = append(facts, part[i])
			}
		}
		return true
	})
	return remediation.Block(g.policies, facts), err
}

// each reads the findings in parts by id, and yields the reported ones with what policies compare, until yield returns
// false. A finding that a person ignored on any ref is ignored (see blocking.Code).
func (g *gate) each(ctx context.Context, before *blocking.Base, yield func([]reportedFinding, []remediation.Facts) bool) error {
	tags, err := tagsOfProject(ctx, g.DB, g.Project.ID)
	if err != nil {
		return err
	}
	for after := int64(0); ; {
		rows, err := g.DB.Finding.Query().
			Where(finding.ProjectID(g.Project.ID), finding.Ref(g.Scan.Ref), store.OneOf(finding.FieldState, g.states()), finding.IDGT(after)).
			Where(g.findings...).Order(ent.Asc(finding.FieldID)).Limit(gatePart).All(ctx)
		if err != nil {
			return err
		}
		found, facts, err := g.factsOf(ctx, rows, before)
		if err != nil {
			return err
		}
		for i := range facts {
			facts[i].Project, facts[i].Tags = g.Project.Name, tags
		}
		if !yield(found, facts) || len(rows) < gatePart {
			return nil
		}
		after = rows[len(rows)-1].ID
	}
}

// states are the states of findings that count.
func (g *gate) states() []string {
	if g.older {
		return []string{lifecycle.Unresolved, lifecycle.Fixed, lifecycle.Removed}
	}
	return []string{lifecycle.Unresolved}
}

// reportedAmong returns the findings among rows that the scan reported.
func (g *gate) reportedAmong(rows []*ent.Finding) ([]reportedFinding, error) {
	found := make([]reportedFinding, 0, len(rows))
	for _, f := range rows {
		content, err := blob.Decode(f.Content)
		if err != nil {
			return nil, err
		}
		if seen, ok := g.reported(f, content); ok {
			found = append(found, reportedFinding{Finding: f, content: content, sighting: seen})
		}
	}
	return found, nil
}

// factsOf returns the reported findings among rows, and what policies compare.
func (g *gate) factsOf(ctx context.Context, rows []*ent.Finding, before *blocking.Base) ([]reportedFinding, []remediation.Facts, error) {
	found, err := g.reportedAmong(rows)
	if err != nil || len(found) == 0 {
		return nil, nil, err
	}
	rules, err := rulesOf(ctx, g.DB, found)
	if err != nil {
		return nil, nil, err
	}
	of := rowsOf(found)
	known, err := g.Known(ctx, before, of)
	if err != nil {
		return nil, nil, err
	}
	covered, err := g.Covered(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	facts := make([]remediation.Facts, 0, len(found))
	for i := range found {
		f := &found[i]
		g.applyMode(f, rules[f.RuleID])
		fact := remediation.FactsOf(f.Finding, rules[f.RuleID])
		fact.MatchBasedID, fact.BlockMode, fact.New = f.matchBasedID, f.decided, !known[f.ID]
		fact.Status = blocking.Status(f.TriageState, covered[f.ID])
		facts = append(facts, fact)
	}
	return found, facts, nil
}

// applyMode sets what the mode of its rule means for a finding. Uploaded findings have the mode that their rule has
// now: nothing else says that the rule is still one of the deployment.
func (g *gate) applyMode(f *reportedFinding, of *ent.Rule) {
	if g.modes == nil {
		f.monitored = text(f.PolicyMode) == blocking.Monitored
		f.counts = f.PolicyMode != nil && !f.monitored
		return
	}
	mode := ""
	if of != nil && f.Tool == scannerTool {
		mode = g.modes[of.Name]
	}
	f.decided, f.monitored = mode == blockPolicy, mode == blocking.Monitored
	f.counts = !f.monitored
}

func rowsOf(found []reportedFinding) []*ent.Finding {
	rows := make([]*ent.Finding, len(found))
	for i, f := range found {
		rows[i] = f.Finding
	}
	return rows
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func rulesOf(ctx context.Context, db *ent.Client, found []reportedFinding) (map[int64]*ent.Rule, error) {
	ids := make([]int64, len(found))
	for i, f := range found {
		ids[i] = f.RuleID
	}
	rules, err := db.Rule.Query().Where(store.WithIDs[predicate.Rule](ids)).
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

func tagsOfProject(ctx context.Context, db *ent.Client, projectID int64) ([]string, error) {
	links, err := db.ProjectTag.Query().Where(projecttag.ProjectID(projectID)).All(ctx)
	if err != nil || len(links) == 0 {
		return nil, err
	}
	ids := make([]int64, len(links))
	for i, link := range links {
		ids[i] = link.TagID
	}
	return db.Tag.Query().Where(store.OneOf(tag.FieldID, ids)).Order(ent.Asc(tag.FieldName)).Select(tag.FieldName).Strings(ctx)
}
