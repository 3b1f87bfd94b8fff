package automations

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tag"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/blocking"
)

// subject is a finding with what conditions compare.
type subject struct {
	*ent.Finding
	project *ent.Project
	rule    *ent.Rule
	facts   facts
	// covered says that a decision about the same code on another ref covers it, for policies.
	covered bool
	// uploaded says that an uploaded report has it, not a scanner that gets its rules from Palisade.
	uploaded bool
}

func (s *subject) describe() payload.AutomationFinding {
	return payload.AutomationFinding{
		ID: s.ID, Project: s.project.Name, Ref: s.Ref, Rule: s.rule.Name, Severity: s.Severity, Path: text(s.FilePath),
	}
}

// loader reads findings with their facts.
type loader struct {
	db *ent.Client
	// policies are the active remediation policies.
	policies []remediation.Policy
	// fullScan is true or false for a scan, and empty for other causes.
	fullScan string
	// isNew says that all findings are new. compare says which ones are; it is nil if no scan is the cause.
	isNew   bool
	compare *comparison
	// scan is the cause; nil for other causes.
	scan *ent.Scan
}

func newLoader(ctx context.Context, db *ent.Client, e *event, policies []remediation.Policy) (l *loader, err error) {
	l = &loader{db: db, policies: policies, fullScan: e.fullScan(), scan: e.scan}
	if e.scan != nil {
		l.compare, err = comparisonOf(ctx, db, e.scan)
	}
	return l, err
}

// load reads the findings of some ids, by id. Findings that were merged or deleted are left out.
func (l *loader) load(ctx context.Context, ids []int64) ([]*subject, error) {
	rows, err := l.db.Finding.Query().Where(finding.MergedIntoIsNil()).Modify(store.FoundByIDs(ids)).All(ctx)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b *ent.Finding) int { return cmp.Compare(a.ID, b.ID) })
	about, err := l.about(ctx, rows)
	if err != nil {
		return nil, err
	}
	subjects := make([]*subject, 0, len(rows))
	for _, row := range rows {
		s := &subject{Finding: row, project: about.projects[row.ProjectID], rule: about.rules[row.RuleID]}
		if s.project == nil || s.rule == nil {
			continue // deleted in between
		}
		if err := l.fill(s, about); err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	if l.compare != nil {
		if err := l.compare.mark(ctx, subjects); err != nil {
			return nil, err
		}
	}
	if err := l.addUploaded(ctx, subjects); err != nil {
		return nil, err
	}
	for _, s := range subjects {
		s.facts.Place.Policies = remediation.Matching(l.policies, &s.facts)
	}
	return subjects, nil
}

// addUploaded sets which findings come from uploaded reports. If a scan is the cause, all of them do or none. For other
// causes the first scan of each finding decides.
func (l *loader) addUploaded(ctx context.Context, subjects []*subject) error {
	if l.scan != nil {
		for _, s := range subjects {
			s.uploaded = l.scan.UniqueID == nil
		}
		return nil
	}
	var unclear []*ent.Finding
	for _, s := range subjects {
		if s.PolicyMode == nil && blocking.MaybeOfScanner(s.Finding) {
			unclear = append(unclear, s.Finding)
		}
	}
	if len(unclear) == 0 {
		return nil
	}
	uploads, err := l.db.Scan.Query().Where(scan.UniqueIDIsNil(),
		store.WithIDs[predicate.Scan](idsOf(unclear, func(f *ent.Finding) int64 { return f.FirstSeenScanID }))).IDs(ctx)
	for _, s := range subjects {
		s.uploaded = slices.Contains(uploads, s.FirstSeenScanID)
	}
	return err
}

// surroundings are the rules and projects of findings.
type surroundings struct {
	rules    map[int64]*ent.Rule
	projects map[int64]*ent.Project
	tagIDs   map[int64][]string
	tags     map[int64][]string
}

