package scans

import (
	"context"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
)

const (
	// maxAwaiting is how many completions of a node may wait for their results at a time. More are answered at once, and
	// their scanners ask again after 5 s.
	maxAwaiting = 1000
	// awaitFirst and awaitLongest are the first and the longest interval between two reads of the state.
	awaitFirst   = 20 * time.Millisecond
	awaitLongest = time.Second
)

// await waits until the results of a scan are stored or abandoned, and returns the row. It returns the row as it is
// when complete-wait is over or the server stops. It holds no database connection while it waits. Any node may store
// the results, so it polls.
func (s *ScannerProtocol) await(ctx context.Context, row *ent.Scan) (*ent.Scan, error) {
	select {
	case s.awaiting <- struct{}{}:
		defer func() { <-s.awaiting }()
	default:
		return row, nil
	}
	ends := time.NewTimer(s.options.CompleteWait)
	defer ends.Stop()
	next := time.NewTimer(0)
	defer next.Stop()
	for interval := awaitFirst; ; interval = min(interval*3/2, awaitLongest) {
		next.Reset(interval)
		select {
		case <-next.C:
		case <-ends.C:
			return row, nil
		case <-s.jobs.Stopping():
			return row, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		now, err := s.store.Reader.Scan.Query().Where(scan.ID(row.ID)).Only(ctx)
		if err != nil || now.ResultsState != resultsReceived {
			return now, err
		}
	}
}
