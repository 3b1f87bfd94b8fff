package deployments

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
)

// features lists the features of this build beyond the first release. Ids are never reused.
var features = []struct {
	id    int64
	name  string
	since time.Time
}{
	{1, "sarif-uploads", time.Date(2026, time.November, 20, 0, 0, 0, 0, time.UTC)},
	{2, "triage", time.Date(2026, time.November, 20, 0, 0, 0, 0, time.UTC)},
	{3, "secrets", time.Date(2026, time.November, 20, 0, 0, 0, 0, time.UTC)},
	{4, "teams", time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)},
	{5, "source-code-hosts", time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)},
	{6, "triage-via-comment", time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)},
	{7, "package-managers", time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)},
	{8, "notification-rules", time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)},
	{9, "audit-trail", time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC)},
}

// FeatureRollouts is the service group "feature rollouts".
type FeatureRollouts struct {
	deploymentsv1.UnimplementedFeatureRolloutsServiceServer
}

// ListAvailableFeatureRollouts lists the features of this build.
func (FeatureRollouts) ListAvailableFeatureRollouts(context.Context, *deploymentsv1.ListAvailableFeatureRolloutsRequest) (*deploymentsv1.ListAvailableFeatureRolloutsResponse, error) {
	response := &deploymentsv1.ListAvailableFeatureRolloutsResponse{}
	for _, f := range features {
		response.Features = append(response.Features, &deploymentsv1.FeatureRollout{
			Id: f.id, Name: f.name, RolledOut: true, RolledOutAt: timestamppb.New(f.since),
		})
	}
	return response, nil
}
