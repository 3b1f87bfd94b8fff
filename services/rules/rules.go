package rules

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"

	"entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqljson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/ent/ruleversion"
	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/document"
	"github.com/palisade/palisade/services/rules/ruleset"
)

const (
	defaultLimit = 100
	// maxShownVersions is the maximum number of versions listed for a rule.
	maxShownVersions = 100
)

// Rules is the service group "rules".
type Rules struct {
	rulesv1.UnimplementedRulesServiceServer
	store *store.Store
}

// NewRules serves rules from the store.
func NewRules(st *store.Store) *Rules { return &Rules{store: st} }

// ListRules lists rules, oldest first.
func (s *Rules) ListRules(ctx context.Context, r *rulesv1.ListRulesRequest) (*rulesv1.ListRulesResponse, error) {
	if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
		return nil, err
	}
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("rules", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.RuleDocument.Query()
	if continued {
		query.Where(ruledocument.IDGT(key.ID))
	}
	if err := applyFilters(query, r); err != nil {
		return nil, err
	}
	limit := limitOf(r.GetLimit())
	rows, err := query.Order(ent.Asc(ruledocument.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &rulesv1.ListRulesResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		response.Rules = append(response.Rules, ruleset.Convert(row))
	}
	return response, nil
}

func limitOf(given int32) int {
	if given == 0 {
		return defaultLimit
	}
	return int(given)
}

// applyFilters applies the request's filters, joined with AND.
func applyFilters(query *ent.RuleDocumentQuery, r *rulesv1.ListRulesRequest) error {
	if len(r.GetProducts()) > 0 {
		query.Where(store.OneOf(ruledocument.FieldProduct, wordsOf(ruleset.Products, r.GetProducts())))
	}
	if len(r.GetModes()) > 0 {
		query.Where(store.OneOf(ruledocument.FieldMode, wordsOf(ruleset.Modes, r.GetModes())))
	}
	if len(r.GetOrigins()) > 0 {
		query.Where(store.OneOf(ruledocument.FieldOrigin, wordsOf(ruleset.Origins, r.GetOrigins())))
	}
	if r.GetLanguage() != "" {
		language, known := document.Language(r.GetLanguage())
		if !known {
			return apierr.InvalidArgument("language", "language must be one of %s, got %s",
				strings.Join(document.Languages(), ", "), apierr.Quote(r.GetLanguage()))
		}
		query.Where(func(s *sql.Selector) { s.Where(sqljson.ValueContains(ruledocument.FieldLanguages, language)) })
	}
	if r.GetQuery() != "" {
		query.Where(ruledocument.NameContainsFold(r.GetQuery()))
	}
	switch {
	case r.Quarantined == nil:
	case r.GetQuarantined():
		query.Where(ruleset.InQuarantine())
	default:
		query.Where(ruledocument.Not(ruleset.InQuarantine()))
	}
	return nil
}

func wordsOf[N comparable](words map[N]string, numbers []N) []string {
	out := make([]string, len(numbers))
	for i, number := range numbers {
		out[i] = words[number]
	}
	return out
}

// GetRule returns one rule with its document and its versions.
func (s *Rules) GetRule(ctx context.Context, r *rulesv1.GetRuleRequest) (*rulesv1.GetRuleResponse, error) {
	if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
		return nil, err
	}
	row, err := find(ctx, s.store.Reader, r.GetRuleName())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.RuleVersion.Query().Where(ruleversion.RuleDocumentID(row.ID)).Order(ent.Desc(ruleversion.FieldVersion)).Limit(maxShownVersions)
	query.Select(ruleversion.FieldID, ruleversion.FieldVersion, ruleversion.FieldDigest, ruleversion.FieldCreatedAt)
	versions, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	response := &rulesv1.GetRuleResponse{Rule: ruleset.Convert(row)}
	for _, version := range versions {
		response.Versions = append(response.Versions, &rulesv1.RuleDocumentVersion{
			Id: version.ID, Version: version.Version, Digest: hex.EncodeToString(version.Digest), CreatedAt: timestamppb.New(store.Time(version.CreatedAt)),
		})
	}
	newest, err := s.store.Reader.RuleVersion.Query().Where(ruleversion.RuleDocumentID(row.ID), ruleversion.Version(row.Version)).Only(ctx)
	if err != nil {
		return nil, err
	}
	response.Document = newest.Document
	return response, nil
}

func find(ctx context.Context, db *ent.Client, name string) (*ent.RuleDocument, error) {
	row, err := db.RuleDocument.Query().Where(ruledocument.Name(name)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, noRule(name)
	}
	return row, err
}

func noRule(name string) error { return apierr.NotFound("rule %s not found", apierr.Quote(name)) }

// UpdateRuleModes changes the modes of rules.
func (s *Rules) UpdateRuleModes(ctx context.Context, r *rulesv1.UpdateRuleModesRequest) (*rulesv1.UpdateRuleModesResponse, error) {
	names := slices.Compact(slices.Sorted(slices.Values(r.GetNames())))
	var response *rulesv1.UpdateRuleModesResponse
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		response = &rulesv1.UpdateRuleModesResponse{}
		now, err := ruleset.BeginChange(ctx, s.store, tx)
		if err != nil {
			return err
		}
		rows, err := tx.RuleDocument.Query().Where(store.OneOf(ruledocument.FieldName, names)).All(ctx)
		if err != nil {
			return err
		}
		byName := make(map[string]*ent.RuleDocument, len(rows))
		for _, row := range rows {
			byName[row.Name] = row
		}
		sorted := make([]*ent.RuleDocument, len(names))
		for i, name := range names {
			if sorted[i] = byName[name]; sorted[i] == nil {
				return noRule(name)
			}
		}
		if err := ruleset.SetMode(ctx, tx, sorted, ruleset.Modes[r.GetMode()], now); err != nil {
			return err
		}
		for _, row := range sorted {
			response.Rules = append(response.Rules, ruleset.Convert(row))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// ReleaseRules ends the quarantine of rules.
func (s *Rules) ReleaseRules(ctx context.Context, r *rulesv1.ReleaseRulesRequest) (*rulesv1.ReleaseRulesResponse, error) {
	names := slices.Compact(slices.Sorted(slices.Values(r.GetNames())))
	var response *rulesv1.ReleaseRulesResponse
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		response = &rulesv1.ReleaseRulesResponse{}
		now, err := ruleset.BeginChange(ctx, s.store, tx)
		if err != nil {
			return err
		}
		rows, err := tx.RuleDocument.Query().Where(store.OneOf(ruledocument.FieldName, names)).All(ctx)
		if err != nil {
			return err
		}
		byName := make(map[string]*ent.RuleDocument, len(rows))
		for _, row := range rows {
			byName[row.Name] = row
		}
		for _, name := range names {
			if byName[name] == nil {
				return noRule(name)
			}
			row, err := ruleset.Release(ctx, byName[name], now)
			if err != nil {
				return err
			}
			response.Rules = append(response.Rules, ruleset.Convert(row))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// DeleteRule deletes a rule. Its versions stay, because findings refer to them.
func (s *Rules) DeleteRule(ctx context.Context, r *rulesv1.DeleteRuleRequest) (*rulesv1.DeleteRuleResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := ruleset.BeginChange(ctx, s.store, tx); err != nil {
			return err
		}
		row, err := find(ctx, tx.Client(), r.GetRuleName())
		if err != nil {
			return err
		}
		audit.Change(ctx, ruleset.AuditKind, row.ID, ruleset.Convert(row), nil)
		return tx.RuleDocument.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &rulesv1.DeleteRuleResponse{RuleName: r.GetRuleName()}, nil
}
