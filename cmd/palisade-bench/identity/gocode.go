package identity

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// goFile is a parsed Go file. Its lines count from 1.
type goFile struct {
	set  *token.FileSet
	file *ast.File
	text string
}

func isGo(file string) bool { return strings.HasSuffix(file, ".go") }

// parseGo parses a Go file. It returns nil for a file that must not be edited: an invalid one, or one that depends on
// its location or has directives in comments.
func parseGo(name, text string) *goFile {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || strings.Contains(text, "\n//go:embed ") || strings.Contains(text, "\n//line ") {
		return nil
	}
	for _, spec := range file.Imports {
		if spec.Path.Value == `"C"` || spec.Name != nil && spec.Name.Name == "." {
			return nil
		}
	}
	return &goFile{set: set, file: file, text: text}
}

func (g *goFile) line(pos token.Pos) int { return g.set.PositionFor(pos, false).Line }

func (g *goFile) column(pos token.Pos) int { return g.set.PositionFor(pos, false).Column }

// declLine returns the first line of a declaration, including its comment.
func (g *goFile) declLine(decl ast.Decl) int {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Doc != nil {
			return g.line(decl.Doc.Pos())
		}
	case *ast.GenDecl:
		if decl.Doc != nil {
			return g.line(decl.Doc.Pos())
		}
	}
	return g.line(decl.Pos())
}

// functions returns the functions with a body of more than one line.
func (g *goFile) functions() []*ast.FuncDecl {
	var list []*ast.FuncDecl
	for _, decl := range g.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil && g.line(f.Body.Rbrace) > g.line(f.Body.Lbrace)+1 {
			list = append(list, f)
		}
	}
	return list
}

// holds reports whether a node contains a line.
func (g *goFile) holds(node ast.Node, line int) bool {
	return g.line(node.Pos()) <= line && line <= g.line(node.End())
}

// inToken marks the lines that start inside a token, where leading white space is text.
func inToken(text string) map[int]bool {
	inside := map[int]bool{}
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return inside
		}
		if kind == token.STRING || kind == token.COMMENT {
			first := file.Line(pos)
			for n := range strings.Count(literal, "\n") {
				inside[first+1+n] = true
			}
		}
	}
}

// statement is a statement that shares its lines with no other.
type statement struct {
	ast.Stmt
	first, last int
}

// statements lists the statements of all blocks that share their lines with no other.
func (g *goFile) statements() []statement {
	lines := strings.Split(g.text, "\n")
	var list []statement
	add := func(block []ast.Stmt) {
		for _, s := range block {
			first, last := g.line(s.Pos()), g.line(s.End())
			before := lines[first-1][:g.column(s.Pos())-1]
			after := lines[last-1][g.column(s.End())-1:]
			if strings.TrimSpace(before) == "" && (strings.TrimSpace(after) == "" || strings.HasPrefix(strings.TrimSpace(after), "//")) {
				list = append(list, statement{s, first, last})
			}
		}
	}
	ast.Inspect(g.file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BlockStmt:
			add(node.List)
		case *ast.CaseClause:
			add(node.Body)
		case *ast.CommClause:
			add(node.Body)
		}
		return true
	})
	return list
}

var versionSuffix = regexp.MustCompile(`^v[0-9]+$`)

// usedImports maps the lines of single-line imports to whether the file uses them. If the path does not tell the name
// of the package, the import counts as used.
func (g *goFile) usedImports() map[int]bool {
	used := map[string]bool{}
	ast.Inspect(g.file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
	lines := map[int]bool{}
	for _, spec := range g.file.Imports {
		line := g.line(spec.Pos())
		if spec.Name != nil {
			lines[line] = spec.Name.Name == "_" || used[spec.Name.Name]
			continue
		}
		lines[line] = false
		for _, name := range importNames(spec.Path.Value) {
			lines[line] = lines[line] || used[name]
		}
	}
	return lines
}

// importNames returns the possible names of a package, from its path.
func importNames(quoted string) []string {
	full, err := strconv.Unquote(quoted)
	if err != nil {
		return nil
	}
	base := path.Base(full)
	if versionSuffix.MatchString(base) {
		base = path.Base(path.Dir(full))
	}
	base, _, _ = strings.Cut(base, ".")
	names := []string{base, strings.ReplaceAll(base, "-", "_"), strings.ReplaceAll(base, "-", "")}
	return append(names, strings.Split(base, "-")...)
}

// blankUnused turns unused imports of a file into blank imports, so that it compiles with all its lines. keep excludes
// imports that were unused before.
func blankUnused(name string, lines []Line, keep func(Line) bool) []Line {
	g := parseGo(name, joinLines(lines))
	if g == nil {
		return lines
	}
	used := g.usedImports()
	for _, spec := range g.file.Imports {
		line := g.line(spec.Pos())
		if used[line] || keep(lines[line-1]) {
			continue
		}
		from, to := g.column(spec.Pos())-1, g.column(spec.Path.Pos())-1
		text := lines[line-1].Text
		lines[line-1].Text = text[:from] + "_ " + text[to:]
	}
	return lines
}

func isImport(decl ast.Decl) bool {
	general, ok := decl.(*ast.GenDecl)
	return ok && general.Tok == token.IMPORT
}
