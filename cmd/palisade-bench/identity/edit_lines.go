package identity

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// insertLines inserts comments, empty lines and declarations into every file with results, one of them near the top.
func insertLines(w *work) {
	for _, file := range w.files() {
		places := w.insertionLines(file)
		if len(places) == 0 {
			continue
		}
		chosen := []int{places[w.random.IntN(min(3, len(places)))]}
		for range w.random.IntN(4) {
			chosen = append(chosen, places[w.random.IntN(len(places))])
		}
		slices.Sort(chosen)
		chosen = slices.Compact(chosen)
		slices.Reverse(chosen) // from the end, so that other positions stay valid
		for _, line := range chosen {
			made := make([]Line, 2+w.random.IntN(12))
			for i := range made[1:] { // the last line is empty: a comment directly above a declaration would belong to it
				if !isGo(file) || w.random.IntN(4) > 0 {
					made[i].Text = fmt.Sprintf("// Note %d: what follows was looked at in the last review.", w.random.IntN(1000))
				}
			}
			w.tree.Files[file] = slices.Insert(w.tree.Files[file], line-1, made...)
		}
	}
}

// insertionLines returns the lines above which text can be inserted, sorted.
func (w *work) insertionLines(file string) []int {
	lines := w.tree.Files[file]
	if !isGo(file) {
		all := make([]int, len(lines))
		for i := range all {
			all[i] = i + 1
		}
		return all
	}
	g := w.parse(file)
	if g == nil {
		return nil
	}
	var places []int
	for _, decl := range g.file.Decls {
		places = append(places, g.declLine(decl))
	}
	for _, s := range g.statements() {
		// A comment above may belong to this statement, or be for a tool.
		above := strings.TrimSpace(lines[s.first-2].Text)
		if !strings.HasPrefix(above, "//") && !strings.HasSuffix(above, "*/") {
			places = append(places, s.first)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// reindent replaces tabs by spaces in all indentation, or adds a tab.
func reindent(w *work) {
	for _, file := range w.files() {
		skip := map[int]bool{}
		if isGo(file) {
			skip = inToken(w.tree.Text(file))
		}
		spaces := w.random.IntN(2) == 0
		lines := w.tree.Files[file]
		for i := range lines {
			if !skip[i+1] {
				lines[i].indent(spaces, isGo(file))
			}
		}
	}
}

// indent changes the indentation of a line; if its text is unknown, only its columns.
func (l *Line) indent(spaces, known bool) {
	rest := strings.TrimLeft(l.Text, "\t ")
	before := len(l.Text) - len(rest)
	indent := "\t" + l.Text[:before]
	if spaces {
		indent = strings.ReplaceAll(l.Text[:before], "\t", "    ")
	}
	switch {
	case !known:
		l.shifts = append(slices.Clone(l.shifts), shift{at: 1, delta: 2})
	case before > 0 && rest != "":
		l.Text = indent + rest
		l.shifts = append(slices.Clone(l.shifts), shift{at: before + 1, delta: len(indent) - before})
	}
}

// duplicateLines duplicates one to three statements with results of each file directly below them.
func duplicateLines(w *work) {
	for _, file := range w.files() {
		ranges := few(w.random, w.repeatable(file))
		slices.SortFunc(ranges, func(a, b [2]int) int { return b[0] - a[0] })
		for _, r := range ranges {
			lines := w.tree.Files[file]
			w.tree.Files[file] = slices.Insert(lines, r[1], copied(lines[r[0]-1:r[1]])...)
		}
	}
}

func copied(lines []Line) []Line {
	copies := slices.Clone(lines)
	for i := range copies {
		copies[i].Copy = copies[i].From != Place{}
	}
	return copies
}

// repeatable returns the first and last lines of statements that can be duplicated, without nested ones.
func (w *work) repeatable(file string) [][2]int {
	on := w.on(file)
	var ranges [][2]int
	if !isGo(file) {
		for line := 1; line <= len(w.tree.Files[file]); line++ {
			if on[line] {
				ranges = append(ranges, [2]int{line, line})
			}
		}
		return ranges
	}
	g := w.parse(file)
	if g == nil {
		return nil
	}
	last := 0
	all := g.statements()
	slices.SortFunc(all, func(a, b statement) int { return a.first - b.first })
	for _, s := range all {
		if s.first <= last || !on[s.first] || !g.plain(s.Stmt) {
			continue
		}
		ranges, last = append(ranges, [2]int{s.first, s.last}), s.last
	}
	return ranges
}

// plain reports whether a statement can be duplicated: it declares nothing and does not leave the block.
func (g *goFile) plain(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		name, ok := call.Fun.(*ast.Ident)
		return !ok || name.Name != "panic"
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt, *ast.GoStmt:
		return true
	}
	return false
}
