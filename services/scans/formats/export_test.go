package formats

import (
	"context"
	"io"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Claims returns the names of all formats that claim a document.
func Claims(ctx context.Context, src io.ReadSeeker, limits jsonstream.Limits) (names []string, err error) {
	o, _, err := sketch(ctx, src, limits, limits.MaxBytes)
	if err != nil {
		return nil, err
	}
	for _, f := range All {
		if f.Recognises(o) {
			names = append(names, f.Name)
		}
	}
	return names, nil
}
