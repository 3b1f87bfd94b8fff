package formats

import (
	"cmp"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// trufflehogJSON is the output of `trufflehog --json`: one secret in a line.
var trufflehogJSON = Format{
	Name: "trufflehog-json", Title: "TruffleHog JSON", Convert: convertTrufflehog, Recognises: func(o *Outline) bool {
		return o.Has("DetectorName") && o.Has("SourceMetadata") || o.Has("[].DetectorName") && o.Has("[].SourceMetadata")
	},
}

// trufflehogSecret leaves out Redacted and ExtraData, which may show a part of the secret.
type trufflehogSecret struct {
	SourceMetadata struct {
		// Data has one member, which names the kind of source, such as Git or Filesystem.
		Data jsonstream.Map[struct {
			File   string             `json:"file"`
			Commit string             `json:"commit"`
			Line   jsonstream.Integer `json:"line"`
			Link   string             `json:"link"`
			Image  string             `json:"image"`
			Bucket string             `json:"bucket"`
		}]
	}
	DetectorName, DetectorDescription string
	Verified                          bool
	Raw, RawV2                        string
}

func convertTrufflehog(in *Input, w *Writer) error {
	w.Run(Tool{Name: "TruffleHog", Product: ProductSecrets})
	use := func(t *trufflehogSecret) error {
		out := &Result{
			Rule:    Rule{ID: t.DetectorName, Message: t.DetectorDescription},
			Message: optionalText("", t.DetectorName, " secret"), Snippet: cmp.Or(t.RawV2, t.Raw), Confidence: "low",
		}
		if t.Verified {
			out.Confidence = "high"
		}
		for _, at := range t.SourceMetadata.Data {
			out.Path, out.Line, out.HistoricalCommit = at.File, int(at.Line), at.Commit
			if out.Logical = cmp.Or(at.Image, at.Bucket); out.Path == "" && out.Logical == "" {
				out.Logical = at.Link
			}
		}
		return w.Result(out)
	}
	return in.WalkAll(func(s *jsonstream.Stream) error {
		if s.Kind() == '[' {
			return items(w, use)(s)
		}
		return item(s, w, use)
	})
}
