package ingest

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/deployment"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
)

// defaultLimits hold the closes of all findings if there are ten or more, and of more than 60 % of fifty or more.
func defaultLimits() *scansv1.CloseLimits {
	return &scansv1.CloseLimits{Off: new(false), AllOf: new(int32(10)), Share: new(int32(60)), ShareOf: new(int32(50))}
}

// DecodeLimits decodes limits as they are stored with a project or a deployment.
func DecodeLimits(stored []byte) (*scansv1.CloseLimits, error) {
	limits := &scansv1.CloseLimits{}
	if err := proto.Unmarshal(stored, limits); err != nil {
		return nil, fmt.Errorf("limits of closes: %w", err)
	}
	return limits, nil
}

// EffectiveLimits returns the limits in effect, all of them set. Limits of a project take precedence over limits of
// the deployment, and these over the defaults.
func EffectiveLimits(ofProject, ofDeployment []byte) (*scansv1.CloseLimits, error) {
	limits := defaultLimits()
	for _, stored := range [][]byte{ofDeployment, ofProject} {
		own, err := DecodeLimits(stored)
		if err != nil {
			return nil, err
		}
		proto.Merge(limits, own)
	}
	return limits, nil
}

// closeLimits reads the limits of the project.
func (s *session) closeLimits(ctx context.Context) (*scansv1.CloseLimits, error) {
	owner, err := s.tx.Deployment.Query().Where(deployment.ID(s.deploymentID)).Select(deployment.FieldID, deployment.FieldCloseLimits).Only(ctx)
	if err != nil {
		return nil, err
	}
	return EffectiveLimits(s.project.CloseLimits, owner.CloseLimits)
}

// tooMany reports whether the limits hold closes of that many of the open findings.
func tooMany(l *scansv1.CloseLimits, closes, open int) bool {
	return closes >= int(l.GetAllOf()) && closes >= open || open >= int(l.GetShareOf()) && closes*100 > int(l.GetShare())*open
}
