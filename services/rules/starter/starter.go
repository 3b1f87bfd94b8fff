// Package starter holds the rules that ship with the product.
package starter

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/palisade/palisade/services/rules/document"
)

//go:embed *.yaml
var files embed.FS

// Rules returns the rules that ship with the product, by file and line. They are shared and must not be modified.
var Rules = sync.OnceValues(func() ([]document.Rule, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []document.Rule
	for _, name := range names {
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
