package chain

import (
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
)

// A NUL is found in every text field, and the error has its path in the form of clients.
func TestRefuseNUL(t *testing.T) {
	t.Parallel()
	policy := func(change func(p *policiesv1.RemediationPolicy)) proto.Message {
		p := &policiesv1.RemediationPolicy{Slug: "fix", Actions: []*policiesv1.RemediationPolicyAction{{}, {Type: "comment", Config: map[string]string{"text": "x"}}}}
		change(p)
		return &policiesv1.ApplyRemediationPoliciesRequest{Bundle: &policiesv1.RemediationPoliciesBundle{Policies: []*policiesv1.RemediationPolicy{p}}}
	}
	for want, request := range map[string]proto.Message{
		"": policy(func(*policiesv1.RemediationPolicy) {}),
		"bundle.policies[0].slug must not contain the character U+0000": policy(func(p *policiesv1.RemediationPolicy) { p.Slug = "a\x00" }),
		`bundle.policies[0].actions[1].config["text"] must not contain the character U+0000`: policy(func(p *policiesv1.RemediationPolicy) {
			p.Actions[1].Config["text"] = "\x00"
		}),
		`bundle.policies[0].actions[1].config["\x00"] must not contain the character U+0000`: policy(func(p *policiesv1.RemediationPolicy) {
			p.Actions[1].Config["\x00"] = "x"
		}),
	} {
		got := ""
		if err := refuseNUL(request); err != nil {
			got = status.Convert(err).Message()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
