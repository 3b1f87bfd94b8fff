package scans

import (
	"context"
	"errors"
	"fmt"
	"io"

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
)

// UploadOptions configures report uploads.
type UploadOptions struct {
	// Spool holds reports while they are read.
	Spool *spool.Spool
	// MaxBytes limits the size of a report after decompression.
	MaxBytes int64
	// RedactionKey is the key of the hashes that replace secrets, so that different secrets stay distinguishable.
	RedactionKey []byte
	// Ingested counts results by product and outcome (created, updated, …), for metrics.
	Ingested func(product, outcome string, n int)
	// Calls has the in-flight requests, which take precedence over reading and storing results.
	Calls *traffic.Calls
}

// ReportUploads is the service group "report uploads".
type ReportUploads struct {
	scansv1.UnimplementedReportUploadsServiceServer
	store   *store.Store
	jobs    *jobs.Jobs
	options UploadOptions
}

// NewReportUploads stores reports in st, and enqueues the jobs that large ones need (see Background).
func NewReportUploads(st *store.Store, queue *jobs.Jobs, o UploadOptions) *ReportUploads {
	return &ReportUploads{store: st, jobs: queue, options: o}
}

// UploadReport reads the whole report twice before it changes anything, and then stores it in one transaction.
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
	form, err := formatOf(spooled)
	if err != nil {
		return err
	}
	yielding := &yieldingReader{ctx, s.options.Calls.Beside(), spooled}
	src := struct {
		io.Reader
		io.Seeker
	}{yielding, spooled}
	opened, err := form.open(ctx, src, target, s.options)
	if err != nil {
		return err
	}
	yielding.work = new(traffic.Work) // reading the results yields the processor between them
	response, err := s.ingest(ctx, target, opened)
	if err != nil {
		return opened.refusal(err)
	}
	return stream.SendAndClose(response)
}

// upload is one report that is being imported.
type upload struct {
	target  *scansv1.UploadReportTarget
	report  report
	results *ingest.Reading
	scan    *ent.Scan
	result  *ingest.Summary
	runs    []reportRun // after it is stored
	project string      // its stored name
}

func (s *ReportUploads) ingest(ctx context.Context, target *scansv1.UploadReportTarget, opened report) (*scansv1.UploadReportResponse, error) {
	u := &upload{target: target, report: opened}
	var err error
	u.results, err = ingest.Read(ctx, s.store.Reader, ingest.Input{
		Results: u.report, Commit: target.GetCommit(), Calls: s.options.Calls, Spool: s.options.Spool.Of(ctx), FormerNames: u.report.formerNames(),
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
		// Last, because another import that enqueues the same job waits until this one commits.
		return s.jobs.Enqueue(ctx, refreshStatistics{}, nil)
	})
	if err != nil {
		return nil, err
	}
	if s.options.Ingested != nil {
		for outcome, n := range u.result.Counts {
			s.options.Ingested(outcome.Product, outcome.What, n)
		}
		for _, run := range u.runs {
			if n := int(run.GetSkipped()); n > 0 {
				s.options.Ingested(run.GetProduct(), "skipped", n)
			}
		}
	}
	return u.response(), nil
}

// storeUpload does everything in one transaction, so that a report becomes visible as a whole.
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
	u.runs = u.report.runs()
	if err := u.closeScan(ctx); err != nil {
		return fmt.Errorf("close scan: %w", err)
	}
	return outbox.ScanFinished(ctx, tx, s.jobs, u.scan.ID)
}

// closeScan writes the counts and statistics of the scan.
func (u *upload) closeScan(ctx context.Context) error {
	products, stats := u.result.ProductBits(), map[string]any{}
	for _, run := range u.runs {
		if run.GetRejected() == "" {
			products |= ingest.ProductBit(run.GetProduct())
		}
		if n := int(run.GetSkipped()); n > 0 {
			stats["skipped"] = n + total(stats["skipped"])
		}
	}
	for o, n := range u.result.Counts {
		stats[o.What] = n + total(stats[o.What])
	}
	return u.result.SetCounts(u.scan.Update()).SetStatus(scansv1.ScanStatus_SCAN_STATUS_COMPLETED.String()).SetProducts(products).
		SetStats(stats).SetCompletedAt(max(store.Now(), u.scan.StartedAt+1)).Exec(ctx)
}

// total is a number of the statistics; 0 if it is absent.
func total(n any) int {
	sum, _ := n.(int)
	return sum
}

// response reports the outcome of every result.
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
	for _, run := range u.runs {
		run.Coverage = u.result.Coverages[run.analysis]
		out.Runs, out.Skipped = append(out.Runs, run.UploadedRun), out.Skipped+run.GetSkipped()
	}
	out.SkippedResults = u.report.skipped()
	out.SkippedResultsOmitted = out.Skipped - int32(len(out.SkippedResults))
	return out
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
