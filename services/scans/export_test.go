package scans

import (
	"context"
	"log/slog"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/sarif"
)

// PurgeCoverages is the work of a periodic job.
var PurgeCoverages = purgeCoverages

// PurgeAnswers is the other part of it.
var PurgeAnswers = purgeAnswers

// CutText bounds a text of a stored answer.
var CutText = cutText

// DeletePendingImports is a part of the work of a periodic job.
var DeletePendingImports = deletePendingImports

// UpgradeIdentities is the work of a job after a start.
func UpgradeIdentities(ctx context.Context, st *store.Store, log *slog.Logger) error {
	return (&upgradeWorker{store: st, log: log}).Work(ctx, nil)
}

// Store reads and stores a report as UploadReport does once it is spooled.
func (s *ReportUploads) Store(ctx context.Context, target *scansv1.UploadReportTarget, report *sarif.Report) (*scansv1.UploadReportResponse, error) {
	return s.ingest(ctx, "acme", target, newSARIFSource(report, target.GetCategory()), nil)
}

// ScheduledScans is the job that starts the full scans that are due.
var ScheduledScans = scheduledScans{}

// LostManagedScans is the job that takes up the scans of dead nodes.
var LostManagedScans = lostManagedScans{}
