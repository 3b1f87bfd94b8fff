package scanner

import (
	"context"
	"io"

	"github.com/go-json-experiment/json"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// Completion is what a scanner reports at the end of a scan.
type Completion struct {
	// ExitCode is the exit code of the scanner.
	ExitCode int32
	// Final says that the scanner will not poll again.
	Final bool
	// Stats are the statistics of the scanner: the keys of the protocol, with JSON values.
	Stats map[string]any
	// Lockfiles is the number of frames of dependencies.
	Lockfiles int
	// RuleErrors are the rules that the scanner could not load.
	RuleErrors []RuleError
	// Incomplete says what the scan could not look at. It is emitted as a frame, too, unless it is empty.
	Incomplete *storev1.ScannerCoverage
}

// maxStats is the size of one kept value of the statistics in bytes.
const maxStats = 64 << 10

// keptStats are the statistics that are stored.
var keptStats = map[string]bool{
	"findings": true, "total_time": true, "unsupported_exts": true, "lockfile_scan_info": true, "parse_rate": true,
	"engine_requested": true, "findings_by_product": true, "supply_chain_stats": true,
}

// ReadCompletion reads the body of POST …/complete, and passes dependencies and what is incomplete to emit. It returns
// the errors of [ReadResults].
func ReadCompletion(ctx context.Context, src io.Reader, limits Limits, emit func(*storev1.ScannerFrame) error) (Completion, error) {
	missing := &incomplete{doc: newDocument(ctx, src, limits), coverage: &storev1.ScannerCoverage{}}
	doc, out := missing.doc, Completion{Stats: map[string]any{}, Incomplete: missing.coverage}
	ended := false
	err := doc.root(func(name string) error {
		switch name {
		case "exit_code":
			var code text
			_, err := doc.item(&code)
			out.ExitCode, ended = code.number()
			return err
		case "final_attempt":
			var final flag
			_, err := doc.item(&final)
			out.Final = bool(final)
			return err
		case "stats":
			if k := doc.kind(); k != '{' && k != 'n' {
				missing.unreadable(name)
			}
			return doc.object(func(name string) error {
				if name == "errors" {
					return missing.errors(&out.RuleErrors)
				}
				return stat(doc, out.Stats, name, missing)
			})
		case "dependency_parser_errors":
			return missing.parserErrors()
		case "skipped_subprojects":
			return missing.subprojects()
		case "dependencies":
			return lockfiles(doc, func(frame *storev1.ScannerFrame) error {
				out.Lockfiles++
				return emit(frame)
			})
		default:
			return doc.skip()
		}
	})
	if !ended {
		missing.unreadable("exit_code")
	}
	if err != nil || proto.Size(missing.coverage) == 0 {
		return out, err
	}
	return out, emit(&storev1.ScannerFrame{Kind: &storev1.ScannerFrame_Coverage{Coverage: missing.coverage}})
}

func stat(doc *document, stats map[string]any, name string, missing *incomplete) error {
	if !keptStats[name] {
		return doc.skip()
	}
	var value raw
	problem, err := doc.item(&value)
	if problem != "" && name == "parse_rate" {
		missing.unreadable(name)
	}
	if err != nil || problem != "" {
		return err
	}
	if name == "parse_rate" {
		missing.parseRate(value)
	}
	if len(value) > maxStats {
		return nil
	}
	var kept any
	if json.Unmarshal(value, &kept, decodeOptions) == nil && kept != nil {
		stats[name] = cleaned(kept)
	}
	return nil
}

// cleaned replaces texts of a value that a database cannot store.
func cleaned(value any) any {
	switch v := value.(type) {
	case string:
		return plain(v, maxName)
	case []any:
		for i := range v {
			v[i] = cleaned(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for key, item := range v {
			clean[plain(key, maxName)] = cleaned(item)
		}
		return clean
	}
	return value
}
