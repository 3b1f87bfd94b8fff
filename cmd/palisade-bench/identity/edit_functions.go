package identity

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// withResults returns the functions of a file that contain results.
func (w *work) withResults(file string, g *goFile) []*ast.FuncDecl {
	on := w.on(file)
	var list []*ast.FuncDecl
	for _, f := range g.functions() {
		if slices.ContainsFunc(sortedKeys(on), func(line int) bool { return g.holds(f, line) }) {
			list = append(list, f)
		}
	}
	return list
}

// duplicateFunctions adds copies of a quarter of the functions with results to the ends of their files, under new
// names. In other code it copies lines around results.
func duplicateFunctions(w *work) {
	for _, file := range w.files() {
		lines := w.tree.Files[file]
		if !isGo(file) {
			for _, line := range some(w.random, sortedKeys(w.on(file)), 0.1) {
				lines = append(lines, copied(lines[max(0, line-6):min(line+5, len(w.tree.Files[file]))])...)
			}
			w.tree.Files[file] = lines
			continue
		}
		g := w.parse(file)
		if g == nil {
			continue
		}
		for _, f := range some(w.random, w.withResults(file, g), 0.25) {
			name := f.Name.Name
			if name == "init" || name == "main" || name == "_" {
				continue
			}
			duplicate := copied(lines[g.line(f.Pos())-1 : g.line(f.End())])
			at := &duplicate[g.line(f.Name.Pos())-g.line(f.Pos())]
			column := g.column(f.Name.End()) - 1
			at.Text = at.Text[:column] + fmt.Sprintf("Twin%d", len(lines)) + at.Text[column:]
			lines = append(append(lines, Line{}), duplicate...)
			lines = append(lines, Line{})
		}
		w.tree.Files[file] = lines
	}
}

// deleteFunctions empties a third of the functions with results. In other code it deletes lines around results.
func deleteFunctions(w *work) {
	for _, file := range w.files() {
		if !isGo(file) {
			w.deleteAround(file)
			continue
		}
		g := w.parse(file)
		if g == nil {
			continue
		}
		lines := w.tree.Files[file]
		unused := map[int]bool{}
		for line, used := range g.usedImports() {
			unused[line] = !used
		}
		chosen := some(w.random, w.withResults(file, g), 0.33)
		slices.Reverse(chosen)
		for _, f := range chosen {
			first, last := g.line(f.Body.Lbrace), g.line(f.Body.Rbrace)
			if !endsWith(lines[first-1].Text, "{") {
				continue // a body on the line of its brace
			}
			lines = slices.Replace(lines, first, last-1, Line{Text: "\tpanic(\"not there any more\")"})
		}
		w.tree.Files[file] = blankUnused(file, lines, func(l Line) bool { return unused[l.From.Line] })
	}
}

func endsWith(line, what string) bool {
	code, _, _ := strings.Cut(line, "//")
	return strings.HasSuffix(strings.TrimSpace(code), what)
}

// deleteAround deletes one to three blocks of up to twenty lines, each with a result.
func (w *work) deleteAround(file string) {
	gone := map[int]bool{}
	for _, line := range few(w.random, sortedKeys(w.on(file))) {
		first := line - w.random.IntN(10)
		for n := range 1 + line - first + w.random.IntN(10) {
			gone[first+n] = true
		}
	}
	var kept []Line
	for i, line := range w.tree.Files[file] {
		if !gone[i+1] {
			kept = append(kept, line)
		}
	}
	w.tree.Files[file] = kept
}
