package scans

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/intake"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/traffic"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scans/blocking"
	"github.com/palisade/palisade/services/scans/feedback"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/scanstats"
	"github.com/palisade/palisade/services/scans/watch"
)

// UploadOptions configures report uploads.
type UploadOptions struct {
	// Spool holds reports while they are read.
	Spool *spool.Spool
	// MaxBytes limits the size of a report after decompression.
	MaxBytes int64
	// RedactionKey is the key of the hashes that replace secrets, so that different secrets stay distinguishable.
	RedactionKey []byte
	// CompleteWait is how long the completion of a scan waits until the results are stored.
	CompleteWait time.Duration
	// Ingested counts results by product and outcome (created, updated, …), for metrics.
	Ingested func(product, outcome string, n int)
	// Calls has the in-flight requests, which take precedence over reading and storing results.
	Calls *traffic.Calls
	// Watch keeps the freshness of what is stored.
	Watch *watch.Watch
	// PublicURL is the URL of the server for people, without a slash at its end.
	PublicURL string
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
	if err := checkControl("category", target.GetCategory()); err != nil {
		return err
	}
	if err := checkOrigin(target); err != nil {
		return err
	}
	body := intake.Chunks(first, stream.Recv, func(m *scansv1.UploadReportRequest) bool { return m.GetTarget() != nil })
	spooled, err := receive(ctx, s.options, target.GetContentEncoding(), body)
	if err != nil {
		return err
	}
	defer spooled.Close()
	yielding := &yieldingReader{ctx, s.options.Calls.Beside(), spooled}
	src := struct {
		io.Reader
		io.Seeker
	}{yielding, spooled}
	opened, err := openReport(ctx, s.store.Reader, src, target, s.options)
	if err != nil {
		return err
	}
	defer func() { _ = opened.close() }() // an unnamed file
	if err := opened.checkNames(); err != nil {
		return err
	}
	yielding.work = new(traffic.Work) // reading the results yields the processor between them
	response, err := s.ingest(ctx, first.GetDeploymentSlug(), target, opened, nil)
	if err != nil {
		return opened.refusal(err)
	}
	return stream.SendAndClose(response)
}

// upload is one report that is being imported.
type upload struct {
	console string  // URL of the deployment in the console
	own     ownScan // the scan that these are the results of; nil for uploads
	origin  origin
	ref     string // full ref that was scanned
	target  *scansv1.UploadReportTarget
	report  *sarifSource
	results *ingest.Reading
	scan    *ent.Scan
	result  *ingest.Summary
	runs    []reportRun // after it is stored
	project string      // its stored name
	facts   facts
	gate    remediation.Decision
}

