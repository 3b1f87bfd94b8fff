package policies

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automation"
	notificationsv1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/policies/remediation"
)

// blocksEverything is the code of the warning about a policy that leaves no finding out.
const blocksEverything = "BLOCKS_EVERYTHING"

// namedByAutomation is the code of the warning about an automation that stops.
const namedByAutomation = "NAMED_BY_AUTOMATION"

// stopped names the active automations whose conditions name a policy that is active now, and not in the bundle. They
// do nothing from then on.
func stopped(ctx context.Context, db *ent.Client, now, wanted []*policiesv1.RemediationPolicy) (list []*policiesv1.BundleWarning, err error) {
	ends := activeSlugs(now)
	for slug := range activeSlugs(wanted) {
		delete(ends, slug)
	}
	if len(ends) == 0 {
		return nil, nil
	}
	rows, err := db.Automation.Query().Where(automation.Active(true)).Order(ent.Asc(automation.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		content := &notificationsv1.Automation{}
		if err := proto.Unmarshal(row.Content, content); err != nil {
			return nil, fmt.Errorf("automation %d: %w", row.ID, err)
		}
		for _, condition := range content.GetFilters().GetConditions() {
			if condition.GetType() != notificationsv1.ConditionType_CONDITION_TYPE_POLICY {
				continue
			}
			for _, slug := range condition.GetValues() {
				if ends[slug] {
					list = append(list, &policiesv1.BundleWarning{Code: namedByAutomation, PolicySlug: slug, Message: fmt.Sprintf(
						"automation %d (%s) names policy %s, which is no longer active: the automation does nothing until it is changed",
						row.ID, apierr.Quote(row.Name), apierr.Quote(slug))})
				}
			}
		}
	}
	return list, nil
}

func activeSlugs(policies []*policiesv1.RemediationPolicy) map[string]bool {
	slugs := map[string]bool{}
	for _, policy := range policies {
		if policy.GetActive() {
			slugs[policy.GetSlug()] = true
		}
	}
	return slugs
}

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
