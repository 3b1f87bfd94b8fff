package policies

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/rules/document"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// Kinds of objects in the audit trail.
const (
	auditBoard     = "ruleboard"
	auditBoardRule = "ruleboard_rule"
)

// modeSlugs are the words of rule boards for modes (contract, policy modes).
var modeSlugs = map[string]string{
	ruleset.ModeMonitor: "rule-board-audit", ruleset.ModeComment: "rule-board-pr-comments", ruleset.ModeBlock: "rule-board-block",
	ruleset.ModeOff: "disabled",
}

// modeOf converts a word of rule boards, or the name of a mode.
func modeOf(word string) (mode string, known bool) {
	for mode, slug := range modeSlugs {
		if word == slug || word == mode {
			return mode, true
		}
	}
	return "", false
}

func (m boardModes) message(item boardItem) proto.Message {
	if m[item] == "" {
		return nil
	}
	return boardRule(item, m[item])
}

func boardRule(item boardItem, mode string) *policiesv1.RuleboardRule {
	return &policiesv1.RuleboardRule{Policy: modeSlugs[mode], Item: &policiesv1.RuleItem{Id: item.rule, Type: item.ruleType}}
}

func noteMode(ctx context.Context, b board, item boardItem, before, after boardModes) {
	audit.Change(ctx, auditBoardRule, strings.Join([]string{b.slug, item.ruleType, item.rule}, "/"), before.message(item), after.message(item))
}

// overview converts a board with its projects.
func (b board) overview(projects []string) *policiesv1.RuleboardOverview {
	return &policiesv1.RuleboardOverview{Name: b.name, Slug: b.slug, Default: b.isDefault(), AssignedRepos: projects}
}

// policy converts a board to a policy of the deprecated API.
func (b board) policy() *policiesv1.Policy {
	product := policiesv1.ProductType_PRODUCT_TYPE_SAST
	if b.product == document.ProductSecrets {
		product = policiesv1.ProductType_PRODUCT_TYPE_SECRETS
	}
	return &policiesv1.Policy{Id: b.id, IsDefault: b.isDefault(), Name: b.name, ProductType: product, Slug: b.slug}
}
