package identity

import (
	"errors"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// renameVariables renames one local variable in every function with results, preferably one on the line of a result.
// Code that cannot be parsed has no known variables.
func renameVariables(w *work) {
	for _, file := range w.files() {
		g := w.parse(file)
		if g == nil {
			continue
		}
		info := g.resolve()
		on := w.on(file)
		var uses []use
		for _, f := range g.functions() {
			if !slices.ContainsFunc(sortedKeys(on), func(line int) bool { return g.holds(f, line) }) {
				continue
			}
			uses = append(uses, w.renameIn(g, f, info, on)...)
		}
		w.replace(file, uses)
	}
}

// use is a position of an identifier and its new name; lines and columns count from 1.
type use struct {
	line, column int
	old, now     string
}

// resolve resolves the identifiers of a file. Identifiers of other files and packages stay unresolved, which is enough:
// local variables are resolved.
func (g *goFile) resolve() *types.Info {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	_, _ = config.Check(g.file.Name.Name, g.set, []*ast.File{g.file}, info) // errors concern only unresolved identifiers
	return info
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not looked at") }

// renameIn selects a variable of a function, and returns its positions.
func (w *work) renameIn(g *goFile, f *ast.FuncDecl, info *types.Info, on map[int]bool) []use {
	findingOf := map[string][]*ast.Ident{}
	bad := map[string]bool{} // names that also denote something else
	fields := map[*ast.Ident]bool{}
	ast.Inspect(f, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.SelectorExpr:
			fields[node.Sel] = true
		case *ast.Ident:
			switch {
			case fields[node]:
			case localVariable(f, objectOf(info, node)):
				findingOf[node.Name] = append(findingOf[node.Name], node)
			default:
				bad[node.Name] = true
			}
		}
		return true
	})
	var names, preferred []string
	for _, name := range sortedKeys(findingOf) {
		if bad[name] {
			continue
		}
		names = append(names, name)
		if slices.ContainsFunc(findingOf[name], func(id *ast.Ident) bool { return on[g.line(id.Pos())] }) {
			preferred = append(preferred, name)
		}
	}
	if len(preferred) > 0 {
		names = preferred
	}
	if len(names) == 0 {
		return nil
	}
	old := names[w.random.IntN(len(names))]
	now := old + "Value"
	if strings.Contains(g.text, now) {
		return nil
	}
	w.words = append(w.words, word{g.set.File(f.Pos()).Name(), g.line(f.Pos()), g.line(f.End()), old, now})
	var uses []use
	for _, id := range findingOf[old] {
		uses = append(uses, use{g.line(id.Pos()), g.column(id.Pos()), old, now})
	}
	return uses
}

func objectOf(info *types.Info, id *ast.Ident) types.Object {
	if defined := info.Defs[id]; defined != nil {
		return defined
	}
	return info.Uses[id]
}

// localVariable reports whether an object is a variable or parameter of a function.
func localVariable(f *ast.FuncDecl, o types.Object) bool {
	v, ok := o.(*types.Var)
	return ok && !v.IsField() && v.Name() != "_" && f.Pos() <= v.Pos() && v.Pos() < f.End()
}

// replace writes the new identifiers into the lines.
func (w *work) replace(file string, uses []use) {
	slices.SortFunc(uses, func(a, b use) int { // from the end of a line, so that earlier columns stay valid
		if a.line != b.line {
			return a.line - b.line
		}
		return b.column - a.column
	})
	lines := w.tree.Files[file]
	for _, u := range uses {
		l := &lines[u.line-1]
		end := u.column - 1 + len(u.old)
		l.Text = l.Text[:u.column-1] + u.now + l.Text[end:]
		l.shifts = append(slices.Clone(l.shifts), shift{at: end + 1, delta: len(u.now) - len(u.old)})
	}
}
