package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var validators = regexp.MustCompile(`\.(Validate|Match|Range|(Non)?(Posi|Nega)tive|(Min|Max)(Len|RuneLen)?)\(`)

// TestTemplateKnowsSchema finds what ent/template/runtime.tmpl cannot detect. ent gives templates only the number of
// validators and mixins, so the template assumes that each validator is NotEmpty and each mixin is the TenantMixin.
func TestTemplateKnowsSchema(t *testing.T) {
	files, err := filepath.Glob("../../../ent/schema/*.go")
	if err != nil {
		t.Fatal(err)
	}
	tenantSchemas := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range validators.FindAll(source, -1) {
			t.Errorf("%s: add the validator %s…) to ent/template/runtime.tmpl", name, call)
		}
		tenant := bytes.Count(source, []byte("[]ent.Mixin{TenantMixin{}}"))
		if all := bytes.Count(source, []byte("[]ent.Mixin{")); all != tenant {
			t.Errorf("%s: add mixins other than the TenantMixin to ent/template/runtime.tmpl", name)
		}
		tenantSchemas += tenant
	}
	if tenantSchemas == 0 {
		t.Error("no schema has the TenantMixin")
	}
}
