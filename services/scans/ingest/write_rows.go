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

// Rows of findings go round ent: a builder with its thirty setters costs as much as the insert. Whoever writes them
// holds the project, which was read through ent and its policies, and every row names the deployment itself.

// findingColumn is a column of findings and what a row has in it; nil is null.
type findingColumn struct {
	name  string
	value func(f *ent.Finding) any
}

// findingColumns are all columns but the id, as the schema has them: a test compares.
var findingColumns = []findingColumn{
	{finding.FieldDeploymentID, func(f *ent.Finding) any { return f.DeploymentID }},
	{finding.FieldProjectID, func(f *ent.Finding) any { return f.ProjectID }},
	{finding.FieldRuleID, func(f *ent.Finding) any { return f.RuleID }},
	{finding.FieldFirstSeenScanID, func(f *ent.Finding) any { return f.FirstSeenScanID }},
	{finding.FieldRef, func(f *ent.Finding) any { return f.Ref }},
	{finding.FieldTool, func(f *ent.Finding) any { return f.Tool }},
	{finding.FieldAnalysisCategory, func(f *ent.Finding) any { return f.AnalysisCategory }},
	{finding.FieldFingerprint, func(f *ent.Finding) any { return f.Fingerprint }},
	{finding.FieldEvidence, func(f *ent.Finding) any { return orNull(f.Evidence) }},
	{finding.FieldMatchKey, func(f *ent.Finding) any { return orNull(f.MatchKey) }},
	{finding.FieldMergedInto, func(f *ent.Finding) any { return orNull(f.MergedInto) }},
	{finding.FieldIssueType, func(f *ent.Finding) any { return f.IssueType }},
	{finding.FieldSeverity, func(f *ent.Finding) any { return f.Severity }},
	{finding.FieldState, func(f *ent.Finding) any { return f.State }},
	{finding.FieldTriageState, func(f *ent.Finding) any { return f.TriageState }},
	{finding.FieldStatus, func(f *ent.Finding) any { return f.Status }},
	{finding.FieldTriageReason, func(f *ent.Finding) any { return orNull(f.TriageReason) }},
	{finding.FieldTriageComment, func(f *ent.Finding) any { return orNull(f.TriageComment) }},
	{finding.FieldPolicyMode, func(f *ent.Finding) any { return orNull(f.PolicyMode) }},
	{finding.FieldAutotriageVerdict, func(f *ent.Finding) any { return orNull(f.AutotriageVerdict) }},
	{finding.FieldComponentTag, func(f *ent.Finding) any { return orNull(f.ComponentTag) }},
	{finding.FieldExposure, func(f *ent.Finding) any { return orNull(f.Exposure) }},
	{finding.FieldTransitivity, func(f *ent.Finding) any { return orNull(f.Transitivity) }},
	{finding.FieldPackage, func(f *ent.Finding) any { return orNull(f.Package) }},
	{finding.FieldAdvisory, func(f *ent.Finding) any { return orNull(f.Advisory) }},
	{finding.FieldFilePath, func(f *ent.Finding) any { return orNull(f.FilePath) }},
	{finding.FieldEpssProbability, func(f *ent.Finding) any { return orNull(f.EpssProbability) }},
	{finding.FieldMalicious, func(f *ent.Finding) any { return orNull(f.Malicious) }},
	{finding.FieldClickToFixState, func(f *ent.Finding) any { return orNull(f.ClickToFixState) }},
	{finding.FieldValidationState, func(f *ent.Finding) any { return orNull(f.ValidationState) }},
	{finding.FieldHistorical, func(f *ent.Finding) any { return orNull(f.Historical) }},
	{finding.FieldCreatedAt, func(f *ent.Finding) any { return f.CreatedAt }},
	{finding.FieldRelevantSince, func(f *ent.Finding) any { return f.RelevantSince }},
	{finding.FieldStateUpdatedAt, func(f *ent.Finding) any { return f.StateUpdatedAt }},
	{finding.FieldTriagedAt, func(f *ent.Finding) any { return orNull(f.TriagedAt) }},
	{finding.FieldContentHash, func(f *ent.Finding) any { return f.ContentHash }},
	{finding.FieldContent, func(f *ent.Finding) any { return f.Content }},
}

// orNull is what a nullable column has.
func orNull[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

// orNone is a nullable column of a text; an empty one is null. The text has to stay as it is.
func orNone(text *string) *string {
	if *text == "" {
		return nil
	}
	return text
}

// fetched are the columns that an upsert takes from the row that it cannot insert.
var fetched = []string{
	finding.FieldState, finding.FieldStatus, finding.FieldSeverity, finding.FieldRuleID, finding.FieldRelevantSince,
	finding.FieldStateUpdatedAt, finding.FieldContentHash, finding.FieldContent, finding.FieldFilePath, finding.FieldEvidence,
	finding.FieldMatchKey, finding.FieldPackage, finding.FieldAdvisory, finding.FieldExposure, finding.FieldTransitivity,
	finding.FieldMalicious, finding.FieldValidationState, finding.FieldHistorical,
}

// updateExisting makes an insert an upsert: the row that is there keeps its policy mode where the new one has none, and
// all that is not fetched.
var updateExisting = func() string {
	var b strings.Builder
	b.WriteString(` ON CONFLICT ("` + strings.Join([]string{
		finding.FieldDeploymentID, finding.FieldProjectID, finding.FieldFingerprint, finding.FieldRef, finding.FieldAnalysisCategory,
	}, `", "`) + `") DO UPDATE SET `)
	for _, column := range fetched {
		fmt.Fprintf(&b, `"%s" = excluded."%[1]s", `, column)
	}
	fmt.Fprintf(&b, `"%s" = COALESCE(excluded."%[1]s", %s."%[1]s")`, finding.FieldPolicyMode, finding.Table)
	return b.String()
}()

// insertSizes are how many rows a statement may have: few different ones, so that they stay prepared.
var insertSizes = []int{100, 10, 1}

// crowdedRows are those of a statement, which nothing interrupts, while others want the processors of this node.
const crowdedRows = 10

// insertSize is how many of so many rows the next statement has.
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

// crowded reports whether others want what the database works with: on SQLite it is the processors of this node.
func (w *writer) crowded() bool { return !w.store.Postgres() && w.work.Crowded() }

// insertFindings writes rows: new ones, or such that are there if updateExisting is behind the INSERT. See also
// recordsCreated.
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

// insertStatement writes a statement once.
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

// statementKey tells statements apart that insert findings.
type statementKey struct {
	uses           string
	rows           int
	before, behind string
}

// How a statement uses a column.
const (
	useNone   = 'n' // null in all rows: left out
	useShared = 's' // equal in all rows: one parameter for all
	useOwn    = 'o'
)

// insertPlan says which columns rows have. Each parameter costs a call into the database, and most are equal in all
// rows of a scan.
type insertPlan struct {
	uses []byte // by column
	// shared are the values of the shared columns; args is used again.
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

// statement is the INSERT of some rows.
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

// arguments are the parameters of a statement; they are valid until the next call.
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
