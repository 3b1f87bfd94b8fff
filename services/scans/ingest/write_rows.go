package ingest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
)

// Rows of findings bypass ent: a builder with its thirty setters costs as much as the insert. The caller holds the lock
// of the project, which it read through ent and its policies. Every row has its deployment id.

// findingColumn is a column of findings and its value in a row; nil is null.
type findingColumn struct {
	name  string
	value func(f *ent.Finding) any
}

// findingColumns are all columns except the id. A test compares them with the schema.
var findingColumns = []findingColumn{
	{finding.FieldDeploymentID, func(f *ent.Finding) any { return f.DeploymentID }},
	{finding.FieldProjectID, func(f *ent.Finding) any { return f.ProjectID }},
	{finding.FieldRuleID, func(f *ent.Finding) any { return f.RuleID }},
	{finding.FieldFirstSeenScanID, func(f *ent.Finding) any { return f.FirstSeenScanID }},
	{finding.FieldLastSeenScanID, func(f *ent.Finding) any { return derefOrNil(f.LastSeenScanID) }},
	{finding.FieldRef, func(f *ent.Finding) any { return f.Ref }},
	{finding.FieldTool, func(f *ent.Finding) any { return f.Tool }},
	{finding.FieldAnalysisCategory, func(f *ent.Finding) any { return f.AnalysisCategory }},
	{finding.FieldFingerprint, func(f *ent.Finding) any { return f.Fingerprint }},
	{finding.FieldEvidence, func(f *ent.Finding) any { return derefOrNil(f.Evidence) }},
	{finding.FieldMatchKey, func(f *ent.Finding) any { return derefOrNil(f.MatchKey) }},
	{finding.FieldMergedInto, func(f *ent.Finding) any { return derefOrNil(f.MergedInto) }},
	{finding.FieldIssueType, func(f *ent.Finding) any { return f.IssueType }},
	{finding.FieldSeverity, func(f *ent.Finding) any { return f.Severity }},
	{finding.FieldState, func(f *ent.Finding) any { return f.State }},
	{finding.FieldTriageState, func(f *ent.Finding) any { return f.TriageState }},
	{finding.FieldStatus, func(f *ent.Finding) any { return f.Status }},
	{finding.FieldTriageReason, func(f *ent.Finding) any { return derefOrNil(f.TriageReason) }},
	{finding.FieldTriageComment, func(f *ent.Finding) any { return derefOrNil(f.TriageComment) }},
	{finding.FieldPolicyMode, func(f *ent.Finding) any { return derefOrNil(f.PolicyMode) }},
	{finding.FieldAutotriageVerdict, func(f *ent.Finding) any { return derefOrNil(f.AutotriageVerdict) }},
	{finding.FieldComponentTag, func(f *ent.Finding) any { return derefOrNil(f.ComponentTag) }},
	{finding.FieldExposure, func(f *ent.Finding) any { return derefOrNil(f.Exposure) }},
	{finding.FieldTransitivity, func(f *ent.Finding) any { return derefOrNil(f.Transitivity) }},
	{finding.FieldPackage, func(f *ent.Finding) any { return derefOrNil(f.Package) }},
	{finding.FieldAdvisory, func(f *ent.Finding) any { return derefOrNil(f.Advisory) }},
	{finding.FieldFilePath, func(f *ent.Finding) any { return derefOrNil(f.FilePath) }},
	{finding.FieldEpssProbability, func(f *ent.Finding) any { return derefOrNil(f.EpssProbability) }},
	{finding.FieldMalicious, func(f *ent.Finding) any { return derefOrNil(f.Malicious) }},
	{finding.FieldClickToFixState, func(f *ent.Finding) any { return derefOrNil(f.ClickToFixState) }},
	{finding.FieldValidationState, func(f *ent.Finding) any { return derefOrNil(f.ValidationState) }},
	{finding.FieldHistorical, func(f *ent.Finding) any { return derefOrNil(f.Historical) }},
	{finding.FieldIgnoredByPattern, func(f *ent.Finding) any { return derefOrNil(f.IgnoredByPattern) }},
	{finding.FieldCreatedAt, func(f *ent.Finding) any { return f.CreatedAt }},
	{finding.FieldRelevantSince, func(f *ent.Finding) any { return f.RelevantSince }},
	{finding.FieldStateUpdatedAt, func(f *ent.Finding) any { return f.StateUpdatedAt }},
	{finding.FieldTriagedAt, func(f *ent.Finding) any { return derefOrNil(f.TriagedAt) }},
	{finding.FieldContentHash, func(f *ent.Finding) any { return f.ContentHash }},
	{finding.FieldContent, func(f *ent.Finding) any { return f.Content }},
}

