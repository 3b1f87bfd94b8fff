package policies

import (
	"context"
	"maps"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ruleboard"
	"github.com/palisade/palisade/ent/ruleboardproject"
	"github.com/palisade/palisade/ent/ruleboardrule"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/document"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// maxBoards is the maximum number of stored boards of a deployment.
const maxBoards = 200

// Ruleboards is the service group "ruleboards".
type Ruleboards struct {
	policiesv1.UnimplementedRuleboardServiceServer
	store *store.Store
}

// NewRuleboards serves boards from the store.
func NewRuleboards(st *store.Store) *Ruleboards { return &Ruleboards{store: st} }

// boardProducts are the products of boards.
var boardProducts = map[policiesv1.RuleboardType]string{
	policiesv1.RuleboardType_RULEBOARD_TYPE_UNSPECIFIED: document.ProductSAST,
	policiesv1.RuleboardType_RULEBOARD_TYPE_SAST:        document.ProductSAST,
	policiesv1.RuleboardType_RULEBOARD_TYPE_SECRETS:     document.ProductSecrets,
}

// CreateRuleboard creates a board.
func (s *Ruleboards) CreateRuleboard(ctx context.Context, r *policiesv1.CreateRuleboardRequest) (*policiesv1.CreateRuleboardResponse, error) {
	slug := slugOf(r.GetName())
	if err := checkSlug(slug, r.GetName()); err != nil {
		return nil, err
	}
	response := &policiesv1.CreateRuleboardResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := ruleset.BeginChange(ctx, s.store, tx)
		if err != nil {
			return err
		}
		others, err := tx.Ruleboard.Query().All(ctx)
		if err != nil {
			return err
		}
		for _, other := range others {
			if other.Slug == slug {
				return apierr.AlreadyExists("there is another rule board with the slug %s", apierr.Quote(slug))
			}
		}
		if len(others) >= maxBoards {
			return apierr.FailedPrecondition("the deployment has %d rule boards, at most %d are allowed: delete one first", len(others), maxBoards)
		}
		row, err := tx.Ruleboard.Create().SetSlug(slug).SetName(strings.TrimSpace(r.GetName())).SetProduct(boardProducts[r.GetType()]).
			SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		if err != nil {
			return err
		}
		b := boardOf(row)
		names, err := b.assign(ctx, tx, r.GetAssignedRepos())
		if err != nil {
			return err
		}
		after := b.overview(names)
		audit.Change(ctx, auditBoard, slug, nil, after)
		response = &policiesv1.CreateRuleboardResponse{
			Name: after.GetName(), Slug: slug, Default: after.GetDefault(), AssignedRepos: names,
		}
		return touchRules(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// checkSlug refuses the slug of a name.
func checkSlug(slug, name string) error {
	switch {
	case slug == "":
		return apierr.InvalidArgument("name", "name must have a letter or a digit, which the slug is made of, got %s", apierr.Quote(name))
	case strings.HasPrefix(slug, reservedPrefix), slug == defaultBoards[0].slug, slug == defaultBoards[1].slug:
		return apierr.New(codes.AlreadyExists, errorsv1.Reason_REASON_RESERVED_SLUG, "the slug "+apierr.Quote(slug)+" is reserved: choose another name")
	}
	return nil
}

// touchRules makes lists of findings read the boards of projects again.
func touchRules(ctx context.Context, tx *ent.Tx) error {
	return tx.Deployment.Update().AddCatalogRevision(1).Exec(ctx)
}

// ListRuleboards lists boards.
func (s *Ruleboards) ListRuleboards(ctx context.Context, r *policiesv1.ListRuleboardsRequest) (*policiesv1.ListRuleboardsResponse, error) {
	boards, err := loadBoards(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	projects, err := assignedNames(ctx, s.store.Reader, boards)
	if err != nil {
		return nil, err
	}
	response := &policiesv1.ListRuleboardsResponse{}
	for _, b := range boards {
		if r.GetType() == policiesv1.RuleboardType_RULEBOARD_TYPE_UNSPECIFIED || boardProducts[r.GetType()] == b.product {
			response.Ruleboards = append(response.Ruleboards, b.overview(projects[b.rowID]))
		}
	}
	return response, nil
}

// DeleteRuleboard deletes a board.
func (s *Ruleboards) DeleteRuleboard(ctx context.Context, r *policiesv1.DeleteRuleboardRequest) (*policiesv1.DeleteRuleboardResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := ruleset.BeginChange(ctx, s.store, tx); err != nil {
			return err
		}
		b, err := boardBySlug(ctx, tx.Client(), r.GetRuleboardSlug())
		if err != nil {
			return err
		}
		if b.isDefault() {
			return errDefault(b, "deleted")
		}
		projects, err := assignedNames(ctx, tx.Client(), []board{b})
		if err != nil {
			return err
		}
		audit.Change(ctx, auditBoard, b.slug, b.overview(projects[b.rowID]), nil)
		if _, err := tx.RuleboardProject.Delete().Where(ruleboardproject.RuleboardID(b.rowID)).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.RuleboardRule.Delete().Where(ruleboardrule.RuleboardID(b.rowID)).Exec(ctx); err != nil {
			return err
		}
		if _, err := tx.Ruleboard.Delete().Where(ruleboard.ID(b.rowID)).Exec(ctx); err != nil {
			return err
		}
		return touchRules(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	return &policiesv1.DeleteRuleboardResponse{}, nil
}

func errDefault(b board, done string) error {
	return apierr.FailedPrecondition("the rule board %s is a default board: it cannot be %s", apierr.Quote(b.slug), done)
}

// GetRuleboard lists the items of a board.
func (s *Ruleboards) GetRuleboard(ctx context.Context, r *policiesv1.GetRuleboardRequest) (*policiesv1.GetRuleboardResponse, error) {
	if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
		return nil, err
	}
	b, err := boardBySlug(ctx, s.store.Reader, r.GetRuleboardSlug())
	if err != nil {
		return nil, err
	}
	modes, err := b.modes(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	rows, err := b.rules(ctx, s.store.Reader)
	return &policiesv1.GetRuleboardResponse{Rules: modes.list(rows)}, err
}

// list returns the rulesets of a board, and all rules with their modes.
func (m boardModes) list(rows []*ent.RuleDocument) (list []*policiesv1.RuleboardRule) {
	for _, item := range m.sorted() {
		if item.ruleType == ruleset.TypeRuleset {
			list = append(list, boardRule(item, m[item]))
		}
	}
	for _, row := range rows {
		list = append(list, boardRule(boardItem{ruleset.TypeRule, row.Name}, m.of(row)))
	}
	return list
}

// UpdateRuleboard changes modes.
func (s *Ruleboards) UpdateRuleboard(ctx context.Context, r *policiesv1.UpdateRuleboardRequest) (*policiesv1.UpdateRuleboardResponse, error) {
	if err := ruleset.EnsureStarter(ctx, s.store); err != nil {
		return nil, err
	}
	response := &policiesv1.UpdateRuleboardResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		now, err := ruleset.BeginChange(ctx, s.store, tx)
		if err != nil {
			return err
		}
		b, err := boardBySlug(ctx, tx.Client(), r.GetRuleboardSlug())
		if err != nil {
			return err
		}
		rows, err := b.rules(ctx, tx.Client())
		if err != nil {
			return err
		}
		before, err := b.modes(ctx, tx.Client())
		if err != nil {
			return err
		}
		after := maps.Clone(before)
		for i, change := range r.GetChanges() {
			if err := b.change(i, change, after, rows); err != nil {
				return err
			}
		}
		if b.isDefault() {
			err = after.move(ctx, tx, rows, now)
			after = before
		} else {
			err = b.replaceModes(ctx, tx, before, after, now)
		}
		response.Rules = after.list(rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// move gives the modes to the rules themselves.
func (m boardModes) move(ctx context.Context, tx *ent.Tx, rows []*ent.RuleDocument, now int64) error {
	changed := map[string][]*ent.RuleDocument{}
	for _, row := range rows {
		changed[m.of(row)] = append(changed[m.of(row)], row)
	}
	for _, mode := range []string{ruleset.ModeMonitor, ruleset.ModeComment, ruleset.ModeBlock, ruleset.ModeOff} {
		if err := ruleset.SetMode(ctx, tx, changed[mode], mode, now); err != nil {
			return err
		}
	}
	return nil
}
