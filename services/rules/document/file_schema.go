package document

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
)

// FileSchema returns the JSON Schema of a file of rules, for tools that help to write rules: the schema that rules are
// checked with, and the members that the parser checks itself.
var FileSchema = sync.OnceValue(func() []byte {
	var rule map[string]any
	if err := json.Unmarshal(schemaSource, &rule); err != nil {
		panic(err) // it is embedded, and a test reads it
	}
	type object = map[string]any
	properties, definitions := rule["properties"].(object), rule["$defs"]
	maps.Copy(properties, object{
		"id":       object{"type": "string", "pattern": namePattern.String(), "maxLength": MaxName},
		"message":  object{"type": "string", "minLength": 1},
		"severity": object{"enum": Severities},
		"mode":     object{"enum": modes},
		"languages": object{
			"type": "array", "minItems": 1, "items": object{"enum": slices.Sorted(maps.Keys(languages))},
		},
	})
	rule["required"] = []string{"id"}
	var needed []any
	for _, key := range append(slices.Clone(searchKeys), "pattern-sources", "taint", "join", "steps", "r2c-internal-project-depends-on") {
		needed = append(needed, object{"required": []string{key}})
	}
	rule["allOf"] = append(rule["allOf"].([]any),
		object{"anyOf": needed},
		object{"anyOf": []any{object{"required": []string{"languages"}}, object{"required": []string{"join"}}}},
		object{
			"if":   object{"properties": object{"mode": object{"const": modeExtract}}, "required": []string{"mode"}},
			"else": object{"required": []string{"message", "severity"}},
		})
	draft := rule["$schema"]
	delete(rule, "$schema")
	delete(rule, "$defs")
	encoded, err := json.Marshal(object{
		"$schema": draft, "title": "Rules", "type": "object", "required": []string{"rules"},
		"properties": object{"rules": object{"type": "array", "minItems": 1, "items": rule}}, "$defs": definitions,
	})
	if err != nil {
		panic(err)
	}
	return encoded
})
