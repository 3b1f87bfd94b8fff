package document_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/palisade/palisade/services/rules/document"
)

// TestFileSchema checks all starter rules, and files that are wrong, with the schema that tools read.
func TestFileSchema(t *testing.T) {
	source, err := jsonschema.UnmarshalJSON(bytes.NewReader(document.FileSchema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("rules.json", source); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("rules.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text []byte) error {
		var file any
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(file)
	}
	files := 0
	err = filepath.WalkDir("../starter/rules", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || filepath.Ext(path[:len(path)-len(".yaml")]) == ".test" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if err := validate(text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files: %v", files, err)
	}
	const rule = "rules: [{id: a, languages: [python], severity: LOW, message: m, pattern: f()}]"
	if err := validate([]byte(rule)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{
		"{}", "rules: []", "rules: [{languages: [python], severity: LOW, message: m, pattern: f()}]",
		"rules: [{id: a, severity: LOW, message: m, pattern: f()}]",
		"rules: [{id: a, languages: [klingon], severity: LOW, message: m, pattern: f()}]",
		"rules: [{id: a, languages: [python], severity: loud, message: m, pattern: f()}]",
		"rules: [{id: a, languages: [python], message: m, pattern: f()}]",
		"rules: [{id: a, languages: [python], severity: LOW, message: m}]",
	} {
		if validate([]byte(wrong)) == nil {
			t.Errorf("%s is valid", wrong)
		}
	}
}
