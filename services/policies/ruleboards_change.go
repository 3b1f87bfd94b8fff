package policies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/palisade/palisade/ent"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// Types of changes.
const (
	changeAdd    = "add"
	changeUpdate = "update"
	changeRemove = "remove"
	changeReset  = "reset"
)

// change applies one change to modes.
func (b board) change(i int, change *policiesv1.RuleboardChange, modes boardModes, rows []*ent.RuleDocument) error {
	place := fmt.Sprintf("changes[%d]", i)
	item, err := b.item(place+".item", change.GetItem(), rows)
	if err != nil {
		return err
	}
	mode := ""
	switch kind := strings.ToLower(change.GetUpdateType()); kind {
	case changeAdd, changeUpdate, "":
		known := false
		if mode, known = modeOf(change.GetPolicy()); !known {
			return apierr.InvalidArgument(place+".policy", "%s.policy must be one of rule-board-audit, rule-board-pr-comments, rule-board-block, disabled, monitor, comment, block, off; got %s",
				place, apierr.Quote(change.GetPolicy()))
		}
	case changeRemove:
		mode = ruleset.ModeOff
	case changeReset:
		if b.isDefault() {
			return apierr.InvalidArgument(place+".update_type", "%s.update_type must not be reset on a default board", place)
		}
	default:
		return apierr.InvalidArgument(place+".update_type", "%s.update_type must be one of add, update, remove, reset; got %s", place, apierr.Quote(kind))
	}
	if b.isDefault() && item.ruleType == ruleset.TypeRuleset {
		// Every rule has a mode of its own here.
		for _, row := range rows {
			if item.rule == ruleset.AllRules || item.rule == row.Origin {
				modes[boardItem{ruleset.TypeRule, row.Name}] = mode
			}
		}
		return nil
	}
	if mode == "" {
		delete(modes, item)
	} else {
		modes[item] = mode
	}
	return nil
}

// item finds the rule or ruleset of a change.
func (b board) item(place string, from *policiesv1.RuleItem, rows []*ent.RuleDocument) (boardItem, error) {
	switch from.GetType() {
	case ruleset.TypeRuleset:
		if !slices.Contains(ruleset.Rulesets, from.GetId()) {
			return boardItem{}, apierr.InvalidArgument(place+".id", "%s.id: there is no ruleset %s: there are %s", place, apierr.Quote(from.GetId()),
				strings.Join(ruleset.Rulesets, ", "))
		}
		return boardItem{ruleset.TypeRuleset, from.GetId()}, nil
	case ruleset.TypeRule, "":
		for _, row := range rows {
			if row.Name == from.GetId() {
				return boardItem{ruleset.TypeRule, row.Name}, nil
			}
		}
		for _, row := range rows {
			if strconv.FormatInt(row.ID, 10) == from.GetId() {
				return boardItem{ruleset.TypeRule, row.Name}, nil
			}
		}
		return boardItem{}, apierr.InvalidArgument(place+".id", "%s.id: the rule board %s has no rule %s", place, apierr.Quote(b.slug), apierr.Quote(from.GetId()))
	}
	return boardItem{}, apierr.InvalidArgument(place+".type", "%s.type must be rule or ruleset; got %s", place, apierr.Quote(from.GetType()))
}
