package scans

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/traffic"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/sarif"
)

// maxSkippedShown is how many skipped results a response lists.
const maxSkippedShown = 1000

// UploadOptions set up report uploads.
type UploadOptions struct {
	// Spool holds reports while they are read.
	Spool *spool.Spool
	// MaxBytes is the size of a report after decompression.
	MaxBytes int64
	// RedactionKey tells redacted secrets apart without keeping them.
	RedactionKey []byte
	// Ingested counts results by product and outcome (created, updated, …), for metrics.
	Ingested func(product, outcome string, n int)
	// Calls go before the reading and storing of results.
	Calls *traffic.Calls
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

// UploadReport reads the whole report, twice, before it changes anything, and then stores it in one transaction.
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
	if err := checkRef("ref", target.GetRef(), gitref.Full(target.GetRef())); err != nil {
		return err
	}
	spooled, err := receive(ctx, s.options, target.GetContentEncoding(), &chunkReader{stream: stream, rest: first.GetChunk()})
	if err != nil {
		return err
	}
	defer spooled.Close()
	limits := sarif.DefaultLimits()
	limits.MaxBytes = s.options.MaxBytes
	polite := &politeReader{ctx, s.options.Calls.Beside(), spooled}
	src := struct {
		io.Reader
		io.Seeker
	}{polite, spooled}
	report, err := sarif.Open(ctx, src, limits, sarif.WithProduct(target.GetProduct()), sarif.WithRedactionKey(s.options.RedactionKey))
	if err != nil {
		return reportError(err)
	}
	polite.work = new(traffic.Work) // who reads the results gives way between them: see aheadOf
	response, err := s.ingest(ctx, target, report)
	if err != nil {
		return reportError(err)
	}
	return stream.SendAndClose(response)
}

// upload is one report on its way in.
type upload struct {
	target  *scansv1.UploadReportTarget
	source  *sarifSource
	results *ingest.Reading
	scan    *ent.Scan
	result  *ingest.Summary
	project string // its name, as it is stored
}

func (s *ReportUploads) ingest(ctx context.Context, target *scansv1.UploadReportTarget, report *sarif.Report) (*scansv1.UploadReportResponse, error) {
	u := &upload{target: target, source: newSARIFSource(report, target.GetCategory())}
	var err error
	u.results, err = ingest.Read(ctx, s.store.Reader, ingest.Input{
		Results: u.source, Commit: target.GetCommit(), ReadAhead: true, Calls: s.options.Calls, Spool: s.options.Spool.Of(ctx), FormerNames: u.source.formerNames(),
	})
	if err != nil {
		return nil, err
	}
	defer u.results.Release()
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := s.storeUpload(ctx, tx, u); err != nil {
			return err
		}
		summary := u.response()
		summary.SkippedResults = nil
		audit.Change(ctx, "scan", u.scan.ID, nil, summary)
		if u.result.Changed() < statisticsThreshold {
			return nil
		}
		// Last: another import that asks for the same waits until this one is committed.
		return s.jobs.Enqueue(ctx, refreshStatistics{}, nil)
	})
	if err != nil {
		return nil, err
	}
	if s.options.Ingested != nil {
		for outcome, n := range u.result.Counts {
			s.options.Ingested(outcome.Product, outcome.What, n)
		}
		for i, run := range report.Runs {
			if n := u.source.skippedOf[i]; n > 0 {
				s.options.Ingested(run.Product, "skipped", n)
			}
		}
	}
	return u.response(), nil
}

