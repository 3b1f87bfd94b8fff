package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var validators = regexp.MustCompile(`\.(Validate|Match|Range|(Non)?(Posi|Nega)tive|(Min|Max)(Len|RuneLen)?)\(`)

// TestTemplateKnowsSchema: ent/template/runtime.tmpl takes each validator for NotEmpty and each mixin for the
// TenantMixin, because ent tells templates only how many there are.
func TestTemplateKnowsSchema(t *testing.T) {
	files, err := filepath.Glob("../../../ent/schema/*.go")
	if err != nil {
		t.Fatal(err)
	}
	walled := 0
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range validators.FindAll(source, -1) {
			t.Errorf("%s: teach ent/template/runtime.tmpl the validator %s…)", name, call)
		}
		tenant := bytes.Count(source, []byte("[]ent.Mixin{TenantMixin{}}"))
		if all := bytes.Count(source, []byte("[]ent.Mixin{")); all != tenant {
			t.Errorf("%s: teach ent/template/runtime.tmpl a mixin that is not the TenantMixin alone", name)
		}
		walled += tenant
	}
	if walled == 0 {
		t.Error("no schema has the TenantMixin")
	}
}
