package export

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/grpc"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/exportfile"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/tasktoken"
)

// Exports is the service group "exports".
type Exports struct {
	findingsv1.UnimplementedExportsServiceServer
	store   *store.Store
	starter exportfile.Starter
}

// NewExports starts exports and serves their files.
func NewExports(st *store.Store, queue *jobs.Jobs, tasks *tasktoken.Tokens) *Exports {
	return &Exports{store: st, starter: exportfile.Starter{Store: st, Jobs: queue, Tokens: tasks}}
}

// Start starts an export. It is the operation ExportIssues.
func (s *Exports) Start(ctx context.Context, r *findingsv1.ExportIssuesRequest) (*findingsv1.ExportIssuesResponse, error) {
	if _, err := issuefilter.WhereOfAll(ctx, r.GetFilter(), time.Now()); err != nil {
		return nil, err
	}
	token, err := s.starter.Start(ctx, names[r.GetFormat()], r, func(deploymentID, exportID int64) river.JobArgs {
		return args{DeploymentID: deploymentID, ExportID: exportID}
	})
	return &findingsv1.ExportIssuesResponse{TaskTokenJwt: token}, err
}

// DownloadExport streams the file of an export of the caller.
func (s *Exports) DownloadExport(r *findingsv1.DownloadExportRequest, stream grpc.ServerStreamingServer[findingsv1.DownloadExportResponse]) error {
	ctx := stream.Context()
	row, err := exportfile.Find(ctx, s.store, r.GetExportId())
	if err != nil {
		return err
	}
	if r.GetOffset() > row.ByteCount {
		return apierr.InvalidArgument("offset", "offset: got %d, the file has %d bytes", r.GetOffset(), row.ByteCount)
	}
	err = stream.Send(&findingsv1.DownloadExportResponse{File: &findingsv1.ExportedFile{
		Name: exportfile.Name(row), MediaType: exportfile.MediaType(row.Format), Size: row.ByteCount, Sha256: hex.EncodeToString(row.Sha256),
		CompletedAt: store.Timestamp(row.CompletedAt),
	}})
	if err != nil {
		return err
	}
	end := row.ByteCount
	if r.Limit != nil {
		end = min(end, r.GetOffset()+min(r.GetLimit(), end))
	}
	return exportfile.Read(ctx, s.store, row, r.GetOffset(), end, func(chunk []byte) error {
		return stream.Send(&findingsv1.DownloadExportResponse{Chunk: chunk})
	})
}
