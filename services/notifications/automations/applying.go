package automations

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/blocking"
)

// Applying returns the slugs of the policies that apply to findings of a scan that has ended, by the id of the finding.
// It is the decision of the jobs that do the actions of policies.
func Applying(
	ctx context.Context, db *ent.Client, of *ent.Scan, policies []remediation.Policy, findings []int64,
) (map[int64][]string, error) {
	load, err := newLoader(ctx, db, &event{scan: of}, policies)
	if err != nil {
		return nil, err
	}
	slugs := map[int64][]string{}
	for ids := range slices.Chunk(findings, findingsAtOnce) {
		subjects, err := load.load(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, s := range subjects {
			for i := range policies {
				if s.under(&policies[i]) {
					slugs[s.ID] = append(slugs[s.ID], policies[i].Slug())
				}
			}
		}
	}
	return slugs, nil
}

// under reports whether a policy applies to the finding.
func (s *subject) under(policy *remediation.Policy) bool {
	return !s.covered && blocking.Counts(s.Finding, s.uploaded) && policy.Applies(&s.facts)
}