func (l *loader) about(ctx context.Context, rows []*ent.Finding) (*surroundings, error) {
	a := &surroundings{rules: map[int64]*ent.Rule{}, projects: map[int64]*ent.Project{}, tagIDs: map[int64][]string{}, tags: map[int64][]string{}}
	ruleIDs, projectIDs := idsOf(rows, func(f *ent.Finding) int64 { return f.RuleID }), idsOf(rows, func(f *ent.Finding) int64 { return f.ProjectID })
	rules, err := l.db.Rule.Query().Where(store.WithIDs[predicate.Rule](ruleIDs)).
		Select(rule.FieldID, rule.FieldName, rule.FieldCategory, rule.FieldConfidence, rule.FieldSecretType, rule.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		a.rules[r.ID] = r
	}
	projects, err := l.db.Project.Query().Where(store.OneOf(project.FieldID, projectIDs)).
		Select(project.FieldID, project.FieldName, project.FieldVisibility, project.FieldPrimaryBranch, project.FieldDefaultBranch).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range projects {
		a.projects[p.ID] = p
	}
	return a, a.addTags(ctx, l.db, projectIDs)
}

func (a *surroundings) addTags(ctx context.Context, db *ent.Client, projectIDs []int64) error {
	links, err := db.ProjectTag.Query().Where(store.OneOf(projecttag.FieldProjectID, projectIDs)).All(ctx)
	if err != nil || len(links) == 0 {
		return err
	}
	ids := make([]int64, len(links))
	for i, link := range links {
		ids[i] = link.TagID
	}
	slices.Sort(ids)
	rows, err := db.Tag.Query().Where(store.OneOf(tag.FieldID, slices.Compact(ids))).Select(tag.FieldID, tag.FieldName).All(ctx)
	if err != nil {
		return err
	}
	names := map[int64]string{}
	for _, row := range rows {
		names[row.ID] = row.Name
	}
	for _, link := range links {
		a.tagIDs[link.ProjectID] = append(a.tagIDs[link.ProjectID], strconv.FormatInt(link.TagID, 10))
		a.tags[link.ProjectID] = append(a.tags[link.ProjectID], names[link.TagID])
	}
	return nil
}

func idsOf(rows []*ent.Finding, of func(*ent.Finding) int64) []int64 {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = of(row)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// fill sets the facts of a finding.
func (l *loader) fill(s *subject, a *surroundings) error {
	content := &findingsv1.FindingRule{}
	if err := proto.Unmarshal(s.rule.Content, content); err != nil {
		return err
	}
	primary := blocking.Primary(s.project)
	malicious := s.Malicious != nil && *s.Malicious
	of := remediation.FactsOf(s.Finding, s.rule)
	of.Project, of.Tags, of.Status, of.New = s.project.Name, a.tags[s.ProjectID], s.Status, l.isNew
	of.Place = &remediation.Place{
		Product: s.IssueType, ProjectID: strconv.FormatInt(s.ProjectID, 10), TagIDs: a.tagIDs[s.ProjectID],
		Ref: slices.Compact([]string{s.Ref, strings.TrimPrefix(s.Ref, "refs/heads/")}), Primary: strconv.FormatBool(s.Ref == primary),
		FullScan: l.fullScan, Paths: paths(text(s.FilePath)), Visibility: s.project.Visibility,
		CWE: leading(content.GetCweNames()), OWASP: leading(content.GetOwaspNames()), Classes: content.GetVulnerabilityClasses(),
		SecretType: text(s.rule.SecretType), Advisory: text(s.Advisory), Transitivity: strings.ToLower(text(s.Transitivity)),
		EPSS: strings.ToLower(text(s.EpssProbability)), Malicious: strconv.FormatBool(malicious), ComponentTag: text(s.ComponentTag),
		TriageState: s.TriageState,
	}
	s.facts = of.Canonical()
	return nil
}

// paths are a path and its directories.
func paths(file string) (list []string) {
	for at := file; at != "" && at != "." && at != "/"; at = path.Dir(at) {
		list = append(list, at)
	}
	return list
}

// leading are texts such as "CWE-79: Cross-site scripting", and what they begin with.
func leading(texts []string) (list []string) {
	for _, text := range texts {
		list = append(list, text)
		if short, _, cut := strings.Cut(text, ": "); cut && !slices.Contains(list, short) {
			list = append(list, short)
		} else if short, _, cut := strings.Cut(text, " "); cut && !slices.Contains(list, short) {
			list = append(list, short)
		}
	}
	return list
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
