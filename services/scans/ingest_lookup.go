package scans

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/scans/sarif"
)

// The products, as issue types of findings.
const (
	sast    = sarif.ProductSAST
	sca     = sarif.ProductSCA
	secrets = sarif.ProductSecrets
)

// unknownConfidence is the confidence of a rule that says nothing: the API has no word for "unknown".
const unknownConfidence = sarif.ConfidenceMedium

type ruleKey struct{ tool, name string }

type storedRule struct {
	id      int64
	content []byte
}

type storedKey struct{ fingerprint, category string }

// storeRules makes sure that the rules of a batch are stored with their present text.
func (in *ingest) storeRules(ctx context.Context, batch []*incoming) error {
	wanted := map[ruleKey]*sarif.Result{}
	for _, i := range batch {
		key := ruleKey{i.group.tool, i.result.RuleID}
		if _, known := in.rules[key]; !known && wanted[key] == nil {
			wanted[key] = i.result
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	if err := in.readRules(ctx, wanted); err != nil {
		return err
	}
	missing := make([]ruleKey, 0, len(wanted))
	for key, result := range wanted {
		content, err := ruleContent(result)
		if err != nil {
			return err
		}
		known, ok := in.rules[key]
		switch {
		case !ok:
			missing = append(missing, key)
		case !bytes.Equal(known.content, content) && !result.Rule.Stub:
			err := in.tx.Rule.UpdateOneID(known.id).SetContent(content).SetCategory(result.Rule.Category).SetConfidence(confidence(result)).Exec(ctx)
			if err != nil {
				return err
			}
		}
	}
	return in.createRules(ctx, wanted, missing)
}

// createRules adds rules in one order, so that two uploads that bring the same ones cannot wait for each other in a ring.
func (in *ingest) createRules(ctx context.Context, wanted map[ruleKey]*sarif.Result, missing []ruleKey) error {
	if len(missing) == 0 {
		return nil
	}
	slices.SortFunc(missing, func(a, b ruleKey) int { return strings.Compare(a.tool+"\x00"+a.name, b.tool+"\x00"+b.name) })
	rows := make([]*ent.RuleCreate, len(missing))
	for n, key := range missing {
		result := wanted[key]
		content, err := ruleContent(result)
		if err != nil {
			return err
		}
		rows[n] = in.tx.Rule.Create().SetDeploymentID(in.deploymentID).SetTool(key.tool).SetName(key.name).
			SetCategory(result.Rule.Category).SetConfidence(confidence(result)).SetContent(content)
	}
	err := in.tx.Rule.CreateBulk(rows...).OnConflictColumns(rule.FieldDeploymentID, rule.FieldTool, rule.FieldName).Ignore().Exec(ctx)
	if err != nil {
		return err
	}
	return in.readRules(ctx, wanted)
}

func (in *ingest) readRules(ctx context.Context, wanted map[ruleKey]*sarif.Result) error {
	var tools, names []string
	for key := range wanted {
		tools, names = append(tools, key.tool), append(names, key.name)
	}
	rows, err := in.tx.Rule.Query().Where(rule.ToolIn(slices.Compact(slices.Sorted(slices.Values(tools)))...), rule.NameIn(names...)).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		in.rules[ruleKey{row.Tool, row.Name}] = storedRule{row.ID, row.Content}
	}
	return nil
}

func ruleContent(r *sarif.Result) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(&findingsv1.FindingRule{
		Name: r.RuleID, Message: r.Rule.Message, Confidence: confidence(r), Category: r.Rule.Category,
		Subcategories: r.Rule.Subcategories, VulnerabilityClasses: r.Rule.VulnerabilityClasses,
		CweNames: r.Rule.CWENames, OwaspNames: r.Rule.OWASPNames,
	})
}

func confidence(r *sarif.Result) string {
	if r.Rule.Confidence == "" {
		return unknownConfidence
	}
	return r.Rule.Confidence
}

// storedFindings reads the findings of the batch that earlier scans of this ref stored.
func (in *ingest) storedFindings(ctx context.Context, batch []*incoming) (map[storedKey]*ent.Finding, error) {
	prints := make([]string, len(batch))
	for n, i := range batch {
		prints[n] = i.fingerprint
	}
	rows, err := in.tx.Finding.Query().
		Where(finding.DeploymentID(in.deploymentID), finding.ProjectID(in.project.ID), finding.Ref(in.ref), finding.FingerprintIn(prints...)).
		Select(finding.FieldID, finding.FieldFingerprint, finding.FieldAnalysisCategory, finding.FieldState, finding.FieldTriageState,
			finding.FieldStatus, finding.FieldContentHash, finding.FieldFirstSeenScanID, finding.FieldCreatedAt,
			finding.FieldRelevantSince, finding.FieldStateUpdatedAt, finding.FieldFilePath).All(ctx)
	if err != nil {
		return nil, err
	}
	stored := make(map[storedKey]*ent.Finding, len(rows))
	for _, row := range rows {
		stored[storedKey{row.Fingerprint, row.AnalysisCategory}] = row
	}
	return stored, nil
}

// decisionsFor reads the latest decision about each finding that is new on this ref but known on another one.
func (in *ingest) decisionsFor(ctx context.Context, batch []*incoming, stored map[storedKey]*ent.Finding) (map[string]*ent.Finding, error) {
	var prints []string
	for _, i := range batch {
		if stored[storedKey{i.fingerprint, i.group.category}] == nil {
			prints = append(prints, i.fingerprint)
		}
	}
	if len(prints) == 0 {
		return nil, nil
	}
	rows, err := in.tx.Finding.Query().
		Where(finding.DeploymentID(in.deploymentID), finding.ProjectID(in.project.ID), finding.FingerprintIn(prints...),
			finding.TriageStateNotIn(lifecycle.Untriaged, lifecycle.ProvisionallyIgnored)).
		Select(finding.FieldFingerprint, finding.FieldTriageState, finding.FieldTriageReason, finding.FieldTriageComment, finding.FieldTriagedAt).
		Order(ent.Asc(finding.FieldTriagedAt, finding.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	decisions := make(map[string]*ent.Finding, len(rows))
	for _, row := range rows {
		decisions[row.Fingerprint] = row
	}
	return decisions, nil
}

// productBit is the bit of a product in the column scans.products.
func productBit(product string) int32 {
	switch product {
	case sast:
		return 1 << scansv1.Product_PRODUCT_SAST
	case sca:
		return 1 << scansv1.Product_PRODUCT_SCA
	case secrets:
		return 1 << scansv1.Product_PRODUCT_SECRETS
	}
	return 0
}
