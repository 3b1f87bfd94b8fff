package scans

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/scans/ingest"
	"github.com/palisade/palisade/services/scans/scanner"
)

const (
	// payloadPart is the size of one row of stored results in bytes.
	payloadPart = 1 << 20
	// completionPosition is the position of the first row that came with the completion. It is after all results.
	completionPosition = 1 << 20
)

// UploadScanResults validates all results and stores them. When the scanner has completed the scan, a job stores them
// as findings: only then it is known what the scan could not look at.
func (s *ScannerProtocol) UploadScanResults(stream grpc.ClientStreamingServer[scansv1.UploadScanResultsRequest, scansv1.UploadScanResultsResponse]) error {
	ctx := stream.Context()
	body, err := newScannerBody(func() (scannerMessage, error) { return stream.Recv() })
	if err != nil {
		return err
	}
	row, err := s.openedScan(ctx, body.first.GetScanId())
	if err != nil {
		return err
	}
	if row.ResultsState == "" && ended(row) {
		return errEnded(row)
	}
	frames, err := newFramesFile(s.options.Spool.Of(ctx))
	if err != nil {
		return err
	}
	defer frames.close()
	digest := sha256.New()
	summary, err := s.readResults(ctx, row, body, digest, frames)
	if err != nil {
		return scannerError(err)
	}
	response, err := s.receive(ctx, row.ID, receivedResults{frames, digest.Sum(nil), summary})
	if err != nil {
		return err
	}
	return stream.SendAndClose(response)
}

// readResults reads a whole body into frames.
func (s *ScannerProtocol) readResults(ctx context.Context, row *ent.Scan, body *scannerBody, digest hash.Hash, frames *framesFile) (scanner.Summary, error) {
	secretRules, err := ruleMessages(ctx, s.store.Reader, vocabulary.Secrets)
	if err != nil {
		return scanner.Summary{}, err
	}
	src, err := body.plain()
	if err != nil {
		return scanner.Summary{}, err
	}
	o := scanner.Options{Limits: s.limits(), RedactionKey: s.options.RedactionKey, SecretRules: secretRules, Commit: row.Commit}
	return scanner.ReadResults(ctx, io.TeeReader(src, digest), o, frames.Write)
}

// receivedResults are complete results that are not stored yet.
type receivedResults struct {
	frames  *framesFile
	digest  []byte
	summary scanner.Summary
}

// receive stores results for the job, unless the scan already has results.
func (s *ScannerProtocol) receive(ctx context.Context, scanID int64, got receivedResults) (*scansv1.UploadScanResultsResponse, error) {
	src, err := got.frames.done()
	if err != nil {
		return nil, err
	}
	var response *scansv1.UploadScanResultsResponse
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		row, err := lockScan(ctx, tx, s.store.Postgres(), scanID)
		if err != nil {
			return err
		}
		kept, err := scannerOf(row)
		if err != nil {
			return err
		}
		switch {
		case row.ResultsState != "" && !bytes.Equal(kept.GetResultsDigest(), got.digest):
			return apierr.Conflict("scan %d has other results already", row.ID)
		case row.ResultsState != "":
			response = resultsResponse(kept)
			return nil
		case ended(row):
			return errEnded(row)
		}
		kept.ResultsDigest, kept.Errors = got.digest, got.summary.Problems
		if err := storePayload(ctx, tx, row, 0, src); err != nil {
			return err
		}
		encoded, err := proto.Marshal(kept)
		if err != nil {
			return err
		}
		update := row.Update().SetScanner(encoded).SetResultsState(resultsReceived)
		if exact := commitTime(got.summary.CommitTime, row.StartedAt); exact != nil {
			if row.Stats == nil {
				row.Stats = map[string]any{}
			}
			row.Stats[ingest.ExactCommitTime] = true
			update.SetCommitTime(*exact).SetStats(row.Stats)
		}
		if err := update.Exec(ctx); err != nil {
			return err
		}
		response = resultsResponse(kept)
		audit.Change(ctx, "scan_results", row.ID, nil, response)
		return enqueueResults(ctx, s.jobs, row, kept)
	})
	return response, err
}

// enqueueResults enqueues the job that stores results: at once if the scanner has completed the scan, otherwise for
// when it counts as gone.
func enqueueResults(ctx context.Context, queue *jobs.Jobs, row *ent.Scan, kept *storev1.ScannerScan) error {
	args, opts := storeScanResults{DeploymentID: row.DeploymentID, ScanID: row.ID}, &river.InsertOpts{}
	if !kept.GetComplete() {
		args.Incomplete, opts.ScheduledAt = true, time.Now().Add(completionWait)
	}
	return queue.Enqueue(ctx, args, opts)
}

func resultsResponse(kept *storev1.ScannerScan) *scansv1.UploadScanResultsResponse {
	response := &scansv1.UploadScanResultsResponse{TaskId: kept.GetTaskId()}
	for _, text := range kept.GetErrors() {
		response.Errors = append(response.Errors, &scansv1.ScanResultError{Message: text})
	}
	return response
}

// ended reports whether the scan has ended, so that nothing more is expected.
func ended(row *ent.Scan) bool {
	switch scansv1.ScanStatus(scansv1.ScanStatus_value[row.Status]) {
	case scansv1.ScanStatus_SCAN_STATUS_RUNNING, scansv1.ScanStatus_SCAN_STATUS_PENDING:
		return false
	}
	return true
}

func errEnded(row *ent.Scan) error {
	words := map[string]string{
		scansv1.ScanStatus_SCAN_STATUS_ERROR.String():          "its scanner reported an error",
		scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED.String(): "nothing was heard of it for too long",
	}[row.Status]
	if kept, err := scannerOf(row); words == "" || err == nil && kept.GetComplete() {
		words = "it ended without results"
	}
	return apierr.Conflict("scan %d takes no results: %s; begin another scan", row.ID, words)
}

// storePayload stores src in parts.
func storePayload(ctx context.Context, tx *ent.Tx, row *ent.Scan, position int32, src io.Reader) error {
	for {
		part := make([]byte, payloadPart) // a new one each time, because drivers may keep it
		n, err := io.ReadFull(src, part)
		if n > 0 {
			create := tx.ScanPayload.Create().SetDeploymentID(row.DeploymentID).SetScanID(row.ID).SetPosition(position).SetContent(part[:n])
			if err := create.Exec(ctx); err != nil {
				return err
			}
			position++
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
