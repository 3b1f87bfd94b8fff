package scans

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/scanner"
	"github.com/palisade/palisade/services/scans/scanstats"
)

// noResults is the error of a scan that succeeded without sending results.
const noResults = "the scanner ended the scan without sending results"

// CompleteScan answers whether the results are stored, and if so whether the build should fail. It waits for them for a
// while. The first call is stored; later calls only read.
func (s *ScannerProtocol) CompleteScan(stream grpc.ClientStreamingServer[scansv1.CompleteScanRequest, scansv1.CompleteScanResponse]) error {
	ctx := stream.Context()
	body, err := newScannerBody(func() (scannerMessage, error) { return stream.Recv() })
	if err != nil {
		return err
	}
	row, err := s.openedScan(ctx, body.first.GetScanId())
	if err != nil {
		return err
	}
	src, err := body.plain()
	if err != nil {
		return err
	}
	end, err := s.readCompletion(ctx, src)
	if err != nil {
		return scannerError(err)
	}
	defer end.close()
	response, err := s.complete(ctx, row, end)
	if err != nil {
		return err
	}
	return stream.SendAndClose(response)
}

// completion is the end of a scan, as its scanner reports it. frames is nil if it has no dependencies.
type completion struct {
	scanner.Completion
	frames *framesFile
}

func (c *completion) close() {
	if c.frames != nil {
		c.frames.close()
	}
}

func (s *ScannerProtocol) readCompletion(ctx context.Context, src io.Reader) (*completion, error) {
	end := &completion{}
	told, err := scanner.ReadCompletion(ctx, src, s.limits(), func(frame *storev1.ScannerFrame) (err error) {
		if end.frames == nil {
			if end.frames, err = newFramesFile(s.options.Spool.Of(ctx)); err != nil {
				return err
			}
		}
		return end.frames.Write(frame)
	})
	if err != nil {
		end.close()
		return nil, err
	}
	end.Completion = told
	return end, nil
}

// complete stores the completion if it is new, and answers.
func (s *ScannerProtocol) complete(ctx context.Context, row *ent.Scan, end *completion) (*scansv1.CompleteScanResponse, error) {
	kept, err := scannerOf(row)
	if err != nil {
		return nil, err
	}
	if !kept.GetComplete() {
		if err := s.judgeCompletion(ctx, row, kept, end); err != nil {
			return nil, err
		}
	}
	givenUp := end.Final && row.ResultsState == ""
	if !kept.GetComplete() || givenUp && !ended(row) {
		id := row.ID
		if row, kept, err = s.storeCompletion(ctx, id, end, false); errors.Is(err, errProjectNotLocked) {
			row, kept, err = s.storeCompletion(ctx, id, end, true)
		}
		if err != nil {
			return nil, err
		}
	}
	if row.ResultsState == resultsReceived {
		if row, err = s.await(ctx, row); err != nil {
			return nil, err
		}
		if kept, err = scannerOf(row); err != nil {
			return nil, err
		}
	}
	response := &scansv1.CompleteScanResponse{TaskId: kept.GetTaskId()}
	switch {
	case row.ResultsState == resultsFailed:
		return nil, apierr.Conflict("the results of scan %d could not be stored; the log of the server says why", row.ID)
	case row.ResultsState == resultsStored:
		response.Success, response.AppBlockOverride, response.AppBlockReason = true, kept.GetBlock(), kept.GetBlockReason()
		response.AppBlockingMatchBasedIds = kept.GetBlockingMatchBasedIds()
	case row.ResultsState == "" && (end.Final || ended(row)):
		response.Success = true // there is nothing to wait for
	}
	return response, nil
}

// errProjectNotLocked says that the project has to be locked before the scan. The job uses the same order.
var errProjectNotLocked = errors.New("the project is not locked")

