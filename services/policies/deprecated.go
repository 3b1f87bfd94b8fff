package policies

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ruledocument"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// maintainer maintains the starter set.
const maintainer = "Palisade"

// defaultLimit is the number of rules on a page (contract facts, section 6).
const defaultLimit = 500

// Policies is the service group "policies" of both versions. A policy is a rule board.
type Policies struct {
	policiesv1.UnimplementedPoliciesServiceServer
	store   *store.Store
	baseURL string
}

// NewPolicies serves policies from the store. baseURL is the server's public URL.
func NewPolicies(st *store.Store, baseURL string) *Policies {
	return &Policies{store: st, baseURL: baseURL}
}

// ListPolicies lists the policies.
func (s *Policies) ListPolicies(ctx context.Context, _ *policiesv1.ListPoliciesRequest) (*policiesv1.ListPoliciesResponse, error) {
	boards, err := loadBoards(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	response := &policiesv1.ListPoliciesResponse{}
	for _, b := range boards {
		response.Policies = append(response.Policies, b.policy())
	}
	return response, nil
}

// ListPolicyRules lists the rules of a policy, oldest first.
func (s *Policies) ListPolicyRules(ctx context.Context, r *policiesv1.ListPolicyRulesRequest) (*policiesv1.ListPolicyRulesResponse, error) {
	if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
		return nil, err
	}
	b, err := boardByID(ctx, s.store.Reader, r.GetPolicyId())
	if err != nil {
		return nil, err
	}
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("policy rules", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.RuleDocument.Query().Where(ruledocument.Product(b.product))
	if continued {
		query.Where(ruledocument.IDGT(key.ID))
	}
	limit := int(r.GetLimit())
	if limit == 0 {
		limit = defaultLimit
	}
	rows, err := query.Order(ent.Asc(ruledocument.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &policiesv1.ListPolicyRulesResponse{Policy: b.policy()}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	modes, err := b.modes(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	response.Rules, err = s.convert(ctx, s.store.Reader, modes, rows)
	return response, err
}

// UpdatePolicyRule sets the mode of one rule.
func (s *Policies) UpdatePolicyRule(ctx context.Context, r *policiesv1.UpdatePolicyRuleRequest) (*policiesv1.UpdatePolicyRuleResponse, error) {
	response := &policiesv1.UpdatePolicyRuleResponse{PolicyId: r.GetPolicyId()}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := ruleset.BeginChange(ctx, s.store, tx)
		if err != nil {
			return err
		}
		b, err := boardByID(ctx, tx.Client(), r.GetPolicyId())
		if err != nil {
			return err
		}
		row, err := tx.RuleDocument.Query().Where(ruledocument.Name(r.GetRulePath()), ruledocument.Product(b.product)).Only(ctx)
		if ent.IsNotFound(err) {
			return apierr.NotFound("the policy %s has no rule %s", apierr.Quote(b.slug), apierr.Quote(r.GetRulePath()))
		}
		if err != nil {
			return err
		}
		modes, err := b.setMode(ctx, tx, row, policyModes[r.GetPolicyMode()], now)
		if err != nil {
			return err
		}
		rules, err := s.convert(ctx, tx.Client(), modes, []*ent.RuleDocument{row})
		if err != nil {
			return err
		}
		response.UpdatedRule = rules[0]
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// setMode sets the mode of a rule and returns the modes of the board.
func (b board) setMode(ctx context.Context, tx *ent.Tx, row *ent.RuleDocument, mode string, now int64) (boardModes, error) {
	before, err := b.modes(ctx, tx.Client())
	if err != nil {
		return nil, err
	}
	if b.isDefault() {
		return before, ruleset.SetMode(ctx, tx, []*ent.RuleDocument{row}, mode, now)
	}
	after := maps.Clone(before)
	after[boardItem{ruleset.TypeRule, row.Name}] = mode
	return after, b.replaceModes(ctx, tx, before, after, now)
}

// policyModes are the modes of rules, by the words of policies.
var policyModes = map[policiesv1.Mode]string{
	policiesv1.Mode_MODE_MONITOR: ruleset.ModeMonitor, policiesv1.Mode_MODE_COMMENT: ruleset.ModeComment,
	policiesv1.Mode_MODE_BLOCK: ruleset.ModeBlock, policiesv1.Mode_MODE_DISABLED: ruleset.ModeOff,
}

// severities are the words of rules.
var severities = map[string]policiesv1.Severity{
	"CRITICAL": policiesv1.Severity_SEVERITY_CRITICAL, "ERROR": policiesv1.Severity_SEVERITY_HIGH, "HIGH": policiesv1.Severity_SEVERITY_HIGH,
	"WARNING": policiesv1.Severity_SEVERITY_MEDIUM, "MEDIUM": policiesv1.Severity_SEVERITY_MEDIUM,
	"INFO": policiesv1.Severity_SEVERITY_LOW, "LOW": policiesv1.Severity_SEVERITY_LOW,
}

// convert converts rules with the modes of a board.
func (s *Policies) convert(ctx context.Context, db *ent.Client, modes boardModes, rows []*ent.RuleDocument) ([]*policiesv1.PolicyRule, error) {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	documents, err := ruleset.Documents(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	list := make([]*policiesv1.PolicyRule, len(rows))
	for i, row := range rows {
		list[i] = s.rule(row, modes.of(row), documents[row.ID])
	}
	return list, nil
}

func (s *Policies) rule(row *ent.RuleDocument, mode string, source []byte) *policiesv1.PolicyRule {
	out := &policiesv1.PolicyRule{
		Id: row.ID, Path: row.Name, Languages: row.Languages, Severity: severities[strings.ToUpper(row.Severity)],
		Source: policiesv1.Source_SOURCE_CUSTOM, Rulesets: []string{row.Origin}, LastChangeAt: timestamppb.New(store.Time(row.UpdatedAt)),
	}
	if row.Origin == ruleset.OriginStarter {
		out.Source, out.RegistryMaintainer, out.LastChangeBy = policiesv1.Source_SOURCE_COMMUNITY, maintainer, maintainer
	}
	if s.baseURL != "" {
		out.Url = ruleset.URL(s.baseURL, row)
	}
	for word, known := range policyModes {
		if known == mode {
			out.PolicyMode = word
		}
	}
	var about struct {
		Validators json.RawMessage `json:"validators"`
		Metadata   struct {
			Category   json.RawMessage `json:"category"`
			Confidence json.RawMessage `json:"confidence"`
			CWE        json.RawMessage `json:"cwe"`
			OWASP      json.RawMessage `json:"owasp"`
			SecretType json.RawMessage `json:"secret_type"`
			Technology json.RawMessage `json:"technology"`
			Classes    json.RawMessage `json:"vulnerability_class"`
		} `json:"metadata"`
	}
	if json.Unmarshal(source, &about) != nil {
		return out // the metadata of a rule may have any form
	}
	out.HasValidators = about.Validators != nil
	out.Category, out.SecretType = strings.Join(texts(about.Metadata.Category), ", "), strings.Join(texts(about.Metadata.SecretType), ", ")
	out.CweCategories, out.OwaspCategories = texts(about.Metadata.CWE), texts(about.Metadata.OWASP)
	out.Technologies, out.VulnerabilityClass = texts(about.Metadata.Technology), texts(about.Metadata.Classes)
	out.Confidence = policiesv1.Confidence(policiesv1.Confidence_value["CONFIDENCE_"+strings.ToUpper(strings.Join(texts(about.Metadata.Confidence), ""))])
	return out
}

// texts reads a text or a list of texts; anything else is none.
func texts(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return nil
	}
	return many
}

// PoliciesV1 is the same with the paths of version 1.
type PoliciesV1 struct {
	policiesv1.UnimplementedPoliciesV1ServiceServer
	policies *Policies
}

// NewPoliciesV1 serves version 1 by version 2.
func NewPoliciesV1(by *Policies) *PoliciesV1 { return &PoliciesV1{policies: by} }

// ListPoliciesV1 lists the policies.
func (s *PoliciesV1) ListPoliciesV1(ctx context.Context, r *policiesv1.ListPoliciesV1Request) (*policiesv1.ListPoliciesV1Response, error) {
	got, err := s.policies.ListPolicies(ctx, &policiesv1.ListPoliciesRequest{DeploymentId: r.GetDeploymentId()})
	return &policiesv1.ListPoliciesV1Response{Policies: got.GetPolicies()}, err
}

// ListPolicyRulesV1 lists the rules of a policy.
func (s *PoliciesV1) ListPolicyRulesV1(ctx context.Context, r *policiesv1.ListPolicyRulesV1Request) (*policiesv1.ListPolicyRulesV1Response, error) {
	got, err := s.policies.ListPolicyRules(ctx, &policiesv1.ListPolicyRulesRequest{
		DeploymentId: r.GetDeploymentId(), PolicyId: r.GetPolicyId(), Cursor: r.GetCursor(), Limit: r.GetLimit(),
	})
	return &policiesv1.ListPolicyRulesV1Response{Cursor: got.GetCursor(), Policy: got.GetPolicy(), Rules: got.GetRules()}, err
}

// UpdatePolicyV1 sets the mode of one rule.
func (s *PoliciesV1) UpdatePolicyV1(ctx context.Context, r *policiesv1.UpdatePolicyV1Request) (*policiesv1.UpdatePolicyV1Response, error) {
	got, err := s.policies.UpdatePolicyRule(ctx, &policiesv1.UpdatePolicyRuleRequest{
		DeploymentId: r.GetDeploymentId(), PolicyId: r.GetPolicyId(), PolicyMode: r.GetPolicyMode(), RulePath: r.GetRulePath(),
	})
	return &policiesv1.UpdatePolicyV1Response{PolicyId: got.GetPolicyId(), UpdatedRule: got.GetUpdatedRule()}, err
}
