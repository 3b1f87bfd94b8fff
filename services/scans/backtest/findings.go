package backtest

import (
	"context"
	"slices"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/cespare/xxhash/v2"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lastscan"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/blocking"
)

// window is the number of findings, of all deployments, whose part is read at once.
const window = 5000

// findingOf is a finding of a ref that the period concerns.
type findingOf struct {
	id, rule, firstScan, lastScan int64
	// fingerprint and path are hashes; path is 0 if it has none. key is the match key; 0 if it has none.
	fingerprint, path uint64
	key               int64
	ref               *refOf
	analysis, kind    int32
	product           int32 // as lastscan.Products
	// gated says that scanners count it: its rule is of the deployment, and not only monitored.
	gated, monitored bool
	// steps are its history from position first to end of history.steps.
	first, end int32
	// sightings are scans whose reports changed it, besides firstScan.
	sightings []int64
}

// kind is what the findings that policies treat alike have in common. The parts that policies do not compare are empty.
type kind struct {
	rule                                             int64
	product, severity, exposure, validation, verdict string
}

func (k *kind) facts(of *ent.Rule) remediation.Facts {
	return remediation.FactsOf(&ent.Finding{
		IssueType: k.product, Severity: k.severity, Exposure: &k.exposure, ValidationState: &k.validation, AutotriageVerdict: &k.verdict,
	}, of)
}

// readFindings reads the findings and their events in windows of ids, without the ones that were closed before the
// period.
func (h *history) readFindings(ctx context.Context) error {
	if len(h.scans) == 0 {
		return nil
	}
	for after := int64(0); ; {
		last, err := h.windowEnd(ctx, after)
		if err != nil || last == 0 {
			return err
		}
		if err := h.readWindow(ctx, after, last); err != nil {
			return err
		}
		if h.found > maxFindings {
			return errTooMuch("findings", maxFindings)
		}
		after = last
	}
}

// windowEnd returns the last id of a window; 0 if there are no more findings. It counts the findings of all
// deployments, so that the primary key is the only index for it.
func (h *history) windowEnd(ctx context.Context, after int64) (last int64, err error) {
	ctx = tenant.System(ctx)
	more := h.db.Finding.Query().Where(finding.IDGT(after))
	ids, err := more.Clone().Order(ent.Asc(finding.FieldID)).Offset(window - 1).Limit(1).IDs(ctx)
	if err == nil && len(ids) == 0 {
		ids, err = more.Order(ent.Desc(finding.FieldID)).Limit(1).IDs(ctx)
	}
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return ids[0], nil
}

// inProjects selects the findings of some projects. The unary plus keeps databases from an index by project, along
// which each window would read all findings of the projects.
func inProjects(ids []int64) predicate.Finding {
	return func(s *entsql.Selector) { s.Where(store.InIDs("+"+s.C(finding.FieldProjectID), ids)) }
}

func (h *history) readWindow(ctx context.Context, after, last int64) error {
	query := h.db.Finding.Query().Where(finding.IDGT(after), finding.IDLTE(last), finding.CreatedAtLTE(h.in.To),
		finding.Or(finding.StateIn(lifecycle.Unresolved, lifecycle.Muted), finding.StateUpdatedAtGTE(h.reachesBack)))
	if len(h.in.Projects) > 0 {
		query.Where(inProjects(h.in.Projects))
	}
	rows, err := query.Order(ent.Asc(finding.FieldID)).
		Select(finding.FieldID, finding.FieldProjectID, finding.FieldRuleID, finding.FieldFirstSeenScanID, finding.FieldLastSeenScanID,
			finding.FieldRef, finding.FieldTool, finding.FieldAnalysisCategory, finding.FieldFingerprint, finding.FieldMatchKey,
			finding.FieldIssueType, finding.FieldSeverity, finding.FieldState, finding.FieldTriageState, finding.FieldPolicyMode,
			finding.FieldAutotriageVerdict, finding.FieldExposure, finding.FieldFilePath, finding.FieldValidationState,
			finding.FieldCreatedAt, finding.FieldRelevantSince, finding.FieldStateUpdatedAt).All(ctx)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(row *ent.Finding) bool { return !h.concerns(row) })
	if len(rows) == 0 {
		return nil
	}
	events, err := h.db.FindingEvent.Query().
		Where(findingevent.FindingIDGTE(rows[0].ID), findingevent.FindingIDLTE(rows[len(rows)-1].ID), findingevent.AtLTE(h.in.To)).
		Order(ent.Asc(findingevent.FieldFindingID), ent.Asc(findingevent.FieldID)).
		Select(findingevent.FieldFindingID, findingevent.FieldKind, findingevent.FieldToStatus, findingevent.FieldReason,
			findingevent.FieldScanID, findingevent.FieldAt).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		from, _ := slices.BinarySearchFunc(events, row.ID, func(e *ent.FindingEvent, id int64) int { return int(e.FindingID - id) })
		events = events[from:]
		n := 0
		for n < len(events) && events[n].FindingID == row.ID {
			n++
		}
		h.addFinding(row, events[:n])
		events = events[n:]
	}
	return nil
}

// concerns reports whether the period or its bases concern the ref of a finding, or a decision that may cover others.
func (h *history) concerns(row *ent.Finding) bool {
	p := h.projects[row.ProjectID]
	return p != nil && len(p.scans) > 0 && (p.refs[row.Ref] != nil || row.TriageState == lifecycle.Ignored)
}

func (h *history) addFinding(row *ent.Finding, events []*ent.FindingEvent) {
	p := h.projects[row.ProjectID]
	f := &findingOf{
		id: row.ID, rule: row.RuleID, firstScan: row.FirstSeenScanID, fingerprint: xxhash.Sum64String(row.Fingerprint), ref: p.ref(row.Ref),
		analysis: h.analyses.number(analysis{row.Tool, row.AnalysisCategory}), product: lastscan.Products([]string{row.IssueType}),
		gated:     row.PolicyMode != nil && *row.PolicyMode != blocking.Monitored,
		monitored: row.PolicyMode != nil && *row.PolicyMode == blocking.Monitored,
		kind:      h.kinds.number(kind{row.RuleID, row.IssueType, row.Severity, text(row.Exposure), text(row.ValidationState), text(row.AutotriageVerdict)}),
	}
	if row.LastSeenScanID != nil {
		f.lastScan = *row.LastSeenScanID
	}
	if row.MatchKey != nil {
		f.key = *row.MatchKey
	}
	if row.FilePath != nil {
		f.path = xxhash.Sum64String(*row.FilePath)
	}
	f.first = int32(len(h.steps)) //nolint:gosec // a few for each of at most maxFindings
	h.steps = appendSteps(h.steps, row, events)
	f.end = int32(len(h.steps)) //nolint:gosec // as above
	for _, e := range events {
		if e.ScanID != nil && *e.ScanID != f.firstScan && reports[e.Kind] {
			f.sightings = append(f.sightings, *e.ScanID)
		}
	}
	h.rules[row.RuleID] = nil
	h.found++
	p.findings = append(p.findings, f)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
