package policies

import (
	"fmt"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/policies/remediation"
)

// blocksEverything is the code of the warning about a policy that leaves no finding out.
const blocksEverything = "BLOCKS_EVERYTHING"

// warnings names the active policies that block each scan with a finding.
func warnings(bundle []*policiesv1.RemediationPolicy) (list []*policiesv1.BundleWarning) {
	for _, policy := range bundle {
		if remediation.BlocksEverything(policy) {
			list = append(list, &policiesv1.BundleWarning{
				Code: blocksEverything, PolicySlug: policy.GetSlug(),
				Message: fmt.Sprintf("policy %s fails every scan with a finding: it has no condition, or none that leaves a finding out", apierr.Quote(policy.GetSlug())),
			})
		}
	}
	return list
}
