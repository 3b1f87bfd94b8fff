package document

import (
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// keys are the keys of a rule that scanners read.
var keys = []string{
	"id", "mode", "languages", "severity", "message", "version", "metadata", "options", "paths", "min-version", "max-version", "fix", "fix-regex",
	"equivalences", "pattern", "patterns", "pattern-either", "pattern-regex", "pattern-not", "pattern-inside", "pattern-not-inside", "pattern-not-regex",
	"pattern-sources", "pattern-sinks", "pattern-sanitizers", "pattern-propagators", "match", "taint", "join", "steps", "extract", "dest-language",
	"dest-rules", "transform", "reduce", "validators", "requires", "product", "r2c-internal-project-depends-on",
}

// readKeys refuses keys that are nearly the name of another one: scanners pass over them, so the rule would do
// something else than its author wants. Further keys are the author's own.
func (p *parser) readKeys(v *value) {
	for i, key := range v.keys {
		if slices.Contains(keys, key) {
			continue
		}
		plain := strings.ReplaceAll(strings.ToLower(key), "_", "-")
		if at := slices.IndexFunc(keys, func(known string) bool { return len(known) > 3 && levenshtein.Distance(plain, known, nil) <= 1 }); at >= 0 {
			p.problem(v.items[i].line, "the key %s is not known: is it %s?", clip(key), keys[at])
		}
	}
}
