package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

// reason matches the comment of a field that says why it has no writer or reader. The comment is part of the published
// API, so callers can read it, too.
var reason = regexp.MustCompile(`\b(No effect|Never set|Unused): [a-z]`)

// readReasons returns the fields whose comment in the generated code gives a reason: package.Type.Field.
func readReasons(root string) (map[string]bool, error) {
	reasons := map[string]bool{}
	gen := filepath.Join(root, "gen", "palisade")
	return reasons, filepath.WalkDir(gen, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".pb.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		within, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				addReasons(reasons, filepath.ToSlash(within)+"."+spec.Name.Name, spec)
			}
			return true
		})
		return nil
	})
}

func addReasons(reasons map[string]bool, owner string, spec *ast.TypeSpec) {
	message, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range message.Fields.List {
		text := strings.Join(strings.Fields(f.Doc.Text()), " ")
		for _, name := range f.Names {
			if reason.MatchString(text) {
				reasons[owner+"."+name.Name] = true
			}
		}
	}
}
