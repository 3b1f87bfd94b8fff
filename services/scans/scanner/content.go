package scanner

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// plainJSON makes JSON text valid UTF-8. It returns nil for invalid JSON and for null.
func plainJSON(v []byte) []byte {
	if len(v) == 0 || string(v) == "null" {
		return nil
	}
	clean := jsontext.Value(strings.ToValidUTF8(string(v), "\uFFFD"))
	if err := clean.Compact(jsontext.AllowDuplicateNames(true)); err != nil {
		return nil
	}
	return clean
}

// redactedJSON redacts every text of a JSON value, including names. An invalid value is dropped.
func redactedJSON(v []byte, redact func(string) string) []byte {
	var parsed any
	if len(v) == 0 || json.Unmarshal(v, &parsed, decodeOptions) != nil {
		return nil
	}
	out, err := json.Marshal(changeTexts(parsed, redact), json.Deterministic(true))
	if err != nil {
		return nil
	}
	return out
}

func changeTexts(value any, change func(string) string) any {
	switch v := value.(type) {
	case string:
		return change(v)
	case []any:
		for i := range v {
			v[i] = changeTexts(v[i], change)
		}
	case map[string]any:
		changed := make(map[string]any, len(v))
		for key, item := range v {
			changed[change(key)] = changeTexts(item, change)
		}
		return changed
	}
	return value
}

// codeOf returns the pieces of code in a trace of data flow: every text that is not a keyword of the format.
func codeOf(trace []byte) (code []string) {
	var parsed any
	if len(trace) == 0 || json.Unmarshal(trace, &parsed, decodeOptions) != nil {
		return nil
	}
	changeTexts(parsed, func(s string) string {
		switch s {
		case "CliLoc", "CliCall", "<code omitted>", "path", "start", "end", "line", "col", "offset", "location", "content",
			"taint_source", "taint_sink", "intermediate_vars":
		default:
			code = append(code, s)
		}
		return s
	})
	return code
}

// pathsIn returns the paths in the description of a subproject, which is a path or has members with paths.
func pathsIn(value []byte) (paths []string) {
	var parsed any
	if json.Unmarshal(value, &parsed, decodeOptions) != nil {
		return nil
	}
	if path, ok := parsed.(string); ok {
		return []string{path}
	}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for name, item := range v {
				if path, ok := item.(string); ok && (name == "path" || strings.HasSuffix(name, "_path") || strings.HasSuffix(name, "_dir")) {
					paths = append(paths, path)
				}
				walk(item)
			}
		}
	}
	walk(parsed)
	slices.Sort(paths)
	return slices.Compact(paths)
}
