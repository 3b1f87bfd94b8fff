package scans

import (
	"context"
	"io"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/scans/ingest"
)

// A report format is one line in formats, and a file that converts its reports. The parser of the format is a package
// of its own, such as sarif.

// format is a report format.
type format struct {
	// recognises reports whether the first bytes, at most headSize, belong to this format.
	recognises func(head []byte) bool
	// open validates all of a report. Results are read from the file again.
	open func(ctx context.Context, file io.ReadSeeker, target *scansv1.UploadReportTarget, o UploadOptions) (report, error)
}

// formats are the formats of uploads. SARIF is last: it accepts everything else, and explains what is wrong with it.
var formats = []format{sarifFormat}

// headSize is how many bytes of a report are used to detect its format.
const headSize = 4 << 10

// maxSkippedShown is how many skipped results an answer lists.
const maxSkippedShown = 1000

// report is an open report.
type report interface {
	ingest.Source
	// formerNames maps former rule names to current ones, by tool.
	formerNames() map[string]map[string]string
	// runs describes each part of the report for the answer, without the coverage. It is valid after the results have
	// been read.
	runs() []reportRun
	// skipped returns the first results that made no finding, at most maxSkippedShown.
	skipped() []*scansv1.SkippedResult
	// refusal converts errors in the report to API errors. It returns errors of the server unchanged.
	refusal(err error) error
}

// reportRun is a part of a report, usually the results of one tool.
type reportRun struct {
	*scansv1.UploadedRun
	analysis ingest.Analysis
}

// formatOf detects the format of a report, whatever the offset of the file, and rewinds the file.
func formatOf(file io.ReadSeeker) (format, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return format{}, err
	}
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