// derefOrNil is the value of a nullable column.
func derefOrNil[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

// derefOrEmpty is the text of a nullable column; null is empty.
func derefOrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// nilIfEmpty is the value of a nullable text column; an empty text is null. The result refers to text, which must not
// change.
func nilIfEmpty(text *string) *string {
	if *text == "" {
		return nil
	}
	return text
}

// upsertedColumns are the columns that an upsert overwrites in an existing row.
var upsertedColumns = []string{
	finding.FieldState, finding.FieldStatus, finding.FieldSeverity, finding.FieldRuleID, finding.FieldRelevantSince,
	finding.FieldStateUpdatedAt, finding.FieldContentHash, finding.FieldContent, finding.FieldFilePath, finding.FieldEvidence,
	finding.FieldMatchKey, finding.FieldPackage, finding.FieldAdvisory, finding.FieldExposure, finding.FieldTransitivity,
	finding.FieldMalicious, finding.FieldValidationState, finding.FieldHistorical, finding.FieldIgnoredByPattern,
}

// updateExisting makes an insert an upsert. An existing row keeps its policy mode if the new one has none, and every
// column that is not in upsertedColumns.
var updateExisting = func() string {
	var b strings.Builder
	b.WriteString(` ON CONFLICT ("` + strings.Join([]string{
		finding.FieldDeploymentID, finding.FieldProjectID, finding.FieldFingerprint, finding.FieldRef, finding.FieldAnalysisCategory,
	}, `", "`) + `") DO UPDATE SET `)
	for _, column := range upsertedColumns {
		fmt.Fprintf(&b, `"%s" = excluded."%[1]s", `, column)
	}
	fmt.Fprintf(&b, `"%s" = COALESCE(excluded."%[1]s", %s."%[1]s")`, finding.FieldPolicyMode, finding.Table)
	return b.String()
}()

// insertSizes are the numbers of rows of a statement. They are few, so that the statements stay prepared.
var insertSizes = []int{100, 10, 1}

// crowdedRows limits a statement, which cannot be interrupted, while requests compete for the processors of this node.
const crowdedRows = 10

// insertSize is the number of rows of the next statement, if rows are left.
func (w *writer) insertSize(rows int) int {
	most := rows
	if w.crowded() {
		most = min(rows, crowdedRows)
	}
	for _, size := range insertSizes {
		if size <= most {
			return size
		}
	}
	return 1
}

// crowded reports whether other requests need the processors of this node. On SQLite the database runs on them, too.
func (w *writer) crowded() bool { return !w.store.Postgres() && w.work.Crowded() }

// insertFindings inserts rows, or upserts them if behind is updateExisting. See also recordsCreated.
func (w *writer) insertFindings(ctx context.Context, rows []*ent.Finding, before, behind string) error {
	tx, ok := w.store.Tx(ctx)
	if !ok {
		return errors.New("not in a transaction")
	}
	plan := planInsert(rows)
	uses := string(plan.uses)
	for len(rows) > 0 {
		w.work.Yield(ctx)
		size := w.insertSize(len(rows))
		statement := w.insertStatement(plan, statementKey{uses, size, before, behind})
		if _, err := tx.ExecContext(ctx, statement, plan.arguments(rows[:size])...); err != nil {
			return fmt.Errorf("insert %d findings: %w", size, err)
		}
		rows = rows[size:]
	}
	return nil
}

// insertStatement returns the text of a statement. It caches it.
func (w *writer) insertStatement(plan *insertPlan, key statementKey) string {
	if w.statements == nil {
		w.statements = map[statementKey]string{}
	}
	if w.statements[key] == "" {
		numbered := byte('?')
		if w.store.Postgres() {
			numbered = '$'
		}
		w.statements[key] = key.before + plan.statement(numbered, key.rows) + key.behind
	}
	return w.statements[key]
}

// statementKey identifies an insert statement.
type statementKey struct {
	uses           string
	rows           int
	before, behind string
}

// How a statement uses a column.
const (
	useNone   = 'n' // null in all rows: omitted
	useShared = 's' // equal in all rows: one parameter for all
	useOwn    = 'o'
)

// insertPlan says how the rows use the columns. Each parameter costs a call into the database, and most columns are
// equal in all rows of a scan.
type insertPlan struct {
	uses []byte // by column
	// shared has the values of the shared columns. args is reused.
	shared, args []any
}

func planInsert(rows []*ent.Finding) *insertPlan {
	p := &insertPlan{uses: make([]byte, len(findingColumns))}
	for n, column := range findingColumns {
		first := column.value(rows[0])
		if _, blob := first.([]byte); blob {
			p.uses[n] = useOwn
			continue
		}
		p.uses[n] = useShared
		for _, row := range rows[1:] {
			value := column.value(row)
			if _, blob := value.([]byte); blob || value != first {
				p.uses[n] = useOwn
				break
			}
		}
		switch {
		case p.uses[n] == useShared && first == nil:
			p.uses[n] = useNone
		case p.uses[n] == useShared:
			p.shared = append(p.shared, first)
		}
	}
	return p
}

// statement returns the INSERT of a number of rows.
func (p *insertPlan) statement(numbered byte, rows int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + finding.Table + " (")
	separator := ""
	for n, column := range findingColumns {
		if p.uses[n] != useNone {
			b.WriteString(separator + `"` + column.name + `"`)
			separator = ", "
		}
	}
	b.WriteString(") VALUES ")
	next := len(p.shared) + 1
	for row := range rows {
		if row > 0 {
			b.WriteString(", ")
		}
		separator = "("
		shared := 0
		for _, use := range p.uses {
			if use == useNone {
				continue
			}
			b.WriteString(separator)
			separator = ", "
			b.WriteByte(numbered)
			if use == useShared {
				shared++
				b.WriteString(strconv.Itoa(shared))
				continue
			}
			b.WriteString(strconv.Itoa(next))
			next++
		}
		b.WriteByte(')')
	}
	return b.String()
}

// arguments returns the parameters of a statement. They are valid until the next call.
func (p *insertPlan) arguments(rows []*ent.Finding) []any {
	p.args = append(p.args[:0], p.shared...)
	for _, row := range rows {
		for n, use := range p.uses {
			if use == useOwn {
				p.args = append(p.args, findingColumns[n].value(row))
			}
		}
	}
	return p.args
}
