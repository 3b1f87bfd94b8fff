package sarif

import "github.com/palisade/palisade/services/scans/jsonstream"

// Limits bounds the cost of a report. A zero field means its default; see [DefaultLimits].
type Limits struct {
	// MaxBytes is the size of the whole (decompressed) report in bytes. A larger report is rejected.
	MaxBytes int64
	// MaxDepth is the deepest nesting of JSON arrays and objects. A deeper report is rejected.
	MaxDepth int
	// MaxValues is the number of JSON arrays and objects. A report with more is rejected.
	MaxValues int64
	// MaxRuns is the number of runs. A report with more is rejected.
	MaxRuns int
	// MaxRules is the number of rules of one run, including extensions. A run with more is rejected.
	MaxRules int
	// MaxResults is the number of results of one run. A run with more is rejected.
	MaxResults int
	// MaxResultBytes is the size of one result, rule or other single value in bytes. A larger result is skipped; a
	// larger rule is omitted with a warning.
	MaxResultBytes int64
	// MaxTokenBytes is the size of one JSON string or number in bytes. A report with a larger one is rejected, because
	// the decoder cannot skip a token without buffering it.
	MaxTokenBytes int64
	// MaxMetadataBytes is the memory for rules, taxonomies and artifact tables of a whole report in bytes. Help texts
	// and artifacts are omitted first, with a warning. Then the run that exceeds the limit is rejected.
	MaxMetadataBytes int64
	// MaxMessageBytes is the length in bytes at which the message of a result is cut.
	MaxMessageBytes int
	// MaxSnippetBytes is the length in bytes at which the snippet of a result is cut.
	MaxSnippetBytes int
}

// DefaultLimits returns limits that are far above real reports and keep memory well under 150 MB. For comparison,
// GitHub accepts 20 runs, 25,000 rules and 25,000 results per run.
func DefaultLimits() Limits {
	return Limits{
		MaxBytes:         1 << 30,
		MaxDepth:         256,
		MaxValues:        20_000_000,
		MaxRuns:          256,
		MaxRules:         50_000,
		MaxResults:       5_000_000,
		MaxResultBytes:   16 << 20,
		MaxTokenBytes:    16 << 20,
		MaxMetadataBytes: 48 << 20,
		MaxMessageBytes:  32 << 10,
		MaxSnippetBytes:  16 << 10,
	}
}

// withDefaults replaces zero fields, so that callers can set only some.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	fill(&l.MaxBytes, d.MaxBytes)
	fill(&l.MaxDepth, d.MaxDepth)
	fill(&l.MaxValues, d.MaxValues)
	fill(&l.MaxRuns, d.MaxRuns)
	fill(&l.MaxRules, d.MaxRules)
	fill(&l.MaxResults, d.MaxResults)
	fill(&l.MaxResultBytes, d.MaxResultBytes)
	fill(&l.MaxTokenBytes, d.MaxTokenBytes)
	fill(&l.MaxMetadataBytes, d.MaxMetadataBytes)
	fill(&l.MaxMessageBytes, d.MaxMessageBytes)
	fill(&l.MaxSnippetBytes, d.MaxSnippetBytes)
	return l
}

func fill[T int | int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Stream returns the limits that concern every JSON document.
func (l Limits) Stream() jsonstream.Limits {
	return jsonstream.Limits{
		MaxBytes: l.MaxBytes, MaxDepth: l.MaxDepth, MaxValues: l.MaxValues, MaxValueBytes: l.MaxResultBytes, MaxTokenBytes: l.MaxTokenBytes,
	}
}
