package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tag"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// version is the version of the records.
const version = 1

// ndjsonFormat writes records without the ids of the database, each before the first one that names it. So a file is
// equal to the export of the deployment that it is imported into.
type ndjsonFormat struct {
	lookup   lookup
	buffer   bytes.Buffer
	projects map[int64]bool
	rules    map[int64]bool
	scans    map[int64]int64 // numbers, by id
	findings int64
}

func newNDJSON(about *about) format {
	return &ndjsonFormat{lookup: about.lookup, projects: map[int64]bool{}, rules: map[int64]bool{}, scans: map[int64]int64{}}
}

func (*ndjsonFormat) needs() needs { return needs{events: true, matches: true, requests: true} }

func (f *ndjsonFormat) begin() ([]byte, error) {
	f.buffer.Reset()
	err := f.line(&storev1.ExportRecord{Record: &storev1.ExportRecord_Header{Header: &storev1.ExportHeader{Version: version}}})
	return f.buffer.Bytes(), err
}

func (f *ndjsonFormat) end(context.Context) ([]byte, error) {
	f.buffer.Reset()
	err := f.line(&storev1.ExportRecord{Record: &storev1.ExportRecord_End{End: &storev1.ExportEnd{Findings: f.findings}}})
	return f.buffer.Bytes(), err
}

// line appends a record. The encoder of protobuf adds blanks at random, which Compact removes.
func (f *ndjsonFormat) line(record *storev1.ExportRecord) error {
	encoded, err := protojson.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode a record: %w", err)
	}
	if err := json.Compact(&f.buffer, encoded); err != nil {
		return fmt.Errorf("encode a record: %w", err)
	}
	return f.buffer.WriteByte('\n')
}

func (f *ndjsonFormat) batch(ctx context.Context, b *batch) ([]byte, error) {
	f.buffer.Reset()
	if err := f.define(ctx, b); err != nil {
		return nil, err
	}
	var actors []actor
	var merged []int64
	for _, e := range b.rows {
		actors = append(append(actors, actorsOf(e.events)...), creatorsOf(e.requests)...)
		if e.MergedInto != nil {
			merged = append(merged, *e.MergedInto)
		}
	}
	names, err := f.lookup.names(ctx, actors)
	if err != nil {
		return nil, err
	}
	into, err := f.identities(ctx, merged)
	if err != nil {
		return nil, err
	}
	for _, e := range b.rows {
		record, err := f.finding(e, names)
		if err != nil {
			return nil, fmt.Errorf("finding %d: %w", e.ID, err)
		}
		if e.MergedInto != nil {
			record.MergedInto = into[*e.MergedInto]
		}
		if err := f.line(&storev1.ExportRecord{Record: &storev1.ExportRecord_Finding{Finding: record}}); err != nil {
			return nil, err
		}
		f.findings++
	}
	return f.buffer.Bytes(), nil
}

// define writes the projects, rules and scans that the findings name and that the file does not have yet.
func (f *ndjsonFormat) define(ctx context.Context, b *batch) error {
	var projects []int64
	var scans []int64
	see := func(id int64) {
		if _, known := f.scans[id]; !known && id != 0 {
			f.scans[id] = 0
			scans = append(scans, id)
		}
	}
	for _, e := range b.rows {
		if !f.projects[e.ProjectID] {
			f.projects[e.ProjectID] = true
			projects = append(projects, e.ProjectID)
		}
		see(e.FirstSeenScanID)
		see(number64(e.LastSeenScanID))
		for _, event := range e.events {
			see(number64(event.ScanID))
		}
		for _, match := range e.matches {
			see(match.ScanID)
		}
	}
	if err := f.defineProjects(ctx, b, projects); err != nil {
		return err
	}
	for _, e := range b.rows {
		if f.rules[e.RuleID] {
			continue
		}
		f.rules[e.RuleID] = true
		record := &storev1.ExportedRule{
			Tool: e.rule.Tool, Name: e.rule.Name, Content: e.rule.content, Category: e.rule.Category, Confidence: e.rule.Confidence,
			SecretType: e.rule.SecretType, Origin: e.rule.Origin,
		}
		if err := f.line(&storev1.ExportRecord{Record: &storev1.ExportRecord_Rule{Rule: record}}); err != nil {
			return err
		}
	}
	return f.defineScans(ctx, scans)
}

