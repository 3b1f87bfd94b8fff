package sarif

// Limits bounds what a report may cost. A zero field means its default; see [DefaultLimits].
type Limits struct {
	// MaxBytes is the size of the whole (decompressed) report in bytes. More refuses the report.
	MaxBytes int64
	// MaxDepth is the deepest nesting of JSON arrays and objects. More refuses the report.
	MaxDepth int
	// MaxValues is the number of JSON arrays and objects. More refuses the report.
	MaxValues int64
	// MaxRuns is the number of runs. More refuses the report.
	MaxRuns int
	// MaxRules is the number of rules of one run, those of extensions included. More rejects the run.
	MaxRules int
	// MaxResults is the number of results of one run. More rejects the run.
	MaxResults int
	// MaxResultBytes is the size of one result, rule or other single value in bytes. A larger result is skipped, a larger
	// rule is left out with a warning.
	MaxResultBytes int64
	// MaxTokenBytes is the size of one JSON string or number in bytes. More refuses the report, since a token cannot be
	// skipped without holding it.
	MaxTokenBytes int64
	// MaxMetadataBytes is the memory that rules, taxonomies and artifact tables of a whole report may take, in bytes. Help
	// texts and artifacts are left out first, with a warning; more rejects the run that crosses it.
	MaxMetadataBytes int64
	// MaxMessageBytes is where the message text of a result is cut, in bytes.
	MaxMessageBytes int
	// MaxSnippetBytes is where the code snippet of a result is cut, in bytes.
	MaxSnippetBytes int
}

// DefaultLimits returns limits that real reports stay far below and that keep memory well under 150 MB: GitHub, for
// comparison, takes 20 runs, 25,000 rules and 25,000 results a run.
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

// withDefaults fills the zero fields, so that callers can set only what they care about.
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
