// Package starter holds the rules that ship with the product: one file a rule, in a directory a language, and beside it
// a file of the same name with examples.
package starter

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/palisade/palisade/services/rules/document"
)

//go:embed rules/*/*.yaml
var files embed.FS

// Rules returns the rules that ship with the product, by language and name. They are shared and must not be modified.
var Rules = sync.OnceValues(func() ([]document.Rule, error) {
	names, err := fs.Glob(files, "rules/*/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []document.Rule
	for _, name := range names {
		if strings.HasSuffix(name, ".test.yaml") {
			continue // examples
		}
		source, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		rules, problems := document.Parse(source, name)
		if len(problems) > 0 {
			return nil, fmt.Errorf("starter rules: %s", problems[0])
		}
		for _, rule := range rules {
			if slices.ContainsFunc(all, func(other document.Rule) bool { return other.Name == rule.Name }) {
				return nil, fmt.Errorf("starter rules: %s is in two files", rule.Name)
			}
			all = append(all, rule)
		}
	}
	return all, nil
})