func (f *ndjsonFormat) defineProjects(ctx context.Context, b *batch, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	tags, err := f.tags(ctx, ids)
	if err != nil {
		return err
	}
	written := map[int64]bool{}
	for _, e := range b.rows {
		if !slices.Contains(ids, e.ProjectID) || written[e.ProjectID] {
			continue
		}
		written[e.ProjectID] = true
		p := e.project
		record := &storev1.ExportedProject{
			Name: p.Name, Url: p.URL, DefaultBranch: p.DefaultBranch, PrimaryBranch: p.PrimaryBranch, Visibility: p.Visibility, ScmType: p.ScmType,
			Tags: tags[p.ID], CreatedAt: timestamp(p.CreatedAt), LatestScanAt: store.Timestamp(p.LatestScanAt), ArchivedAt: store.Timestamp(p.ArchivedAt),
		}
		if err := f.line(&storev1.ExportRecord{Record: &storev1.ExportRecord_Project{Project: record}}); err != nil {
			return err
		}
	}
	return nil
}

// tags returns the tags of projects, in alphabetical order.
func (f *ndjsonFormat) tags(ctx context.Context, projects []int64) (map[int64][]string, error) {
	links, err := f.lookup.db.ProjectTag.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(projecttag.FieldProjectID), projects)) }).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tags of projects: %w", err)
	}
	names := map[int64]string{}
	ids := make([]int64, len(links))
	for i, link := range links {
		ids[i] = link.TagID
	}
	rows, err := f.lookup.db.Tag.Query().Where(store.WithIDs[predicate.Tag](ids)).Select(tag.FieldID, tag.FieldName).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read tags: %w", err)
	}
	for _, t := range rows {
		names[t.ID] = t.Name
	}
	tags := map[int64][]string{}
	for _, link := range links {
		tags[link.ProjectID] = append(tags[link.ProjectID], names[link.TagID])
	}
	for _, list := range tags {
		slices.Sort(list)
	}
	return tags, nil
}

// defineScans numbers scans in the order of their ids.
func (f *ndjsonFormat) defineScans(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := f.lookup.db.Scan.Query().Where(store.WithIDs[predicate.Scan](ids)).Order(ent.Asc(scan.FieldID)).All(ctx)
	if err != nil {
		return fmt.Errorf("read scans: %w", err)
	}
	names, err := f.projectNames(ctx, rows)
	if err != nil {
		return err
	}
	numbered := int64(0)
	for _, n := range f.scans {
		numbered = max(numbered, n)
	}
	for _, s := range rows {
		numbered++
		f.scans[s.ID] = numbered
		record, err := scanRecord(s, numbered, names[s.ProjectID])
		if err != nil {
			return fmt.Errorf("scan %d: %w", s.ID, err)
		}
		if err := f.line(&storev1.ExportRecord{Record: &storev1.ExportRecord_Scan{Scan: record}}); err != nil {
			return err
		}
	}
	return nil
}

func (f *ndjsonFormat) projectNames(ctx context.Context, scans []*ent.Scan) (map[int64]string, error) {
	ids := make([]int64, len(scans))
	for i, s := range scans {
		ids[i] = s.ProjectID
	}
	rows, err := f.lookup.db.Project.Query().Where(store.WithIDs[predicate.Project](ids)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read projects of scans: %w", err)
	}
	names := make(map[int64]string, len(rows))
	for _, p := range rows {
		names[p.ID] = p.Name
	}
	return names, nil
}

func scanRecord(s *ent.Scan, number int64, project string) (*storev1.ExportedScan, error) {
	meta := &scansv1.ScanMeta{}
	if err := proto.Unmarshal(s.Meta, meta); err != nil {
		return nil, err
	}
	stats, err := structpb.NewStruct(s.Stats)
	if err != nil {
		return nil, err
	}
	return &storev1.ExportedScan{
		Number: number, Project: project, Ref: s.Ref, Commit: s.Commit, CommitTime: store.Timestamp(s.CommitTime), Status: s.Status,
		Products: s.Products, IsFullScan: s.IsFullScan, UniqueId: s.UniqueID, ResultsState: s.ResultsState, Scanner: value(s.Scanner),
		ExitCode: s.ExitCode, TotalCount: s.TotalCount, CodeCount: s.CodeCount, SupplyChainCount: s.SupplyChainCount, SecretsCount: s.SecretsCount,
		Meta: meta, Stats: stats, StartedAt: timestamp(s.StartedAt), CompletedAt: store.Timestamp(s.CompletedAt),
	}, nil
}

