package remediation

import (
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
)

// Stored returns a policy in the words of the request that stored it. A node of an earlier version changes only the
// content: then the words are about an older policy.
func Stored(row *ent.RemediationPolicy) (*policiesv1.RemediationPolicy, error) {
	content, given := &policiesv1.RemediationPolicy{}, &policiesv1.RemediationPolicy{}
	if err := proto.Unmarshal(row.Content, content); err != nil || len(row.Given) == 0 {
		return content, err
	}
	if err := proto.Unmarshal(row.Given, given); err != nil {
		return nil, err
	}
	if !proto.Equal(Canonical(given), content) {
		return content, nil
	}
	return given, nil
}

// Store sets a policy for evaluation, and for answers. It reports whether the words of the request are other ones than
// those of the vocabulary; otherwise it leaves them unset.
func Store(m *ent.RemediationPolicyMutation, policy *policiesv1.RemediationPolicy) (given bool, err error) {
	canonical, options := Canonical(policy), proto.MarshalOptions{Deterministic: true}
	content, err := options.Marshal(canonical)
	if err != nil {
		return false, err
	}
	m.SetContent(content)
	if proto.Equal(canonical, policy) {
		return false, nil
	}
	words, err := options.Marshal(policy)
	m.SetGiven(words)
	return true, err
}
