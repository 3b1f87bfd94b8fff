package findings

import (
	"google.golang.org/grpc"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/feed"
)

// FindingChanges is the service group "finding changes".
type FindingChanges struct {
	findingsv1.UnimplementedFindingChangesServiceServer
	feed *feed.Feed
}

// NewFindingChanges serves the change feed.
func NewFindingChanges(f *feed.Feed) *FindingChanges { return &FindingChanges{feed: f} }

// WatchFindings streams the changes of findings.
func (s *FindingChanges) WatchFindings(r *findingsv1.WatchFindingsRequest, stream grpc.ServerStreamingServer[findingsv1.WatchFindingsResponse]) error {
	return s.feed.Watch(stream.Context(), r, stream.Send)
}
