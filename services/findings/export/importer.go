package export

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/tag"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/byname"
)

type (
	ruleName  struct{ tool, name string }
	actorName struct{ kind, name string }
)

// importer imports one file.
type importer struct {
	store        *store.Store
	deploymentID int64
	projects     map[string]*ent.Project
	rules        map[ruleName]int64
	scans        map[int64]int64 // ids, by number
	taken        map[int64]bool  // ids of scans that have a number
	actors       map[actorName]int64
	// merged are the findings that were merged into others, by the id of the former.
	merged map[int64]*storev1.ExportedIdentity
	done   findingsv1.ImportFindingsResponse
	line   int // of the record that is stored
}

// numbered is a record with its line.
type numbered struct {
	*storev1.ExportRecord
	line int
}

// storing returns the transaction that stores some records.
func (i *importer) storing(records []numbered) func(context.Context, *ent.Tx) error {
	return func(ctx context.Context, tx *ent.Tx) error {
		var findings []numbered
		for _, record := range records {
			var err error
			i.line = record.line
			switch of := record.GetRecord().(type) {
			case *storev1.ExportRecord_Project:
				err = i.project(ctx, tx, of.Project)
			case *storev1.ExportRecord_Rule:
				err = i.rule(ctx, tx, of.Rule)
			case *storev1.ExportRecord_Scan:
				err = i.scan(ctx, tx, of.Scan)
			case *storev1.ExportRecord_Finding:
				findings = append(findings, record)
			}
			if err != nil {
				return i.at(err)
			}
		}
		return i.at(i.findings(ctx, tx, findings))
	}
}

// invalid is an error of a record.
type invalid string

func (e invalid) Error() string { return string(e) }

func invalidf(format string, args ...any) error { return invalid(fmt.Sprintf(format, args...)) }

// at tells the caller where an invalid record is.
func (i *importer) at(err error) error {
	if text, ok := err.(invalid); ok { //nolint:errorlint // it is never wrapped
		return malformed(i.line, "%s", text)
	}
	return err
}

// project finds or creates a project. Those that exist keep their settings.
func (i *importer) project(ctx context.Context, tx *ent.Tx, r *storev1.ExportedProject) error {
	p, err := tx.Project.Query().Where(byname.Is(ctx, r.GetName())).Only(ctx)
	if err == nil {
		i.projects[r.GetName()] = p
		return nil
	}
	if !ent.IsNotFound(err) {
		return err
	}
	p, err = tx.Project.Create().SetDeploymentID(i.deploymentID).SetName(r.GetName()).SetNameKey(strings.ToLower(r.GetName())).SetURL(r.GetUrl()).
		SetDefaultBranch(r.GetDefaultBranch()).SetPrimaryBranch(r.GetPrimaryBranch()).SetVisibility(r.GetVisibility()).SetScmType(r.GetScmType()).
		SetCreatedAt(micros(r.GetCreatedAt())).SetNillableLatestScanAt(optionalMicros(r.GetLatestScanAt())).
		SetNillableArchivedAt(optionalMicros(r.GetArchivedAt())).Save(ctx)
	if err != nil {
		return fmt.Errorf("create a project: %w", err)
	}
	if err := access.JoinDefaultTeams(ctx, tx, store.Now(), p.Name); err != nil {
		return err
	}
	i.projects[p.Name] = p
	i.done.Projects++
	return i.tags(ctx, tx, p, r.GetTags())
}

// tags gives a new project its tags.
func (i *importer) tags(ctx context.Context, tx *ent.Tx, p *ent.Project, names []string) error {
	for _, name := range names {
		err := tx.Tag.Create().SetDeploymentID(i.deploymentID).SetName(name).SetCreatedAt(store.Now()).
			OnConflictColumns(tag.FieldDeploymentID, tag.FieldName).Ignore().Exec(ctx)
		if err != nil {
			return fmt.Errorf("create a tag: %w", err)
		}
		id, err := tx.Tag.Query().Where(tag.Name(name)).OnlyID(ctx)
		if err != nil {
			return fmt.Errorf("read a tag: %w", err)
		}
		err = tx.ProjectTag.Create().SetDeploymentID(i.deploymentID).SetProjectID(p.ID).SetTagID(id).
			OnConflictColumns(projecttag.FieldDeploymentID, projecttag.FieldProjectID, projecttag.FieldTagID).Ignore().Exec(ctx)
		if err != nil {
			return fmt.Errorf("tag a project: %w", err)
		}
	}
	return nil
}