// storeCompletion stores what the scanner reports at the end.
func (s *ScannerProtocol) storeCompletion(ctx context.Context, id int64, end *completion, locksProject bool) (row *ent.Scan, kept *storev1.ScannerScan, err error) {
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if locksProject {
			before, err := tx.Scan.Query().Where(scan.ID(id)).Only(ctx)
			if err != nil {
				return err
			}
			if _, err := lockProjectByID(ctx, s.store, tx, before.ProjectID); err != nil {
				return err
			}
		}
		if row, err = lockScan(ctx, tx, s.store.Postgres(), id); err != nil {
			return err
		}
		if kept, err = scannerOf(row); err != nil {
			return err
		}
		before := &scansv1.CompleteScanResponse{TaskId: kept.GetTaskId()}
		if !kept.GetComplete() {
			if end.frames != nil && row.ResultsState == resultsStored && !locksProject {
				return errProjectNotLocked
			}
			if err := s.keepDependencies(ctx, tx, row, end); err != nil {
				return err
			}
			if row.Stats == nil {
				row.Stats = map[string]any{}
			}
			row.Stats[scanstats.Scanner] = end.Stats
			row.ExitCode, kept.Complete = end.ExitCode, true
			if row.ResultsState == resultsReceived {
				if err := enqueueResults(ctx, s.jobs, row, kept); err != nil {
					return err
				}
			}
		}
		update := row.Update().SetExitCode(row.ExitCode).SetStats(row.Stats)
		if end.Final && row.ResultsState == "" && !ended(row) {
			kept.Errors = []string{noResults}
			update.SetStatus(scansv1.ScanStatus_SCAN_STATUS_ERROR.String()).SetCompletedAt(max(store.Now(), row.StartedAt+1))
		}
		encoded, err := proto.Marshal(kept)
		if err != nil {
			return err
		}
		row, err = update.SetScanner(encoded).Save(ctx)
		audit.Change(ctx, "scan", id, before, &scansv1.CompleteScanResponse{TaskId: kept.GetTaskId(), Success: true})
		return err
	})
	return row, kept, err
}

// keepDependencies stores the dependencies that came with the completion, and what the scan could not look at. If
// results are waiting, they are added to these; if the results are stored, the dependencies are stored at once. If no
// results will be stored, they are dropped, because nothing would read them.
func (s *ScannerProtocol) keepDependencies(ctx context.Context, tx *ent.Tx, row *ent.Scan, end *completion) error {
	if end.frames == nil {
		return nil
	}
	src, err := end.frames.done()
	if err != nil {
		return err
	}
	switch {
	case row.ResultsState == resultsStored:
		return replaceDependencies(ctx, s.store, tx, row, src)
	case row.ResultsState == resultsReceived, row.ResultsState == "" && !ended(row) && !end.Final:
		return storePayload(ctx, tx, row, completionPosition, src)
	}
	return nil
}

// failedAfterwards is the error of a scan whose scanner reported an error after it had sent results.
const failedAfterwards = "the scanner reported an error after the results"

// ReportScanError marks a scan as failed. If its results have arrived, they are still stored, but close nothing.
func (s *ScannerProtocol) ReportScanError(ctx context.Context, r *scansv1.ReportScanErrorRequest) (*scansv1.ReportScanErrorResponse, error) {
	found, err := s.openedScan(ctx, r.GetScanId())
	if err != nil {
		return nil, err
	}
	isStored := false
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := lockScan(ctx, tx, s.store.Postgres(), found.ID)
		if err != nil {
			return err
		}
		isStored = row.ResultsState == ""
		if row.ResultsState == resultsReceived {
			return s.endAfterError(ctx, row, r.GetExitCode())
		}
		failed := scansv1.ScanStatus_SCAN_STATUS_ERROR.String()
		if row.ResultsState != "" || row.Status == failed && row.ExitCode == r.GetExitCode() {
			return nil
		}
		err = row.Update().SetStatus(failed).SetExitCode(r.GetExitCode()).SetCompletedAt(max(store.Now(), row.StartedAt+1)).Exec(ctx)
		audit.Change(ctx, "scan", row.ID, nil, &scansv1.ReportScanErrorRequest{ScanId: r.GetScanId(), ExitCode: r.GetExitCode()})
		return err
	})
	if err == nil && isStored {
		// It is idempotent: a retry of the scanner makes up for a crash.
		err = s.judgeError(ctx, found, r.GetExitCode(), r.GetStderr())
	}
	if err != nil {
		return nil, err
	}
	return &scansv1.ReportScanErrorResponse{}, nil
}

// endAfterError stores that a scan whose results wait has ended with an error. No completion will follow.
func (s *ScannerProtocol) endAfterError(ctx context.Context, row *ent.Scan, exitCode int32) error {
	kept, err := scannerOf(row)
	if err != nil || kept.GetComplete() {
		return err
	}
	kept.Complete, kept.Errors = true, append(kept.Errors, failedAfterwards)
	encoded, err := proto.Marshal(kept)
	if err != nil {
		return err
	}
	if err := row.Update().SetScanner(encoded).SetExitCode(exitCode).Exec(ctx); err != nil {
		return err
	}
	return enqueueResults(ctx, s.jobs, row, kept)
}