func (s *ReportUploads) ingest(
	ctx context.Context, slug string, target *scansv1.UploadReportTarget, opened *sarifSource, own ownScan,
) (*scansv1.UploadReportResponse, error) {
	u := &upload{console: s.options.PublicURL + "/console/" + slug, own: own, target: target, report: opened, origin: originOf(target, opened)}
	u.ref = gitref.Scanned(target.GetRef(), u.origin.commit)
	if u.ref == gitref.UnknownCommit {
		return nil, apierr.InvalidArgument("ref", "ref %s names a checkout without a branch: pass its commit (a full hash) as commit, or a branch as ref",
			apierr.Quote(target.GetRef()))
	}
	ignores, err := s.ignoresOf(ctx, target.GetProject())
	if err != nil {
		return nil, fmt.Errorf("read ignored paths: %w", err)
	}
	if err := u.report.loadModes(ctx, s.store.Reader, target.GetProject()); err != nil {
		return nil, fmt.Errorf("read the modes of rules: %w", err)
	}
	if err := s.failPackages(ctx, u); err != nil {
		return nil, fmt.Errorf("find the rules of packages that were not audited: %w", err)
	}
	u.results, err = ingest.Read(ctx, s.store.Reader, ingest.Input{
		Results: u.report, Commit: u.origin.commit, CommitTime: commitTime(u.origin.commitTime, store.Now()), Calls: s.options.Calls, Spool: s.options.Spool.Of(ctx), FormerNames: u.report.formerNames(),
		Ignores: ignores,
	})
	if err != nil {
		return nil, err
	}
	defer u.results.Release()
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if err := s.storeUpload(ctx, tx, u); err != nil {
			return err
		}
		answer := u.response()
		if err := storeAnswer(ctx, tx, u.scan, answer); err != nil {
			return fmt.Errorf("store the answer: %w", err)
		}
		if u.own != nil {
			if err := u.own.complete(ctx, tx, answer); err != nil {
				return fmt.Errorf("complete the scan: %w", err)
			}
		}
		answer.SkippedResults = nil
		audit.Change(ctx, "scan", u.scan.ID, nil, answer)
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
	project, err := s.openProject(ctx, tx, u)
	if err != nil {
		return fmt.Errorf("open project: %w", err)
	}
	if project, err = u.origin.describe(ctx, project); err != nil {
		return fmt.Errorf("set the repository of the project: %w", err)
	}
	u.project = project.Name
	if u.scan, err = u.open(ctx, tx, project); err != nil {
		return fmt.Errorf("open scan: %w", err)
	}
	u.result, err = ingest.Store(ctx, tx, ingest.Target{Store: s.store, Project: project, Scan: u.scan}, u.results)
	if err != nil {
		return err
	}
	if err := s.storeFacts(ctx, tx, project, u); err != nil {
		return err
	}
	if err := u.decide(ctx, tx, project); err != nil {
		return fmt.Errorf("decide whether policies block: %w", err)
	}
	u.runs = u.report.runs()
	if branch, of := strings.CutPrefix(u.target.GetRef(), "origin/"); of && gitref.IsBranch(u.ref) && len(u.runs) > 0 {
		u.runs[0].Warnings = append(u.runs[0].Warnings, fmt.Sprintf("the report is filed under a branch named origin/%s, and not under %s: "+
			"if origin is your remote, pass %s as ref", branch, branch, branch))
	}
	if u.facts.warning != "" {
		u.runs[0].Warnings = append(u.runs[0].Warnings, u.facts.warning)
	}
	if err := u.closeScan(ctx); err != nil {
		return fmt.Errorf("close scan: %w", err)
	}
	if u.own == nil || u.own.ofCode() {
		if err := s.options.Watch.Record(ctx, tx, s.jobs, project, u.scan, observed(u.result, u.scan)); err != nil {
			return fmt.Errorf("update the freshness: %w", err)
		}
	}
	if err := feedback.Scanned(ctx, tx, s.jobs, project, pullRequestOf(u.scan)); err != nil {
		return fmt.Errorf("ask for feedback on the pull request: %w", err)
	}
	return outbox.ScanFinished(ctx, tx, s.jobs, u.scan.DeploymentID, u.scan.ID)
}

// openProject locks the project of the report, and creates it for uploads of a new name.
func (s *ReportUploads) openProject(ctx context.Context, tx *ent.Tx, u *upload) (*ent.Project, error) {
	if u.own != nil {
		return openKnownProject(ctx, s.store, tx, u.own.projectID(), u.ref)
	}
	deploymentID, _ := tenant.FromContext(ctx)
	return openProject(ctx, s.store, tx, deploymentID, u.target.GetProject(), u.ref)
}

// ownScan is a scan by Palisade itself of a project that exists.
type ownScan interface {
	projectID() int64
	// ofCode reports whether the scan looked at the code.
	ofCode() bool
	// open returns the stored scan, in the transaction that stores the results.
	open(ctx context.Context, tx *ent.Tx, u *upload, of *ent.Project) (*ent.Scan, error)
	// complete is called when the results are stored, in the same transaction.
	complete(ctx context.Context, tx *ent.Tx, stored *scansv1.UploadReportResponse) error
}

// open stores the scan of the report.
func (u *upload) open(ctx context.Context, tx *ent.Tx, of *ent.Project) (*ent.Scan, error) {
	if u.own != nil {
		return u.own.open(ctx, tx, u, of)
	}
	return u.create(ctx, tx, of, "upload")
}

