package policies

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/remediationpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/policies/remediation"
)

// kindPolicy is the kind of each entry of a difference.
const kindPolicy = "remediation_policy"

// state holds the policies of a deployment at one time.
type state struct {
	rows     []*ent.RemediationPolicy
	policies []*policiesv1.RemediationPolicy
	bySlug   map[string]*policiesv1.RemediationPolicy
	version  string
	partial  bool // policies lack what the caller does not see
}

// load reads the policies of the context's deployment in one query.
func load(ctx context.Context, reader *ent.Client) (*state, error) {
	rows, err := reader.RemediationPolicy.Query().Order(ent.Asc(remediationpolicy.FieldPosition), ent.Asc(remediationpolicy.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	stored := make([]*policiesv1.RemediationPolicy, len(rows))
	for i, row := range rows {
		if stored[i], err = remediation.Stored(row); err != nil {
			return nil, fmt.Errorf("remediation policy %s: %w", row.Slug, err)
		}
	}
	s := newState(stored)
	s.rows = rows
	return s, nil
}

// newState builds a state from policies, in their order.
func newState(policies []*policiesv1.RemediationPolicy) *state {
	s := &state{policies: policies, bySlug: map[string]*policiesv1.RemediationPolicy{}}
	for _, policy := range policies {
		s.bySlug[policy.GetSlug()] = policy
	}
	s.version = version(policies)
	return s
}

func (s *state) bundle(deploymentSlug string) *policiesv1.RemediationPoliciesBundle {
	return &policiesv1.RemediationPoliciesBundle{DeploymentSlug: deploymentSlug, Policies: s.policies, Partial: s.partial}
}

// version is a hash of the policies, independent of their order: if a dry run finds no difference, the versions are
// equal.
func version(policies []*policiesv1.RemediationPolicy) string {
	sum := sha256.New()
	for _, p := range slices.SortedFunc(slices.Values(policies), bySlug) {
		remediation.WriteTexts(sum, p.GetSlug(), p.GetName(), p.GetDescription(), fmt.Sprint(p.GetActive()))
		remediation.WriteBehaviour(sum, p)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// compare fills the lists of a dry run, each sorted by slug.
func (s *state) compare(wanted []*policiesv1.RemediationPolicy, into *policiesv1.DryRunRemediationPoliciesResponse) {
	entry := func(slug string, before, after *policiesv1.RemediationPolicy) *policiesv1.RemediationPolicyDiffEntry {
		return &policiesv1.RemediationPolicyDiffEntry{
			Kind: kindPolicy, Key: &policiesv1.RemediationPolicyDiffKey{Slug: slug}, Before: before, After: after,
		}
	}
	kept := map[string]bool{}
	for _, after := range slices.SortedFunc(slices.Values(wanted), bySlug) {
		slug := after.GetSlug()
		kept[slug] = true
		switch before := s.bySlug[slug]; {
		case before == nil:
			into.Creates = append(into.Creates, entry(slug, nil, after))
		case !proto.Equal(before, after):
			into.Updates = append(into.Updates, entry(slug, before, after))
		}
	}
	for _, before := range slices.SortedFunc(slices.Values(s.policies), bySlug) {
		if slug := before.GetSlug(); !kept[slug] {
			into.Deletes = append(into.Deletes, entry(slug, before, nil))
		}
	}
}

func bySlug(a, b *policiesv1.RemediationPolicy) int { return cmp.Compare(a.GetSlug(), b.GetSlug()) }

func sortedKeys(of map[string]string) []string {
	keys := make([]string, 0, len(of))
	for key := range of {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
