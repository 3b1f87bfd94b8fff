package rules

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/rulealias"
	rulesv1 "github.com/palisade/palisade/gen/palisade/rules/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/automations"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/rules/ruleset"
)

const auditAlias = "rule_alias"

// CreateRuleAlias stores a former name. Aliases are flat: none points to another, so that one lookup resolves a name.
func (s *Rules) CreateRuleAlias(ctx context.Context, r *rulesv1.CreateRuleAliasRequest) (*rulesv1.CreateRuleAliasResponse, error) {
	response := &rulesv1.CreateRuleAliasResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := ruleset.BeginChange(ctx, s.store, tx)
		if err != nil {
			return err
		}
		canonical, err := resolve(ctx, tx, r)
		if err != nil {
			return err
		}
		row, err := tx.RuleAlias.Create().SetTool(r.GetTool()).SetName(r.GetName()).SetCanonical(canonical).SetSource("user").SetCreatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		response.Alias = convertAlias(row)
		audit.Change(ctx, auditAlias, row.ID, nil, response.GetAlias())
		if err := redirect(ctx, tx, r.GetTool(), r.GetName(), canonical); err != nil {
			return err
		}
		if err := automations.AddRuleName(ctx, s.store, tx, r.GetName(), canonical); err != nil {
			return err
		}
		return remediation.Renaming{Of: remediation.RefRule, From: r.GetName(), To: canonical, Shared: true}.Apply(ctx, s.store, tx)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// resolve finds the target of the present name. It rejects a taken name and a name that would point to itself.
func resolve(ctx context.Context, tx *ent.Tx, r *rulesv1.CreateRuleAliasRequest) (canonical string, err error) {
	known, err := tx.RuleAlias.Query().Where(rulealias.Tool(r.GetTool()), rulealias.NameIn(r.GetName(), r.GetCanonical())).All(ctx)
	if err != nil {
		return "", err
	}
	canonical = r.GetCanonical()
	for _, alias := range known {
		if alias.Name == r.GetCanonical() {
			canonical = alias.Canonical
		}
	}
	if canonical == r.GetName() {
		return "", apierr.InvalidArgument("canonical", "canonical must not lead back to the former name %s of %s: %s does",
			apierr.Quote(r.GetName()), apierr.Quote(r.GetTool()), apierr.Quote(r.GetCanonical()))
	}
	for _, alias := range known {
		if alias.Name == r.GetName() {
			return "", apierr.AlreadyExists("%s of %s is an alias already, of %s: delete it first",
				apierr.Quote(r.GetName()), apierr.Quote(r.GetTool()), apierr.Quote(alias.Canonical))
		}
	}
	return canonical, nil
}

// redirect updates the aliases that point to a name that is now an alias itself.
func redirect(ctx context.Context, tx *ent.Tx, tool, from, to string) error {
	rows, err := tx.RuleAlias.Query().Where(rulealias.Tool(tool), rulealias.Canonical(from)).Order(ent.Asc(rulealias.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		before := convertAlias(row)
		after, err := row.Update().SetCanonical(to).Save(ctx)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditAlias, row.ID, before, convertAlias(after))
	}
	return nil
}

// ListRuleAliases lists aliases, oldest first.
func (s *Rules) ListRuleAliases(ctx context.Context, r *rulesv1.ListRuleAliasesRequest) (*rulesv1.ListRuleAliasesResponse, error) {
	filter := proto.CloneOf(r)
	filter.Cursor, filter.Limit = "", 0
	digest, err := page.DigestOf("rule aliases", filter)
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.RuleAlias.Query()
	if continued {
		query.Where(rulealias.IDGT(key.ID))
	}
	if r.GetTool() != "" {
		query.Where(rulealias.Tool(r.GetTool()))
	}
	if r.GetCanonical() != "" {
		query.Where(rulealias.Canonical(r.GetCanonical()))
	}
	limit := limitOf(r.GetLimit())
	rows, err := query.Order(ent.Asc(rulealias.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &rulesv1.ListRuleAliasesResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		response.Aliases = append(response.Aliases, convertAlias(row))
	}
	return response, nil
}

// DeleteRuleAlias deletes a former name.
func (s *Rules) DeleteRuleAlias(ctx context.Context, r *rulesv1.DeleteRuleAliasRequest) (*rulesv1.DeleteRuleAliasResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.RuleAlias.Get(ctx, r.GetAliasId())
		if ent.IsNotFound(err) {
			return apierr.NotFound("rule alias %d not found", r.GetAliasId())
		}
		if err != nil {
			return err
		}
		audit.Change(ctx, auditAlias, row.ID, convertAlias(row), nil)
		return tx.RuleAlias.DeleteOneID(row.ID).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &rulesv1.DeleteRuleAliasResponse{AliasId: r.GetAliasId()}, nil
}

func convertAlias(row *ent.RuleAlias) *rulesv1.RuleAlias {
	source := rulesv1.RuleAliasSource_RULE_ALIAS_SOURCE_USER
	if row.Source == "report" {
		source = rulesv1.RuleAliasSource_RULE_ALIAS_SOURCE_REPORT
	}
	return &rulesv1.RuleAlias{
		Id: row.ID, Tool: row.Tool, Name: row.Name, Canonical: row.Canonical, Source: source, CreatedAt: timestamppb.New(store.Time(row.CreatedAt)),
	}
}
