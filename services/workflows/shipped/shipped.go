// Package shipped holds the workflows that ship with the product. They are ordinary definitions: a deployment may
// disable them, delete them, or publish its own under their names.
package shipped

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Workflow is one definition.
type Workflow struct {
	Name   string
	Source []byte
}

// All lists the definitions by name, which is the file name.
func All() ([]Workflow, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	out := make([]Workflow, len(names))
	for i, name := range names {
		source, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out[i] = Workflow{Name: strings.TrimSuffix(path.Base(name), ".yaml"), Source: source}
	}
	return out, nil
}