// identities returns the names of findings that others were merged into.
func (f *ndjsonFormat) identities(ctx context.Context, ids []int64) (map[int64]*storev1.ExportedIdentity, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := f.lookup.db.Finding.Query().Where(store.WithIDs[predicate.Finding](ids)).
		Select(finding.FieldID, finding.FieldRef, finding.FieldAnalysisCategory, finding.FieldFingerprint).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read merged findings: %w", err)
	}
	names := make(map[int64]*storev1.ExportedIdentity, len(rows))
	for _, r := range rows {
		names[r.ID] = &storev1.ExportedIdentity{Ref: r.Ref, AnalysisCategory: r.AnalysisCategory, Fingerprint: r.Fingerprint}
	}
	return names, nil
}

func (f *ndjsonFormat) finding(e *exported, names map[actor]string) (*storev1.ExportedFinding, error) {
	record := &storev1.ExportedFinding{
		Project: e.project.Name, Ref: e.Ref, Tool: e.Tool, AnalysisCategory: e.AnalysisCategory, Fingerprint: e.Fingerprint,
		Evidence: value(e.Evidence), MatchKey: e.MatchKey, RuleTool: e.rule.Tool, Rule: e.rule.Name,
		FirstSeenScan: f.scans[e.FirstSeenScanID], LastSeenScan: f.scans[number64(e.LastSeenScanID)],
		IssueType: e.IssueType, Severity: e.Severity, State: e.State, TriageState: e.TriageState, Status: e.Status,
		TriageReason: e.TriageReason, TriageComment: e.TriageComment, PolicyMode: e.PolicyMode, AutotriageVerdict: e.AutotriageVerdict,
		ComponentTag: e.ComponentTag, Exposure: e.Exposure, Transitivity: e.Transitivity, Package: e.Package, Advisory: e.Advisory,
		IgnoredByPattern: e.IgnoredByPattern, FilePath: e.FilePath, EpssProbability: e.EpssProbability, Malicious: e.Malicious, ClickToFixState: e.ClickToFixState,
		ValidationState: e.ValidationState, Historical: e.Historical, CreatedAt: timestamp(e.CreatedAt), RelevantSince: timestamp(e.RelevantSince),
		StateUpdatedAt: timestamp(e.StateUpdatedAt), TriagedAt: store.Timestamp(e.TriagedAt), Content: e.content,
		ExceptionRequests: requestRecords(e.requests, names),
	}
	for _, event := range e.events {
		who := event.ActorName
		if who == "" {
			who = names[actor{event.ActorKind, event.ActorID}]
		}
		record.Events = append(record.Events, &storev1.ExportedEvent{
			Kind: event.Kind, FromStatus: event.FromStatus, ToStatus: event.ToStatus, Reason: event.Reason, Note: event.Note,
			ActorKind: event.ActorKind, Actor: who, Scan: f.scans[number64(event.ScanID)], At: timestamp(event.At),
		})
	}
	for _, m := range e.matches {
		content := &storev1.FindingMatch{}
		if err := proto.Unmarshal(m.Content, content); err != nil {
			return nil, fmt.Errorf("match %d: %w", m.ID, err)
		}
		for _, c := range content.GetConsidered() {
			c.FindingId = 0 // another database has other ids
		}
		record.Matches = append(record.Matches, &storev1.ExportedMatch{Scan: f.scans[m.ScanID], Rung: m.Rung, Content: content, At: timestamp(m.At)})
	}
	return record, nil
}

func timestamp(micros int64) *timestamppb.Timestamp { return timestamppb.New(store.Time(micros)) }

// number64 is an optional id; 0 if it is null.
func number64(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

// value is an optional column of bytes; nil if it is null.
func value(b *[]byte) []byte {
	if b == nil {
		return nil
	}
	return *b
}
