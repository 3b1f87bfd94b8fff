package scans

import (
	"context"
	"io"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/scans/ingest"
)

// A format of reports is one line in formats, and a file that makes a report of it. What reads the format itself is a
// package below this one, such as sarif.

// format is a format of reports.
type format struct {
	// recognises a report by its first bytes, at most headSize.
	recognises func(head []byte) bool
	// open checks all of a report. Its results are read from the file again.
	open func(ctx context.Context, file io.ReadSeeker, target *scansv1.UploadReportTarget, o UploadOptions) (report, error)
}

// formats are those that uploads may have. SARIF is the last: it takes what no other recognises, and says what is wrong
// with it.
var formats = []format{sarifFormat}

// headSize is how much of a report tells its format, in bytes.
const headSize = 4 << 10

// maxSkippedShown is how many skipped results an answer lists.
const maxSkippedShown = 1000

// report is one that was opened.
type report interface {
	ingest.Source
	// formerNames are the present names of rules by tool and former name.
	formerNames() map[string]map[string]string
	// runs are what the answer says about each part of the report, but for the coverage, once the results have been read.
	runs() []reportRun
	// skipped are the first results that made no finding, at most maxSkippedShown.
	skipped() []*scansv1.SkippedResult
	// refusal tells errors of the report from those of the server.
	refusal(err error) error
}

// reportRun is a part of a report: the results of one tool, as a rule.
type reportRun struct {
	*scansv1.UploadedRun
	analysis ingest.Analysis
}

// formatOf finds the format of a report, and leaves the file at its begin.
func formatOf(file io.ReadSeeker) (format, error) {
	head := make([]byte, headSize)
	n, err := io.ReadFull(file, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return format{}, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return format{}, err
	}
	for _, f := range formats {
		if f.recognises(head[:n]) {
			return f, nil
		}
	}
	return formats[len(formats)-1], nil
}
