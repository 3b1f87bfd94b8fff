package document_test

import (
	"strings"
	"testing"

	"github.com/palisade/palisade/services/rules/document"
)

// A file with aliases that expand to billions of values is rejected after a million.
func TestAliasesDoNotMultiply(t *testing.T) {
	var source strings.Builder
	source.WriteString("a0: &a0 [1]\n")
	for i := 1; i < 12; i++ {
		name, before := string(rune('a'+i)), "*"+string(rune('a'+i-1))
		if i == 1 {
			before = "*a0"
		}
		source.WriteString(name + ": &" + name + " [" + strings.TrimSuffix(strings.Repeat(before+", ", 10), ", ") + "]\n")
	}
	_, problems := document.Parse([]byte(source.String()), "f")
	if len(problems) != 1 || !strings.Contains(problems[0].Text, "more than 1000000 values") {
		t.Errorf("%q", problems)
	}
}