// rule finds or creates a rule.
func (i *importer) rule(ctx context.Context, tx *ent.Tx, r *storev1.ExportedRule) error {
	of := ruleName{r.GetTool(), r.GetName()}
	id, err := tx.Rule.Query().Where(rule.Tool(of.tool), rule.Name(of.name)).OnlyID(ctx)
	if err == nil {
		i.rules[of] = id
		return nil
	}
	if !ent.IsNotFound(err) {
		return err
	}
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.GetContent())
	if err != nil {
		return err
	}
	row, err := tx.Rule.Create().SetDeploymentID(i.deploymentID).SetTool(of.tool).SetName(of.name).SetCategory(r.GetCategory()).SetConfidence(r.GetConfidence()).
		SetContent(content).SetNillableSecretType(r.SecretType).SetNillableOrigin(r.Origin).Save(ctx)
	if err != nil {
		return fmt.Errorf("create a rule: %w", err)
	}
	i.rules[of] = row.ID
	i.done.Rules++
	return nil
}

// scan finds or creates a scan.
func (i *importer) scan(ctx context.Context, tx *ent.Tx, r *storev1.ExportedScan) error {
	p := i.projects[r.GetProject()]
	if p == nil {
		return invalidf("scan %d is of a project that the file does not have: %s", r.GetNumber(), apierr.Quote(r.GetProject()))
	}
	known := tx.Scan.Query().Where(scan.ProjectID(p.ID), scan.StartedAt(micros(r.GetStartedAt())), scan.Ref(r.GetRef()), scan.Commit(r.GetCommit()))
	if r.UniqueId != nil {
		known = tx.Scan.Query().Where(scan.UniqueID(r.GetUniqueId()))
	}
	ids, err := known.Order(ent.Asc(scan.FieldID)).Limit(recordsAtOnce).IDs(ctx)
	if err != nil {
		return fmt.Errorf("look up a scan: %w", err)
	}
	for _, id := range ids {
		if !i.taken[id] {
			i.scans[r.GetNumber()], i.taken[id] = id, true
			return nil
		}
	}
	if r.UniqueId != nil && len(ids) > 0 {
		return invalidf("scan %d: its uniqueId is used twice", r.GetNumber())
	}
	meta, err := proto.Marshal(r.GetMeta())
	if err != nil {
		return err
	}
	create := tx.Scan.Create().SetDeploymentID(i.deploymentID).SetProjectID(p.ID).SetRef(r.GetRef()).SetCommit(r.GetCommit()).
		SetNillableCommitTime(optionalMicros(r.GetCommitTime())).SetStatus(r.GetStatus()).SetProducts(r.GetProducts()).SetIsFullScan(r.GetIsFullScan()).
		SetNillableUniqueID(r.UniqueId).SetResultsState(r.GetResultsState()).SetExitCode(r.GetExitCode()).SetTotalCount(r.GetTotalCount()).
		SetCodeCount(r.GetCodeCount()).SetSupplyChainCount(r.GetSupplyChainCount()).SetSecretsCount(r.GetSecretsCount()).SetMeta(meta).
		SetStats(r.GetStats().AsMap()).SetStartedAt(micros(r.GetStartedAt())).SetNillableCompletedAt(optionalMicros(r.GetCompletedAt()))
	if len(r.GetScanner()) > 0 {
		create.SetScanner(r.GetScanner())
	}
	row, err := create.Save(ctx)
	if err != nil {
		return fmt.Errorf("create a scan: %w", err)
	}
	i.scans[r.GetNumber()], i.taken[row.ID] = row.ID, true
	i.done.Scans++
	return nil
}

func micros(at *timestamppb.Timestamp) int64 { return store.Micros(at.AsTime()) }

func optionalMicros(at *timestamppb.Timestamp) *int64 {
	if at == nil {
		return nil
	}
	value := micros(at)
	return &value
}
