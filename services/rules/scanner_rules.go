package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/document"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// ScannerRules is the service group "scanner rules".
type ScannerRules struct {
	rulesv1.UnimplementedScannerRulesServiceServer
	store   *store.Store
	baseURL string
}

// NewScannerRules serves rules to scanners. baseURL is the server's public URL.
func NewScannerRules(st *store.Store, baseURL string) *ScannerRules {
	return &ScannerRules{store: st, baseURL: baseURL}
}

// packs are the names of the pack with all rules that scans run.
var packs = []string{"default", "all", "auto"}

// productPacks maps the scanners' names of product packs.
var productPacks = map[string]string{
	"sast": document.ProductSAST, "code": document.ProductSAST, "secrets": document.ProductSecrets,
	"sca": document.ProductSCA, "supply-chain": document.ProductSCA,
}

// GetRulePack returns a pack.
func (s *ScannerRules) GetRulePack(ctx context.Context, r *rulesv1.GetRulePackRequest) (*rulesv1.GetRulePackResponse, error) {
	var selection ruleset.Selection
	pack := strings.ToLower(r.GetPack())
	language, isLanguage := document.Language(pack)
	product, isProduct := productPacks[pack]
	switch {
	case slices.Contains(packs, pack):
	case isProduct:
		selection.Products = []string{product}
	case isLanguage:
		selection.Language = language
	case slices.Contains([]string{ruleset.OriginStarter, ruleset.OriginImport, ruleset.OriginPublish}, pack):
		selection.Origin = pack
	default:
		return nil, apierr.NotFound("there is no pack %s here: there are default, starter, import, publish, the products sast, sca and secrets, and languages",
			apierr.Quote(r.GetPack()))
	}
	config, err := s.choose(ctx, selection)
	return &rulesv1.GetRulePackResponse{RuleConfig: config}, err
}

// GetAutoRules returns the rules that scans run.
func (s *ScannerRules) GetAutoRules(ctx context.Context, _ *rulesv1.GetAutoRulesRequest) (*rulesv1.GetAutoRulesResponse, error) {
	config, err := s.choose(ctx, ruleset.Selection{})
	return &rulesv1.GetAutoRulesResponse{RuleConfig: config}, err
}

func (s *ScannerRules) choose(ctx context.Context, selection ruleset.Selection) ([]byte, error) {
	if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
		return nil, err
	}
	selection.BaseURL = s.baseURL
	chosen, err := ruleset.Select(ctx, s.store.Reader, selection)
	return chosen.JSON, err
}

// GetRuleConfig returns a rule by its name, or the rules below a name.
func (s *ScannerRules) GetRuleConfig(ctx context.Context, r *rulesv1.GetRuleConfigRequest) (*rulesv1.GetRuleConfigResponse, error) {
	if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
		return nil, err
	}
	chosen, err := ruleset.Named(ctx, s.store.Reader, r.GetRuleName(), s.baseURL)
	if err != nil {
		return nil, err
	}
	if chosen.Rules == 0 {
		return nil, noRule(r.GetRuleName())
	}
	return &rulesv1.GetRuleConfigResponse{RuleConfig: chosen.JSON}, nil
}

// GetRuleSnippet returns one version of a rule.
func (s *ScannerRules) GetRuleSnippet(ctx context.Context, r *rulesv1.GetRuleSnippetRequest) (*rulesv1.GetRuleSnippetResponse, error) {
	none := apierr.NotFound("snippet %s not found", apierr.Quote(r.GetSnippet()))
	id, err := strconv.ParseInt(r.GetSnippet(), 10, 64)
	if err != nil {
		return nil, none
	}
	chosen, err := ruleset.Version(ctx, s.store.Reader, id, s.baseURL)
	if ent.IsNotFound(err) {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	return &rulesv1.GetRuleSnippetResponse{RuleConfig: chosen.JSON}, nil
}

// schemaPath is the path of the JSON Schema of rules.
const schemaPath = "/rule-schema.json"

// GetRuleSchemaUrl returns the URL of the schema (contract facts, section 10).
func (s *ScannerRules) GetRuleSchemaUrl(context.Context, *rulesv1.GetRuleSchemaUrlRequest) (*rulesv1.GetRuleSchemaUrlResponse, error) {
	return &rulesv1.GetRuleSchemaUrlResponse{SchemaUrl: s.baseURL + schemaPath}, nil
}

// PublishRule stores a rule. The deployment's scans run it unless it is unlisted. Its access rule names no scope:
// tokens in pipelines must not change the rules of all pipelines.
func (s *ScannerRules) PublishRule(ctx context.Context, r *rulesv1.PublishRuleRequest) (*rulesv1.PublishRuleResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	if named := r.GetNamedDeployment(); named != 0 && named != deploymentID {
		return nil, apierr.NotFound("deployment not found")
	}
	if r.GetVisibility() == "public" {
		return nil, apierr.FailedPrecondition("there is no public registry here: publish with the visibility org_private or unlisted")
	}
	rule, err := readDefinition(r)
	if err != nil {
		return nil, err
	}
	how := ruleset.PutOptions{Origin: ruleset.OriginPublish, Mode: ruleset.ModeMonitor, Visibility: r.GetVisibility()}
	var stored []*ruleset.Stored
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := checkUnlisted(ctx, tx, rule.Name, how); err != nil {
			return err
		}
		stored, err = ruleset.Put(ctx, s.store, tx, []document.Rule{rule}, how)
		return err
	})
	if err != nil {
		return nil, err
	}
	if how.Visibility == ruleset.VisibilityUnlisted {
		return &rulesv1.PublishRuleResponse{Id: strconv.FormatInt(stored[0].VersionID, 10)}, nil
	}
	return &rulesv1.PublishRuleResponse{Path: rule.Name}, nil
}

// checkUnlisted rejects publishing a rule as unlisted if scans run it now.
func checkUnlisted(ctx context.Context, tx *ent.Tx, name string, how ruleset.PutOptions) error {
	if how.Visibility != ruleset.VisibilityUnlisted {
		return nil
	}
	row, err := find(ctx, tx.Client(), name)
	switch {
	case apierr.Is(err, errorsv1.Reason_REASON_NOT_FOUND):
		return nil
	case err == nil && row.Visibility != ruleset.VisibilityUnlisted:
		return apierr.Conflict("rule %s is one that scans of the organization run: publish it as org_private, or under another id", apierr.Quote(name))
	}
	return err
}

// readDefinition parses the published rule.
func readDefinition(r *rulesv1.PublishRuleRequest) (document.Rule, error) {
	var source bytes.Buffer
	encoder := json.NewEncoder(&source)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r.GetDefinition().AsMap()); err != nil {
		return document.Rule{}, apierr.InvalidArgument("definition", "definition is not JSON: %v", err)
	}
	rules, problems := document.Parse(source.Bytes(), "")
	switch {
	case len(problems) > 0:
		return document.Rule{}, problemsError("definition", problems)
	case len(rules) != 1:
		return document.Rule{}, apierr.InvalidArgument("definition", "definition must have one rule, got %d", len(rules))
	}
	return rules[0], nil
}