// storeUpload does all of it in one transaction: nothing of a report is visible before all of it is.
func (s *ReportUploads) storeUpload(ctx context.Context, tx *ent.Tx, u *upload) error {
	deploymentID, _ := tenant.FromContext(ctx)
	ref := gitref.Full(u.target.GetRef())
	project, err := openProject(ctx, s.store, tx, deploymentID, u.target.GetProject(), ref)
	if err != nil {
		return fmt.Errorf("open project: %w", err)
	}
	u.project = project.Name
	meta, err := proto.Marshal(&scansv1.ScanMeta{
		Branch: ref, Commit: u.target.GetCommit(), Repository: project.Name, RepoUrl: project.URL, On: "upload",
	})
	if err != nil {
		return err
	}
	u.scan, err = tx.Scan.Create().SetDeploymentID(deploymentID).SetProjectID(project.ID).SetRef(ref).SetCommit(u.target.GetCommit()).
		SetStatus(scansv1.ScanStatus_SCAN_STATUS_RUNNING.String()).SetProducts(0).SetIsFullScan(true).
		SetMeta(meta).SetStats(map[string]any{}).SetStartedAt(store.Now()).Save(ctx)
	if err != nil {
		return fmt.Errorf("open scan: %w", err)
	}
	u.result, err = ingest.Store(ctx, tx, ingest.Target{Store: s.store, Project: project, Scan: u.scan}, u.results)
	if err != nil {
		return err
	}
	if err := u.closeScan(ctx); err != nil {
		return fmt.Errorf("close scan: %w", err)
	}
	return outbox.ScanFinished(ctx, tx, s.jobs, u.scan.ID)
}

// closeScan writes what the scan brought.
func (u *upload) closeScan(ctx context.Context) error {
	products, stats := u.result.ProductBits(), map[string]any{}
	for i, run := range u.source.report.Runs {
		if run.Rejected == "" {
			products |= ingest.ProductBit(run.Product)
		}
		if n := u.source.skippedOf[i]; n > 0 {
			stats["skipped"] = n + total(stats["skipped"])
		}
	}
	for o, n := range u.result.Counts {
		stats[o.What] = n + total(stats[o.What])
	}
	return u.result.SetCounts(u.scan.Update()).SetStatus(scansv1.ScanStatus_SCAN_STATUS_COMPLETED.String()).SetProducts(products).
		SetStats(stats).SetCompletedAt(max(store.Now(), u.scan.StartedAt+1)).Exec(ctx)
}

// total is a number of the statistics; 0 before there is one.
func total(n any) int {
	sum, _ := n.(int)
	return sum
}

// response tells what became of every result.
func (u *upload) response() *scansv1.UploadReportResponse {
	out := &scansv1.UploadReportResponse{
		ScanId:    u.scan.ID,
		Project:   u.project,
		Ref:       u.scan.Ref,
		Created:   int32(u.result.Total("created")),
		Updated:   int32(u.result.Total("updated")),
		Unchanged: int32(u.result.Total("unchanged")),
		Reopened:  int32(u.result.Total("reopened")),
		Fixed:     int32(u.result.Total("fixed")),
		Removed:   int32(u.result.Total("removed")),
	}
	for i, run := range u.source.report.Runs {
		skipped := u.source.skippedOf[i]
		out.Skipped += int32(skipped)
		group := u.source.groupOf(run)
		out.Runs = append(out.Runs, &scansv1.UploadedRun{
			Index:       int32(run.Index),
			Tool:        run.Tool.Name,
			ToolVersion: run.Tool.Version,
			Category:    group.Category,
			Product:     run.Product,
			Results:     int32(run.Results),
			Accepted:    int32(run.Results - skipped),
			Skipped:     int32(skipped),
			Warnings:    slices.Concat(run.Warnings, u.source.warningsOf(run)),
			Rejected:    run.Rejected,
			Coverage:    u.result.Coverages[group],
		})
	}
	for _, skip := range u.source.skipped {
		out.SkippedResults = append(out.SkippedResults, &scansv1.SkippedResult{
			Run: int32(skip.Run), Index: int32(skip.Index), RuleId: skip.RuleID, Path: skip.Path, Reason: skip.Reason,
		})
	}
	out.SkippedResultsOmitted = out.Skipped - int32(len(out.SkippedResults))
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