// create stores a new scan. on says what caused it.
func (u *upload) create(ctx context.Context, tx *ent.Tx, of *ent.Project, on string) (*ent.Scan, error) {
	meta, err := proto.Marshal(&scansv1.ScanMeta{Branch: u.ref, Commit: u.origin.commit, Repository: of.Name, RepoUrl: of.URL, On: on})
	if err != nil {
		return nil, err
	}
	now := store.Now()
	return tx.Scan.Create().SetDeploymentID(of.DeploymentID).SetProjectID(of.ID).SetRef(u.ref).SetCommit(u.origin.commit).
		SetStatus(scansv1.ScanStatus_SCAN_STATUS_RUNNING.String()).SetProducts(0).SetIsFullScan(true).
		SetNillablePullRequest(numberOf(u.ref, "")).SetMeta(meta).SetStats(map[string]any{}).SetStartedAt(now).SetNillableCommitTime(commitTime(u.origin.commitTime, now)).Save(ctx)
}

// decide evaluates the remediation policies and the modes of rules on what the report has.
func (u *upload) decide(ctx context.Context, tx *ent.Tx, of *ent.Project) error {
	policies, err := remediation.Load(ctx, tx.Client())
	if err != nil || len(policies) == 0 && len(u.report.modes) == 0 {
		return err
	}
	g := &gate{
		modes:      u.report.modes,
		Comparison: blocking.Comparison{DB: tx.Client(), Project: of, Scan: u.scan}, policies: policies,
		findings: []predicate.Finding{store.OneOf(finding.FieldTool, u.result.Tools())},
		reported: func(f *ent.Finding, _ *storev1.FindingContent) (sighting, bool) {
			return sighting{}, u.result.Reported(f)
		},
		older: len(u.result.Older) > 0,
	}
	u.gate, err = g.decide(ctx)
	return err
}

// closeScan writes the counts and statistics of the scan.
func (u *upload) closeScan(ctx context.Context) error {
	products, stats := u.result.ProductBits(), map[string]any{}
	for _, run := range u.runs {
		if run.GetRejected() == "" && !u.report.factsOnly(int(run.GetIndex())) {
			products |= ingest.ProductBit(run.GetProduct())
		}
		if n := int(run.GetSkipped()); n > 0 {
			stats["skipped"] = n + total(stats["skipped"])
		}
	}
	for o, n := range u.result.Counts {
		stats[o.What] = n + total(stats[o.What])
	}
	if n := u.result.HeldCloses(); n > 0 {
		stats[heldStats] = n
	}
	if id := u.result.NewerScan(); id != 0 {
		stats[scanstats.Older] = id
	}
	closeAs(u.scan, u.result)
	return u.result.SetCounts(u.scan.Update()).SetStatus(u.scan.Status).SetProducts(products).
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
		Format:    u.report.format,

		HeldCloses:         int32(u.result.HeldCloses()),
		Dependencies:       int32(u.facts.dependencies),
		Decisions:          int32(u.facts.decided.Decided),
		DecisionsKept:      int32(u.facts.decided.Kept),
		DecisionsUnmatched: int32(u.facts.decided.Unmatched),
		Url:                pullRequestPage(u.console, u.project, pullRequestOf(u.scan)),
		Blocked:            u.gate.Block,
		BlockReason:        u.gate.Reason,
	}
	warnings := heldWarnings(u.result.Held)
	for _, run := range u.runs {
		run.Coverage = u.result.Coverages[run.analysis]
		for _, warning := range []string{warnings[run.analysis], u.olderWarning(run.analysis)} {
			if warning != "" && !slices.Contains(run.Warnings, warning) {
				run.Warnings = append(run.Warnings, warning)
			}
		}
		out.Runs, out.Skipped = append(out.Runs, run.UploadedRun), out.Skipped+run.GetSkipped()
	}
	out.SkippedResults = u.report.skipped()
	out.SkippedResultsOmitted = out.Skipped - int32(len(out.SkippedResults))
	return out
}

func tooLarge(limit int64) error {
	return apierr.TooLarge("the report is larger than %d bytes after decompression; split it, or raise max-upload", limit)
}
