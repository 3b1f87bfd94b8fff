package notifications

import (
	"cmp"
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/projects/codehost"
	"github.com/palisade/palisade/services/scans/scanstats"
)

// policy is one of the built-in policies, by the mode of a finding.
type policy struct {
	id         int64
	name, slug string
	actions    []string
}

// monitored is the policy of findings without another policy.
var monitored = policy{1, "Monitor", "rule-board-audit", nil}

var policies = map[string]policy{
	monitored.slug:           monitored,
	"rule-board-pr-comments": {2, "Comment", "rule-board-pr-comments", []string{"comment"}},
	"rule-board-block":       {3, "Block", "rule-board-block", []string{"block"}},
}

func policyOf(row *ent.Finding) policy {
	if row.PolicyMode == nil {
		return monitored
	}
	if known, ok := policies[*row.PolicyMode]; ok {
		return known
	}
	return policy{name: *row.PolicyMode, slug: *row.PolicyMode}
}

// scanContext holds the data of a scan that messages contain in addition to findings.
type scanContext struct {
	scan    *ent.Scan
	meta    *scansv1.ScanMeta
	project *ent.Project
	tenant  string
	rules   map[int64]*findingsv1.FindingRule
}

func readScanContext(ctx context.Context, db *ent.Client, of *ent.Scan, rows []*ent.Finding) (*scanContext, error) {
	about := &scanContext{scan: of, meta: &scansv1.ScanMeta{}, rules: map[int64]*findingsv1.FindingRule{}}
	if err := proto.Unmarshal(of.Meta, about.meta); err != nil {
		return nil, fmt.Errorf("meta of scan %d: %w", of.ID, err)
	}
	var err error
	if about.project, err = db.Project.Query().Where(project.ID(of.ProjectID)).Only(ctx); err != nil {
		return nil, err
	}
	owner, err := db.Deployment.Query().Where(deployment.ID(of.DeploymentID)).Only(ctx)
	if err != nil {
		return nil, err
	}
	about.tenant = owner.Slug
	return about, about.readRules(ctx, db, rows)
}

// readRules reads the rules of findings.
func (a *scanContext) readRules(ctx context.Context, db *ent.Client, rows []*ent.Finding) error {
	var ids []int64
	for _, row := range rows {
		if _, known := a.rules[row.RuleID]; !known {
			a.rules[row.RuleID] = &findingsv1.FindingRule{}
			ids = append(ids, row.RuleID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	stored, err := db.Rule.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(rule.FieldID), ids)) }).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range stored {
		if err := proto.Unmarshal(row.Content, a.rules[row.ID]); err != nil {
			return fmt.Errorf("rule %d: %w", row.ID, err)
		}
	}
	return nil
}

// findings converts rows to the messages' form. The commit's time is unknown; the start of the scan replaces it,
// because receivers parse the date.
func (a *scanContext) findings(rows []*ent.Finding) ([]payload.Finding, error) {
	list := make([]payload.Finding, len(rows))
	for i, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, fmt.Errorf("content of finding %d: %w", row.ID, err)
		}
		where, check, source := content.GetLocation(), a.rules[row.RuleID], policyOf(row)
		list[i] = payload.Finding{
			ID: row.ID, FirstSeenScanID: row.FirstSeenScanID, CheckID: check.GetName(),
			Path: cmp.Or(where.GetFilePath(), content.GetLogicalLocation()), Line: where.GetLine(), Column: where.GetColumn(), EndLine: where.GetEndLine(), EndColumn: where.GetEndColumn(),
			Message: content.GetMessage(), Severity: row.Severity, CommittedAt: store.Time(a.scan.StartedAt),
			CommitURL: codehost.CommitURL(a.project.ScmType, a.project.URL, content.GetCommit()),
			Ref:       row.Ref, RepoName: a.project.Name, CreatedAt: store.Time(row.CreatedAt),
			Metadata: payload.Metadata{
				Category: check.GetCategory(), Confidence: check.GetConfidence(), CWE: check.GetCweNames(), OWASP: check.GetOwaspNames(),
				Subcategories: check.GetSubcategories(), VulnerabilityClasses: check.GetVulnerabilityClasses(),
				PolicyID: source.id, PolicyName: source.name, PolicySlug: source.slug, Actions: source.actions,
			},
		}
	}
	return list, nil
}

// finishedScan converts the scan to the message's form.
func (a *scanContext) finishedScan() (payload.Scan, error) {
	s, m := a.scan, a.meta
	if s.CompletedAt == nil {
		return payload.Scan{}, fmt.Errorf("scan %d has not ended", s.ID)
	}
	return payload.Scan{
		ID: s.ID, DeploymentID: s.DeploymentID, RepositoryID: s.ProjectID, EnabledProducts: productWords(s.Products), ExitCode: &s.ExitCode,
		Meta: payload.Meta{
			On: m.GetOn(), Branch: m.GetBranch(), Commit: m.GetCommit(), Config: m.GetConfig(), RepoURL: m.GetRepoUrl(), CIJobURL: m.GetCiJobUrl(),
			Repository: m.GetRepository(), CommitTitle: m.GetCommitTitle(), PullRequestID: m.GetPullRequestId(), PullRequestTitle: m.GetPullRequestTitle(),
			CommitAuthorName: m.GetCommitAuthorName(), CommitAuthorImageURL: m.GetCommitAuthorImageUrl(), CommitAuthorEmail: m.GetCommitAuthorEmail(),
			CommitAuthorUsername: m.GetCommitAuthorUsername(), PullRequestAuthorUsername: m.GetPullRequestAuthorUsername(),
			PullRequestAuthorImageURL: m.GetPullRequestAuthorImageUrl(),
		},
		StartedAt: store.Time(s.StartedAt), CompletedAt: store.Time(*s.CompletedAt), Stats: scanstats.Shown(s.Stats), TenantName: a.tenant,
	}, nil
}

// productWords converts the products of a scan (bits of scans.products) to the API's words.
func productWords(bits int32) []string {
	var words []string
	for _, p := range []struct {
		product scansv1.Product
		word    string
	}{
		{scansv1.Product_PRODUCT_SAST, vocabulary.SAST}, {scansv1.Product_PRODUCT_SCA, vocabulary.SCA},
		{scansv1.Product_PRODUCT_SECRETS, vocabulary.Secrets}, {scansv1.Product_PRODUCT_AI_SAST, vocabulary.AISAST},
	} {
		if bits&(1<<p.product) != 0 {
			words = append(words, p.word)
		}
	}
	return words
}
