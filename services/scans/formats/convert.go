package formats

import (
	"context"
	"io"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Convert writes the report in src as SARIF 2.1.0 to out, and returns the notes about each run of that document. It
// writes dependencies and decisions to facts, for [ReadFacts]. The error is an error of the document as of package
// jsonstream, or an error of src, out, facts or ctx.
func Convert(ctx context.Context, f Format, src io.ReadSeeker, limits jsonstream.Limits, out, facts io.Writer) ([]*Notes, error) {
	w := newWriter(out, facts)
	if err := f.Convert(&Input{ctx: ctx, src: src, limits: limits, w: w}, w); err != nil {
		return nil, err
	}
	if err := w.close(); err != nil {
		return nil, err
	}
	return w.runs, nil
}
