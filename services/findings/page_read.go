package findings

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/facts"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// listed is what a list reads of a finding: few columns, because each costs more than its bytes do.
type listed struct {
	id      int64
	content []byte // encoded FindingContent
	facts   *storev1.FindingFacts
	history
	policyMode, exposure string // empty: null
	malicious            bool
}

// history is what has happened to a finding since it was found.
type history struct {
	status, state, triageState, triageReason, triageComment string
	relevantSince, stateUpdatedAt                           int64
	triagedAt                                               int64 // 0: never
}

// untouched is the history of most findings: nothing has happened since.
func untouched(createdAt int64) history {
	return history{
		status: lifecycle.Open, state: lifecycle.Unresolved, triageState: lifecycle.Untriaged,
		relevantSince: createdAt, stateUpdatedAt: createdAt,
	}
}

// historyColumn is null for an untouched finding, else its history in the order of parseHistory, with bars between. The
// comment, which may itself have bars, comes last.
const historyColumn = `CASE WHEN findings.state = '` + lifecycle.Unresolved + `' AND findings.triage_state = '` + lifecycle.Untriaged + `'
	AND findings.status = '` + lifecycle.Open + `' AND findings.relevant_since = findings.created_at AND findings.state_updated_at = findings.created_at
	AND findings.triaged_at IS NULL AND findings.triage_reason IS NULL AND findings.triage_comment IS NULL THEN NULL
	ELSE findings.status || '|' || findings.state || '|' || findings.triage_state || '|' || CAST(findings.relevant_since AS TEXT) || '|' ||
	CAST(findings.state_updated_at AS TEXT) || '|' || COALESCE(CAST(findings.triaged_at AS TEXT), '') || '|' || COALESCE(findings.triage_reason, '') || '|' ||
	COALESCE(findings.triage_comment, '') END`

// parseHistory reads a historyColumn that is not null.
func parseHistory(column string) (h history, err error) {
	parts := strings.SplitN(column, "|", 8)
	if len(parts) != 8 {
		return h, fmt.Errorf("the history has %d parts, want 8", len(parts))
	}
	h = history{status: parts[0], state: parts[1], triageState: parts[2], triageReason: parts[6], triageComment: parts[7]}
	for i, into := range []*int64{&h.relevantSince, &h.stateUpdatedAt, &h.triagedAt} {
		if parts[3+i] == "" {
			continue
		}
		if *into, err = strconv.ParseInt(parts[3+i], 10, 64); err != nil {
			return h, err
		}
	}
	return h, nil
}

// readPage reads one page in the order of lists, and the revision of the catalog that it goes with.
func (s *Findings) readPage(ctx context.Context, f *filter, where []predicate.Finding, size int) (rows []listed, revision int64, err error) {
	extra := []string{finding.FieldPolicyMode}
	if f.issueType == sca {
		extra = []string{finding.FieldExposure, finding.FieldMalicious}
	}
	query := s.store.Reader.Finding.Query().Where(where...).Order(newestFirst).Limit(size).Modify(func(sel *entsql.Selector) {
		sel.Select(sel.C(finding.FieldID), sel.C(finding.FieldContent))
		sel.AppendSelectExprAs(entsql.Raw(historyColumn), "history")
		sel.AppendSelectExprAs(entsql.ExprFunc(func(b *entsql.Builder) {
			b.WriteString("(SELECT deployments.catalog_revision FROM deployments WHERE deployments.id = ").Arg(f.deploymentID).WriteByte(')')
		}), "revision")
		for _, column := range extra {
			sel.AppendSelect(sel.C(column))
		}
	})
	rows, known := make([]listed, 0, size), make([]storev1.FindingFacts, size)
	var content, touched sql.RawBytes
	var mode, exposure sql.NullString
	var malicious sql.NullBool
	var id int64
	into := []any{&id, &content, &touched, &revision}
	if f.issueType == sca {
		into = append(into, &exposure, &malicious)
	} else {
		into = append(into, &mode)
	}
	contents := make([]byte, 0, size*600) // of all rows; a row keeps its part when this moves
	var bare []int                        // rows without facts
	err = store.EachRow(ctx, query, func(found *sql.Rows) error {
		if err := found.Scan(into...); err != nil {
			return err
		}
		begin := len(contents)
		contents = append(contents, content...)
		rows = append(rows, listed{
			id: id, content: contents[begin:len(contents):len(contents)], facts: &known[len(rows)],
			policyMode: mode.String, exposure: exposure.String, malicious: malicious.Bool,
		})
		row := &rows[len(rows)-1]
		if !facts.Parse(row.content, row.facts) {
			bare = append(bare, len(rows)-1)
		}
		if touched == nil {
			row.history = untouched(row.facts.GetCreatedAt())
			return nil
		}
		row.history, err = parseHistory(string(touched))
		return err
	})
	if err == nil && len(bare) > 0 {
		err = s.readFacts(ctx, rows, bare)
	}
	return rows, revision, err
}

// readFacts reads the columns of rows whose content does not repeat them: an earlier version wrote it.
func (s *Findings) readFacts(ctx context.Context, rows []listed, bare []int) error {
	ids, at := make([]int64, len(bare)), make(map[int64]int, len(bare))
	for n, i := range bare {
		ids[n], at[rows[i].id] = rows[i].id, i
	}
	found, err := s.store.Reader.Finding.Query().Where(withIDs(ids)).Select(finding.FieldID, finding.FieldProjectID, finding.FieldRuleID,
		finding.FieldFirstSeenScanID, finding.FieldCreatedAt, finding.FieldRef, finding.FieldSeverity).All(ctx)
	if err != nil {
		return err
	}
	for _, f := range found {
		row := &rows[at[f.ID]]
		row.facts.ProjectId, row.facts.RuleId, row.facts.FirstSeenScanId = f.ProjectID, f.RuleID, f.FirstSeenScanID
		row.facts.CreatedAt, row.facts.Ref, row.facts.Severity = f.CreatedAt, f.Ref, f.Severity
		if row.relevantSince == 0 {
			row.history = untouched(f.CreatedAt)
		}
	}
	return nil
}
