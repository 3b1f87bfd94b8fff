package policies

import (
	"context"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/policies/remediation"
)

// GetVocab lists the words of bundles.
func (s *PoliciesV2) GetVocab(_ context.Context, r *policiesv1.GetVocabRequest) (*policiesv1.GetVocabResponse, error) {
	response := &policiesv1.GetVocabResponse{}
	values := func(of string, words ...string) {
		response.ValueEnums = append(response.ValueEnums, &policiesv1.VocabValueEnum{Type: of, Values: words})
	}
	values("filters.mode", remediation.ModeAll, remediation.ModeAny)
	values("condition.mode", remediation.ModeInclude, remediation.ModeExclude)
	switch r.GetProduct() {
	case "remediation":
		for _, kind := range remediation.ConditionTypes() {
			response.ConditionTypes = append(response.ConditionTypes, &policiesv1.VocabConditionType{Type: kind.Type, Description: kind.Description})
			if len(kind.Values) > 0 {
				values(kind.Type, kind.Values...)
			}
		}
		for _, kind := range remediation.ActionTypes() {
			response.ActionTypes = append(response.ActionTypes, &policiesv1.VocabActionType{Type: kind.Type, Description: kind.Description, Requires: kind.Requires})
		}
	case "code", "secrets":
		// Each rule has its own mode (rules of the deployment), so bundles contain nothing for detection.
		response.DetectionConstraints = &policiesv1.VocabDetectionConstraints{}
	}
	return response, nil
}
