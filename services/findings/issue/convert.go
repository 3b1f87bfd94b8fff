package issue

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aifeedback"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/scan"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/exploit"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// relatedRows has rows of findings, and the rows of other tables that issues show.
type relatedRows struct {
	rows     []*ent.Finding
	ids      []int64 // of the rows
	rules    map[int64]*findingsv1.FindingRule
	origins  map[int64]string // of rules
	lastSeen map[int64]int64  // scans, by finding
	projects map[int64]*ent.Project
	scans    map[int64]*structpb.Struct
	siblings map[identity][]*ent.Finding
	// identities are the identities of the siblings by id.
	identities map[int64]identity
	exceptions map[identity][]*ent.ExceptionRequest // oldest first
	analyses   map[int64]*analysis                  // by finding
	exploits   exploit.Known
	history    map[int64][]*findingsv1.IssueActivityHistoryEvent // by finding; nil where it was not requested
	attempts   map[int64][]*findingsv1.TicketAttempt             // by finding, from the history
	canTriage  findingsv1.TriagePermission
	// developer has the limits of developers if the caller is one.
	developer *triage.Permissions
	// readOnly are the projects whose findings the caller may only read; nil if teams set no limits.
	readOnly map[int64]bool
	// alone says that a single issue is shown, with its context.
	alone bool
}

// identity is what a finding and its siblings on other refs share.
type identity struct {
	projectID   int64
	fingerprint string
}

// analysis is the last analysis of a finding that gave a verdict.
type analysis struct {
	id         int64
	finishedAt *int64
	result     *storev1.AiResult
	feedback   []*ent.AiFeedback // oldest first
}

// Convert converts whole rows to issues in their order, with at most twelve queries for any number of rows. Deleted
// rows of other tables are shown as empty. The activity history is not included.
func Convert(ctx context.Context, db *ent.Client, rows []*ent.Finding) ([]*findingsv1.Issue, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	a, err := read(ctx, db, rows)
	if err != nil {
		return nil, err
	}
	list := make([]*findingsv1.Issue, len(rows))
	for i, row := range rows {
		if list[i], err = a.issue(row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Whole converts one row to an issue with its context and its history.
func Whole(ctx context.Context, db *ent.Client, row *ent.Finding) (*findingsv1.Issue, error) {
	a, err := read(ctx, db, []*ent.Finding{row})
	if err != nil {
		return nil, err
	}
	a.alone = true
	if err := a.readHistory(ctx, db, wholeHistory); err != nil {
		return nil, err
	}
	return a.issue(row)
}

func read(ctx context.Context, db *ent.Client, rows []*ent.Finding) (*relatedRows, error) {
	a := &relatedRows{
		rows: rows, ids: make([]int64, len(rows)), lastSeen: map[int64]int64{}, origins: map[int64]string{},
		rules: map[int64]*findingsv1.FindingRule{}, projects: map[int64]*ent.Project{}, scans: map[int64]*structpb.Struct{},
		siblings: map[identity][]*ent.Finding{}, identities: map[int64]identity{}, exceptions: map[identity][]*ent.ExceptionRequest{},
		analyses: map[int64]*analysis{}, canTriage: rolePermission(ctx),
	}
	for i, row := range rows {
		a.ids[i] = row.ID
		a.rules[row.RuleID], a.projects[row.ProjectID], a.scans[row.FirstSeenScanID] = nil, nil, nil
	}
	for _, part := range []func(context.Context, *ent.Client) error{
		a.readRules, a.readProjects, a.readLastSeen, a.readScans, a.readSiblings, a.readAnalyses, a.readExploits,
		a.readExceptions, a.readPermissions,
	} {
		if err := part(ctx, db); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *relatedRows) readRules(ctx context.Context, db *ent.Client) error {
	stored, err := db.Rule.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(rule.FieldID), keys(a.rules))) }).
		Select(rule.FieldID, rule.FieldContent, rule.FieldOrigin).All(ctx)
	if err != nil {
		return err
	}
	for _, r := range stored {
		about := &findingsv1.FindingRule{}
		if err := proto.Unmarshal(r.Content, about); err != nil {
			return fmt.Errorf("rule %d: %w", r.ID, err)
		}
		a.rules[r.ID], a.origins[r.ID] = about, value(r.Origin)
	}
	return nil
}

func (a *relatedRows) readProjects(ctx context.Context, db *ent.Client) error {
	stored, err := db.Project.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(project.FieldID), keys(a.projects))) }).All(ctx)
	for _, p := range stored {
		a.projects[p.ID] = p
	}
	for id, p := range a.projects {
		if p == nil {
			a.projects[id] = &ent.Project{ID: id}
		}
	}
	return err
}

// readScans reads the metadata of scans in its JSON form.
func (a *relatedRows) readScans(ctx context.Context, db *ent.Client) error {
	stored, err := db.Scan.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(scan.FieldID), keys(a.scans))) }).
		Select(scan.FieldID, scan.FieldMeta).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range stored {
		meta, shown := &scansv1.ScanMeta{}, &structpb.Struct{}
		if err := proto.Unmarshal(row.Meta, meta); err != nil {
			return fmt.Errorf("scan %d: %w", row.ID, err)
		}
		encoded, err := protojson.Marshal(meta)
		if err != nil {
			return err
		}
		if err := protojson.Unmarshal(encoded, shown); err != nil {
			return err
		}
		a.scans[row.ID] = shown
	}
	return nil
}

