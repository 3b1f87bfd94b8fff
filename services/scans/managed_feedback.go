package scans

import (
	"context"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/host"
)

// unfinishedScan is the latest managed scan of a pull request, if it did not succeed.
type unfinishedScan struct {
	// waits says that it has not ended, and is still waited for.
	waits bool
	// open says that the pull request passes without it, as the settings of the deployment want.
	open bool
	text string
}

// findUnfinished returns the latest managed scan of a pull request, unless it succeeded or there is none.
func findUnfinished(ctx context.Context, db *ent.Client, projectID, number int64) (*unfinishedScan, error) {
	scans, err := db.Scan.Query().Where(scan.ProjectID(projectID), scan.PullRequest(number)).Order(ent.Desc(scan.FieldID)).
		Limit(maxPullRequestRefs).Select(scan.FieldID, scan.FieldStatus).All(ctx)
	if err != nil || len(scans) == 0 {
		return nil, err
	}
	status, ids := map[int64]scansv1.ScanStatus{}, make([]int64, len(scans))
	for i, row := range scans {
		status[row.ID], ids[i] = scanStatus(row), row.ID
	}
	about, err := db.ManagedScan.Query().Where(managedscan.ProjectID(projectID), store.OneOf(managedscan.FieldScanID, ids)).
		Order(ent.Desc(managedscan.FieldScanID)).First(ctx)
	if err != nil || status[about.ScanID] == scansv1.ScanStatus_SCAN_STATUS_COMPLETED {
		return nil, ignoreNotFound(err)
	}
	settings, err := db.ManagedScanSetting.Query().Only(ctx)
	if ent.IsNotFound(err) {
		settings, err = &ent.ManagedScanSetting{}, nil
	}
	if err != nil {
		return nil, err
	}
	return describeUnfinished(status[about.ScanID], about, settings), nil
}

func describeUnfinished(status scansv1.ScanStatus, about *ent.ManagedScan, settings *ent.ManagedScanSetting) *unfinishedScan {
	u := &unfinishedScan{open: settings.FailOpen, text: "the scan did not succeed: " + about.Problem}
	switch status {
	case scansv1.ScanStatus_SCAN_STATUS_PENDING, scansv1.ScanStatus_SCAN_STATUS_RUNNING:
		late := about.CreatedAt + settings.FailOpenSeconds*time.Second.Microseconds()
		u.waits = !settings.FailOpen || settings.FailOpenSeconds == 0 || store.Now() < late
		u.text = "the scan is not finished"
	case scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED:
		if about.Problem == "" {
			u.text = "the scan never finished"
		}
	}
	return u
}

// change makes a status say that the scan has not succeeded. What other scans found still blocks.
func (u *unfinishedScan) change(s *host.Status) {
	switch {
	case u.waits:
		s.Pending, s.Passed, s.Text = true, false, u.text
	case u.open:
		s.Text = clip(s.Text+"; "+u.text+" (fail open)", host.MaxStatusText)
	default:
		s.Passed, s.Text = false, clip(u.text, host.MaxStatusText)
	}
}
