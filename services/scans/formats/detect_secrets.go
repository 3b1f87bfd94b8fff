package formats

import "github.com/palisade/palisade/services/scans/jsonstream"

// detectSecrets is the baseline of `detect-secrets scan`.
var detectSecrets = Format{
	Name: "detect-secrets-json", Title: "detect-secrets JSON", Convert: convertDetectSecrets, Recognises: func(o *Outline) bool {
		return o.Has("results") && (o.Has("plugins_used") || o.Has("results.*[].hashed_secret"))
	},
}

type detectSecretsResult struct {
	Type     string             `json:"type"`
	Hash     string             `json:"hashed_secret"`
	Line     jsonstream.Integer `json:"line_number"`
	Verified bool               `json:"is_verified"`
	// Secret is what `detect-secrets audit` recorded.
	Secret *bool `json:"is_secret"`
}

func convertDetectSecrets(in *Input, w *Writer) error {
	tool := Tool{Name: "detect-secrets", Product: ProductSecrets}
	err := in.Walk(func(s *jsonstream.Stream) error { return object(s, members{"version": into(&tool.Version)}) })
	if err != nil {
		return err
	}
	w.Run(tool)
	return in.Walk(func(s *jsonstream.Stream) error {
		return report(s, w, members{"results": each(w, func(s *jsonstream.Stream, file string) error {
			return notNull(w, items(w, func(r *detectSecretsResult) error {
				out := &Result{
					Rule: Rule{ID: r.Type, Message: r.Type}, Message: "Possible secret: " + r.Type, Path: file, Line: int(r.Line),
					// The plain hash of a weak secret can be guessed. As a snippet it is replaced by a keyed hash.
					Snippet: r.Hash,
				}
				if r.Verified {
					out.Confidence = "high"
				}
				if r.Secret != nil && !*r.Secret {
					out.Suppressed = &Suppression{Reason: "audited with detect-secrets: not a secret"}
				}
				return w.Result(out)
			}))(s)
		})}, "results")
	})
}