// readSiblings reads the findings of the same identities on all refs, by id.
func (a *relatedRows) readSiblings(ctx context.Context, db *ent.Client) error {
	stored, err := db.Finding.Query().Where(func(s *entsql.Selector) {
		one, sibling := entsql.Table(finding.Table).As("one"), entsql.Table(finding.Table).As("twin")
		same := entsql.Dialect(s.Dialect()).Select(sibling.C(finding.FieldID)).From(one).Join(sibling).OnP(entsql.And(
			entsql.ColumnsEQ(sibling.C(finding.FieldDeploymentID), one.C(finding.FieldDeploymentID)),
			entsql.ColumnsEQ(sibling.C(finding.FieldProjectID), one.C(finding.FieldProjectID)),
			entsql.ColumnsEQ(sibling.C(finding.FieldFingerprint), one.C(finding.FieldFingerprint)),
		)).Where(store.InIDs(one.C(finding.FieldID), a.ids))
		s.Where(entsql.In(s.C(finding.FieldID), same))
	}).Order(ent.Asc(finding.FieldID)).
		Select(finding.FieldID, finding.FieldProjectID, finding.FieldFingerprint, finding.FieldRef, finding.FieldState, finding.FieldStatus,
			finding.FieldTriageState, finding.FieldCreatedAt).All(ctx)
	for _, row := range stored {
		key := identityOf(row)
		a.siblings[key], a.identities[row.ID] = append(a.siblings[key], row), key
	}
	return err
}

// readAnalyses reads the last analysis with a verdict of each finding, and the feedback on it.
func (a *relatedRows) readAnalyses(ctx context.Context, db *ent.Client) error {
	stored, err := db.AiAnalysis.Query().Where(func(s *entsql.Selector) {
		t := entsql.Table(aianalysis.Table).As("one")
		last := entsql.Dialect(s.Dialect()).Select(entsql.Max(t.C(aianalysis.FieldID))).From(t).Where(entsql.And(
			entsql.ColumnsEQ(t.C(aianalysis.FieldDeploymentID), s.C(aianalysis.FieldDeploymentID)),
			entsql.ColumnsEQ(t.C(aianalysis.FieldFindingID), s.C(aianalysis.FieldFindingID)),
			entsql.EQ(t.C(aianalysis.FieldStatus), "done"), entsql.NEQ(t.C(aianalysis.FieldVerdict), ""),
		))
		s.Where(store.InIDs(s.C(aianalysis.FieldFindingID), a.ids))
		s.Where(entsql.P(func(b *entsql.Builder) {
			b.WriteString(s.C(aianalysis.FieldID)).WriteString(" = ").Wrap(func(b *entsql.Builder) { b.Join(last) })
		}))
	}).Select(aianalysis.FieldID, aianalysis.FieldFindingID, aianalysis.FieldFinishedAt, aianalysis.FieldResult).All(ctx)
	if err != nil || len(stored) == 0 {
		return err
	}
	analyses, byID := make([]int64, len(stored)), map[int64]*analysis{}
	for i, row := range stored {
		result := &storev1.AiResult{}
		if err := proto.Unmarshal(row.Result, result); err != nil {
			return fmt.Errorf("analysis %d: %w", row.ID, err)
		}
		byID[row.ID] = &analysis{id: row.ID, finishedAt: row.FinishedAt, result: result}
		analyses[i], a.analyses[row.FindingID] = row.ID, byID[row.ID]
	}
	feedback, err := db.AiFeedback.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(aifeedback.FieldAnalysisID), analyses)) }).
		Order(ent.Asc(aifeedback.FieldAt, aifeedback.FieldID)).All(ctx)
	for _, row := range feedback {
		byID[row.AnalysisID].feedback = append(byID[row.AnalysisID].feedback, row)
	}
	return err
}

// readExploits reads what is known about the vulnerabilities of the rows.
func (a *relatedRows) readExploits(ctx context.Context, db *ent.Client) (err error) {
	advisories := make([]string, len(a.rows))
	for i, row := range a.rows {
		advisories[i] = value(row.Advisory)
	}
	a.exploits, err = exploit.Read(ctx, db, advisories)
	return err
}

func (a *relatedRows) readPermissions(ctx context.Context, db *ent.Client) (err error) {
	if a.canTriage != findingsv1.TriagePermission_TRIAGE_PERMISSION_IGNORE {
		return nil
	}
	if a.readOnly, err = access.ReadOnlyProjects(ctx, db, keys(a.projects)); err != nil || !triage.ByDeveloper(ctx) {
		return err
	}
	permissions, err := triage.DeveloperPermissions(ctx, db)
	a.developer = &permissions
	return err
}

func keys[V any](m map[int64]V) []int64 {
	list := make([]int64, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	return list
}
