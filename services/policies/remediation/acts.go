package remediation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/palisade/palisade/ent"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
)

// Act is an action that a job does: notify, ticket or set_state.
type Act struct {
	Type   string
	Config map[string]string
}

// ID returns the id of a stored policy.
func (p *Policy) ID() int64 { return p.id }

// UpdatedAt is the time of the policy's last change in microseconds since 1970.
func (p *Policy) UpdatedAt() int64 { return p.updatedAt }

// Acts returns the actions that jobs do.
func (p *Policy) Acts() []Act { return p.acts }

// Version is a hash of the filters and actions of a policy with Acts. What it has done counts for this version only.
func (p *Policy) Version() string { return p.version }

// LoadActing reads the active policies of the context's deployment that have actions for jobs.
func LoadActing(ctx context.Context, reader *ent.Client) ([]Policy, error) {
	policies, err := Load(ctx, reader)
	return slices.DeleteFunc(policies, func(p Policy) bool { return len(p.acts) == 0 }), err
}

func versionOf(p *policiesv1.RemediationPolicy) string {
	sum := sha256.New()
	WriteBehaviour(sum, p)
	return hex.EncodeToString(sum.Sum(nil))
}

// WriteBehaviour writes the filters and actions of a policy for a hash. It encodes fields one by one with their
// lengths, because protobuf's wire format is not canonical.
func WriteBehaviour(out io.Writer, p *policiesv1.RemediationPolicy) {
	number := func(n int) { _, _ = fmt.Fprintf(out, "%d;", n) }
	WriteTexts(out, p.GetFilters().GetMode())
	number(len(p.GetFilters().GetConditions()))
	for _, c := range p.GetFilters().GetConditions() {
		WriteTexts(out, c.GetType(), c.GetMode())
		number(len(c.GetValues()))
		WriteTexts(out, c.GetValues()...)
	}
	number(len(p.GetActions()))
	for _, a := range p.GetActions() {
		WriteTexts(out, a.GetType())
		number(len(a.GetConfig()))
		for _, key := range slices.Sorted(maps.Keys(a.GetConfig())) {
			WriteTexts(out, key, a.GetConfig()[key])
		}
	}
}

// WriteTexts writes texts with their lengths for a hash.
func WriteTexts(out io.Writer, texts ...string) {
	for _, text := range texts {
		_, _ = fmt.Fprintf(out, "%d:%s", len(text), text)
	}
}
