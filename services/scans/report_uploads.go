package scans

import (
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/sarif"
)

// maxSkippedShown is how many skipped results a response lists.
const maxSkippedShown = 1000

// UploadOptions set up report uploads.
type UploadOptions struct {
	// SpoolDir is where reports lie while they are read.
	SpoolDir string
	// MaxBytes is the size of a report after decompression.
	MaxBytes int64
	// RedactionKey tells redacted secrets apart without keeping them.
	RedactionKey []byte
	// Ingested counts results by product and outcome (created, updated, …), for metrics.
	Ingested func(product, outcome string, n int)
}

// ReportUploads is the service group "report uploads".
type ReportUploads struct {
	scansv1.UnimplementedReportUploadsServiceServer
	store   *store.Store
	jobs    *jobs.Jobs
	options UploadOptions
}

// NewReportUploads takes reports into the store, and enqueues what large ones cause (see Background).
func NewReportUploads(st *store.Store, queue *jobs.Jobs, o UploadOptions) *ReportUploads {
	return &ReportUploads{store: st, jobs: queue, options: o}
}

// UploadReport reads the whole report before it changes anything, and then stores it in one transaction.
func (s *ReportUploads) UploadReport(stream grpc.ClientStreamingServer[scansv1.UploadReportRequest, scansv1.UploadReportResponse]) error {
	ctx := stream.Context()
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return apierr.InvalidArgument("target", "target is required in the first message; got no message")
	}
	if err != nil {
		return err
	}
	target := first.GetTarget()
	if target == nil {
		return apierr.InvalidArgument("target", "target is required in the first message")
	}
	spooled, err := spool(ctx, s.options, target.GetContentEncoding(), &chunkReader{stream: stream, rest: first.GetChunk()})
	if err != nil {
		return err
	}
	defer spooled.Close()
	limits := sarif.DefaultLimits()
	limits.MaxBytes = s.options.MaxBytes
	report, err := sarif.Open(ctx, spooled, limits, sarif.WithProduct(target.GetProduct()), sarif.WithRedactionKey(s.options.RedactionKey))
	if err != nil {
		return reportError(err)
	}
	response, err := s.ingest(ctx, target, report)
	if err != nil {
		return reportError(err)
	}
	return stream.SendAndClose(response)
}

func (s *ReportUploads) ingest(ctx context.Context, target *scansv1.UploadReportTarget, report *sarif.Report) (*scansv1.UploadReportResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	in := &ingest{
		store:        s.store,
		jobs:         s.jobs,
		deploymentID: deploymentID,
		ref:          gitref.Full(target.GetRef()),
		commit:       target.GetCommit(),
		category:     target.GetCategory(),
		report:       report,
	}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := in.run(ctx, tx, target.GetProject()); err != nil {
			return err
		}
		summary := in.response(target.GetProject())
		summary.SkippedResults = nil
		audit.Change(ctx, "scan", in.scan.ID, nil, summary)
		if in.changed() < statisticsThreshold {
			return nil
		}
		// Last: another import that asks for the same waits until this one is committed.
		return s.jobs.Enqueue(ctx, refreshStatistics{}, nil)
	})
	if err != nil {
		return nil, err
	}
	if s.options.Ingested != nil {
		for outcome, n := range in.counts {
			s.options.Ingested(outcome.product, outcome.what, n)
		}
	}
	return in.response(target.GetProject()), nil
}

// response tells what became of every result.
func (in *ingest) response(project string) *scansv1.UploadReportResponse {
	out := &scansv1.UploadReportResponse{
		ScanId:    in.scan.ID,
		Project:   project,
		Ref:       in.ref,
		Created:   int32(in.total("created")),
		Updated:   int32(in.total("updated")),
		Unchanged: int32(in.total("unchanged")),
		Reopened:  int32(in.total("reopened")),
		Fixed:     int32(in.total("fixed")),
		Skipped:   int32(in.total("skipped")),
	}
	for i, run := range in.report.Runs {
		out.Runs = append(out.Runs, &scansv1.UploadedRun{
			Index:       int32(run.Index),
			Tool:        run.Tool.Name,
			ToolVersion: run.Tool.Version,
			Category:    in.analysis(run).category,
			Product:     run.Product,
			Results:     int32(run.Results),
			Accepted:    int32(run.Results - in.skippedOf[i]),
			Skipped:     int32(in.skippedOf[i]),
			Warnings:    slices.Concat(run.Warnings, in.warningsOf(run)),
			Rejected:    run.Rejected,
		})
	}
	shown := in.skipped[:min(len(in.skipped), maxSkippedShown)]
	for _, skip := range shown {
		out.SkippedResults = append(out.SkippedResults, &scansv1.SkippedResult{
			Run: int32(skip.Run), Index: int32(skip.Index), RuleId: skip.RuleID, Path: skip.Path, Reason: skip.Reason,
		})
	}
	out.SkippedResultsOmitted = out.Skipped - int32(len(shown))
	return out
}

// reportError tells errors of the report from those of the server.
func reportError(err error) error {
	var syntax *sarif.SyntaxError
	var format *sarif.FormatError
	var limit *sarif.LimitError
	switch {
	case errors.As(err, &syntax), errors.As(err, &format):
		return apierr.MalformedReport("%v", err)
	case errors.As(err, &limit):
		return apierr.TooLarge("%v", err)
	}
	return err
}

// chunkReader reads the chunks of an upload as one stream.
type chunkReader struct {
	stream grpc.ClientStreamingServer[scansv1.UploadReportRequest, scansv1.UploadReportResponse]
	rest   []byte
}

func (r *chunkReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		message, err := r.stream.Recv()
		if err != nil {
			return 0, err // io.EOF after the last message
		}
		if message.GetTarget() != nil {
			return 0, apierr.InvalidArgument("target", "target belongs to the first message only")
		}
		r.rest = message.GetChunk()
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func tooLarge(limit int64) error {
	return apierr.TooLarge("the report is larger than %d bytes after decompression; split it, or raise max-upload", limit)
}
