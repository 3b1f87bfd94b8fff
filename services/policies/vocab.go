package policies

import (
	"context"
	"maps"
	"slices"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// GetVocab lists the words of bundles.
func (s *PoliciesV2) GetVocab(_ context.Context, r *policiesv1.GetVocabRequest) (*policiesv1.GetVocabResponse, error) {
	response := &policiesv1.GetVocabResponse{}
	values := func(of string, words ...string) {
		response.ValueEnums = append(response.ValueEnums, &policiesv1.VocabValueEnum{Type: of, Values: words})
	}
	values("filters.mode", remediation.ModeAll, remediation.ModeAny)
	values("condition.mode", remediation.ConditionModes()...)
	switch r.GetProduct() {
	case "remediation":
		for _, kind := range remediation.ConditionTypes() {
			for _, word := range append([]string{kind.Type}, kind.Also...) {
				response.ConditionTypes = append(response.ConditionTypes, &policiesv1.VocabConditionType{Type: word, Description: kind.Description})
				if len(kind.Values) > 0 {
					values(word, append(slices.Clone(kind.Values), slices.Sorted(maps.Keys(kind.OtherValues))...)...)
				}
			}
		}
		for _, kind := range remediation.ActionTypes() {
			for _, word := range append([]string{kind.Type}, kind.Also...) {
				response.ActionTypes = append(response.ActionTypes, &policiesv1.VocabActionType{
					Type: word, Description: kind.Description, Requires: kind.Requires, Optional: kind.Optional,
				})
			}
			for _, key := range slices.Sorted(maps.Keys(kind.Values)) {
				values(kind.Type+"."+key, kind.Values[key]...)
			}
		}
	case "code", "secrets":
		response.DetectionConstraints = &policiesv1.VocabDetectionConstraints{
			RulesetsAccepted: true, ExceptionTypes: []string{ruleset.Include, ruleset.Exclude}, RuleTypes: []string{ruleset.TypeRule, ruleset.TypeRuleset},
		}
		values("rulesets", ruleset.Rulesets...)
	}
	return response, nil
}
