package vex

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// namesAtOnce is how many names of vulnerabilities one query looks for.
	namesAtOnce = 1000
	// findingsAtOnce is how many findings are read and decided together.
	findingsAtOnce = 1000
)

// Target is where statements apply.
type Target struct{ DeploymentID, ProjectID, ScanID int64 }

// Outcome says what statements did.
type Outcome struct {
	// Decided counts findings that changed, Kept the ones that stay because a person decided about them, and Unmatched
	// statements that are about no open finding.
	Decided, Kept, Unmatched int
}

// application applies statements in one transaction.
type application struct {
	*Statements
	Target
	Outcome
	store *store.Store
	tx    *ent.Tx
	now   int64
	// seen has the findings that were looked at, changed the ones that changed.
	seen    map[int64]bool
	changed []int64
}

// Apply applies the statements to the open findings of a project, on all of its refs. The transaction has to hold the
// lock of the project. Applying a document again changes nothing.
func (s *Statements) Apply(ctx context.Context, st *store.Store, tx *ent.Tx, to Target) (Outcome, error) {
	if len(s.list) == 0 {
		return Outcome{}, nil
	}
	a := &application{Statements: s, Target: to, store: st, tx: tx, now: store.Now(), seen: map[int64]bool{}}
	if err := st.PlanByIndexes(ctx, tx); err != nil {
		return Outcome{}, err
	}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(s.names)), namesAtOnce) {
		if err := a.about(ctx, names); err != nil {
			return Outcome{}, err
		}
	}
	a.Unmatched = s.unmatched()
	if len(a.changed) > 0 {
		slices.Sort(a.changed)
		audit.Change(ctx, "findings", int64(len(a.changed)), nil, &findingsv1.BulkTriageResponse{
			NumTriaged: int32(len(a.changed)), TriagedIssues: a.changed,
		})
	}
	return a.Outcome, nil
}

// about decides about the findings whose advisory or rule has one of the names.
func (a *application) about(ctx context.Context, names []string) error {
	rules, err := a.tx.Rule.Query().Where(store.OneOf(rule.FieldName, names)).Select(rule.FieldID, rule.FieldName).All(ctx)
	if err != nil {
		return fmt.Errorf("read rules: %w", err)
	}
	ids, nameOf := make([]int64, len(rules)), make(map[int64]string, len(rules))
	for i, r := range rules {
		ids[i], nameOf[r.ID] = r.ID, r.Name
	}
	for last := int64(0); ; {
		rows, err := a.tx.Finding.Query().Where(finding.ProjectID(a.ProjectID), finding.StateIn(lifecycle.Unresolved, lifecycle.Muted),
			finding.PackageNotNil(), finding.IDGT(last),
			finding.Or(store.OneOf(finding.FieldAdvisory, names), store.OneOf(finding.FieldRuleID, ids))).
			Select(finding.FieldID, finding.FieldFingerprint, finding.FieldRuleID, finding.FieldAdvisory, finding.FieldPackage, finding.FieldState,
				finding.FieldStatus, finding.FieldTriageState, finding.FieldTriageReason, finding.FieldTriageComment, finding.FieldTriagedAt,
				finding.FieldContent).
			Order(ent.Asc(finding.FieldID)).Limit(findingsAtOnce).All(ctx)
		if err != nil {
			return fmt.Errorf("read findings: %w", err)
		}
		if err := a.decide(ctx, rows, nameOf); err != nil {
			return err
		}
		if len(rows) < findingsAtOnce {
			return nil
		}
		last = rows[len(rows)-1].ID
	}
}

// ruling is a statement about a finding.
type ruling struct {
	*ent.Finding
	by *statement
}

func (a *application) decide(ctx context.Context, rows []*ent.Finding, ruleNames map[int64]string) error {
	var rulings []ruling
	for _, row := range rows {
		if a.seen[row.ID] {
			continue
		}
		content, err := blob.Decode(row.Content)
		if err != nil {
			return fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
		names := []string{ruleNames[row.RuleID]}
		if row.Advisory != nil && !strings.EqualFold(*row.Advisory, names[0]) {
			names = append(names, *row.Advisory)
		}
		found := content.GetFoundDependency()
		if by := a.newest(names, found.GetEcosystem(), *row.Package, found.GetVersion()); by != nil {
			a.seen[row.ID] = true
			row.Content = nil
			rulings = append(rulings, ruling{row, by})
		}
	}
	if len(rulings) == 0 {
		return nil
	}
	owners, err := a.ownersOf(ctx, rulings)
	if err != nil {
		return fmt.Errorf("read who decided: %w", err)
	}
	var changes []change
	for _, r := range rulings {
		c, kept := r.change(owners[r.Fingerprint], a.now)
		switch {
		case kept:
			a.Kept++
		case c != nil:
			changes = append(changes, *c)
			a.changed = append(a.changed, r.ID)
		}
	}
	a.Decided += len(changes)
	return a.write(ctx, changes)
}
