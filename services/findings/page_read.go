package findings

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
)

// listed is what a list reads of a finding: few columns, because each costs more than its bytes do.
type listed struct {
	id      int64
	content []byte // encoded FindingContent; a part of pageRows.packed
	facts   blob.Facts
	history
	policyMode, exposure []byte // parts of pageRows.packed; empty: null; the one of code, the other of packages
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

// pageRows are the rows of one page, in memory that the next page uses again.
type pageRows struct {
	rows     []listed
	packed   []byte // what the rows were read from: their contents are parts of it
	revision int64  // of the catalog that the rows go with
	place    string // what was known of their last row before; see places.query
}

var pagePool = sync.Pool{New: func() any { return new(pageRows) }}

// Large pages do not stay in memory.
const (
	maxKeptRows  = 500
	maxKeptBytes = 1 << 20
)

// free gives the memory back: nothing of it may be used any more.
func (p *pageRows) free() {
	if cap(p.rows) <= maxKeptRows && cap(p.packed) <= maxKeptBytes {
		pagePool.Put(p)
	}
}

// readPage reads one page in the order of lists, which begins behind start, and what else is asked for its place. The caller
// frees it.
func (s *Findings) readPage(ctx context.Context, f *filter, of chosen, start boundary, size int, place []store.Once) (*pageRows, error) {
	page := pagePool.Get().(*pageRows)
	var bare []int
	for known := s.imports.of(f.deploymentID); ; known = nil {
		page.rows, page.packed, bare = slices.Grow(page.rows[:0], size), page.packed[:0], bare[:0]
		var pending []int64
		for _, part := range around(known, start) {
			found, err := s.readPart(ctx, page, f, of.and(part...), size, place)
			if err != nil {
				return nil, err
			}
			bare, pending = append(bare, found.bare...), found.pending
			if len(page.rows) == size {
				break
			}
		}
		s.imports.learn(f.deploymentID, pending)
		if !slices.ContainsFunc(known, func(since int64) bool { return !slices.Contains(pending, since) }) {
			break
		} // one was committed in the meantime: its findings belong into the page
	}
	if len(bare) == 0 {
		return page, nil
	}
	return page, s.readFacts(ctx, page.rows, bare)
}

// pagePart is what is known of a part of a page beside its rows.
type pagePart struct {
	bare    []int   // places of rows without facts
	pending []int64 // large imports that were not committed when it was read
}

// readPart appends those rows to a page for which there is room in its size.
func (s *Findings) readPart(ctx context.Context, page *pageRows, f *filter, of chosen, size int, place []store.Once) (part pagePart, err error) {
	columns, selected := codeColumns, selectCode
	if f.issueType == sca {
		columns, selected = packageColumns, selectPackages
	}
	ofDeployment := []any{f.deploymentID}
	packing := store.Packing{Values: columns, Content: finding.FieldContent, Once: []store.Once{{Query: revisionQuery, Args: ofDeployment}}}
	if s.store.Postgres() {
		packing.Once = append(packing.Once, store.Once{Query: pendingQuery, Args: ofDeployment})
	}
	packing.Once = append(packing.Once, place...)
	before := len(page.packed)
	var once []sql.NullString
	page.packed, once, err = store.Packed(ctx, s.pageQuery(of, size-len(page.rows), selected), packing, page.packed)
	if err != nil {
		return part, err
	}
	if once[0].Valid {
		if page.revision, err = strconv.ParseInt(once[0].String, 10, 64); err != nil {
			return part, err
		}
	}
	if s.store.Postgres() {
		if part.pending, err = parsePending(once[1].String); err != nil {
			return part, err
		}
	}
	page.place = ""
	if len(place) > 0 {
		page.place = once[len(once)-1].String
	}
	part.bare, err = page.unpack(page.packed[before:], len(columns))
	return part, err
}

// What is read of a finding of code, and of one of packages: the values of listed.read, and how they are selected with the content.
var (
	codeColumns    = []string{finding.FieldID, historyName, finding.FieldPolicyMode}
	packageColumns = []string{finding.FieldID, historyName, finding.FieldExposure, finding.FieldMalicious}
	selectCode     = selectColumns(codeColumns)
	selectPackages = selectColumns(packageColumns)
)

// historyName is that of historyColumn.
const historyName = "history"

func selectColumns(columns []string) string {
	list := make([]string, 0, len(columns)+1)
	for _, column := range append(slices.Clip(columns), finding.FieldContent) {
		if column == historyName {
			list = append(list, historyColumn+" AS "+historyName)
		} else {
			list = append(list, finding.Table+"."+column)
		}
	}
	return strings.Join(list, ", ")
}

// revisionQuery reads the catalog's revision of a deployment.
const revisionQuery = "SELECT catalog_revision FROM deployments WHERE id = ?"

// pageQuery names one column before it replaces them, or ent would quote the names of all.
func (s *Findings) pageQuery(of chosen, size int, columns string) *ent.FindingSelect {
	return of.newest(s.store.Reader, size).Limit(size).Select(finding.FieldID).Modify(func(sel *entsql.Selector) {
		sel.SelectExpr(entsql.Raw(columns))
	})
}

// unpack reads packed rows, which have so many columns before their content, and returns the places of those without facts.
func (p *pageRows) unpack(rest []byte, columns int) (bare []int, err error) {
	values := make([][]byte, columns+1)
	for len(rest) > 0 {
		if rest, err = store.NextPacked(rest, values); err != nil {
			return nil, err
		}
		p.rows = p.rows[:len(p.rows)+1] // there is room for a page
		row := &p.rows[len(p.rows)-1]
		if err := row.read(values); err != nil {
			return nil, err
		}
		if row.facts.ProjectID == 0 {
			bare = append(bare, len(p.rows)-1)
		}
	}
	return bare, nil
}

// read sets everything in a row from the values of its columns.
func (l *listed) read(values [][]byte) (err error) {
	if l.id, err = strconv.ParseInt(string(values[0]), 10, 64); err != nil {
		return err
	}
	l.content = values[len(values)-1]
	blob.ParseFacts(l.content, &l.facts)
	if len(values) == 4 { // code
		l.policyMode, l.exposure, l.malicious = values[2], nil, false
	} else { // packages
		l.policyMode, l.exposure, l.malicious = nil, values[2], isTrue(values[3])
	}
	if values[1] == nil {
		l.history = untouched(l.facts.CreatedAt)
		return nil
	}
	l.history, err = parseHistory(string(values[1]))
	return err
}

// isTrue reads a boolean as the databases write it: 1 or true.
func isTrue(value []byte) bool { return len(value) > 0 && (value[0] == '1' || value[0] == 't') }

// readFacts reads the columns of rows whose content does not repeat them: an earlier version wrote it.
func (s *Findings) readFacts(ctx context.Context, rows []listed, bare []int) error {
	ids, at := make([]int64, len(bare)), make(map[int64]int, len(bare))
	for n, i := range bare {
		ids[n], at[rows[i].id] = rows[i].id, i
	}
	found, err := s.store.Reader.Finding.Query().Where(store.WithIDs[predicate.Finding](ids)).Select(finding.FieldID, finding.FieldProjectID, finding.FieldRuleID,
		finding.FieldFirstSeenScanID, finding.FieldCreatedAt, finding.FieldRef, finding.FieldSeverity).All(ctx)
	if err != nil {
		return err
	}
	for _, f := range found {
		row := &rows[at[f.ID]]
		row.facts = blob.Facts{
			ProjectID: f.ProjectID, RuleID: f.RuleID, FirstSeenScanID: f.FirstSeenScanID, CreatedAt: f.CreatedAt, Ref: []byte(f.Ref), Severity: []byte(f.Severity),
		}
		if row.relevantSince == 0 {
			row.history = untouched(f.CreatedAt)
		}
	}
	return nil
}
