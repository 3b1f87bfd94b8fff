package main

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/packages"
)

// functions are sets of functions by what they use.
type functions map[string]map[string]bool

// uses are the functions that read and write fields.
type uses struct {
	reads, writes functions // by package.Type.Field
	methods       functions // calls of other methods of generated types, by package.Type.Method
	getters       functions // by the method that is called through an interface
	names         functions // what is used of ent's packages, such as finding.FilePathIn
	// readText and writeText are by the words of SQL statements.
	readText, writeText functions
}

func newUses() *uses {
	return &uses{functions{}, functions{}, functions{}, functions{}, functions{}, functions{}, functions{}}
}

func add(to functions, key, function string) {
	if to[key] == nil {
		to[key] = map[string]bool{}
	}
	to[key][function] = true
}

// collect adds the uses of a package.
func (u *uses) collect(pkg *packages.Package) {
	c := collector{uses: u, pkg: pkg, short: strings.TrimPrefix(pkg.PkgPath, module)}
	in := inspector.New(pkg.Syntax)
	kinds := []ast.Node{(*ast.CompositeLit)(nil), (*ast.SelectorExpr)(nil), (*ast.BasicLit)(nil)}
	in.WithStack(kinds, func(n ast.Node, push bool, stack []ast.Node) bool {
		if !push {
			return true
		}
		switch n := n.(type) {
		case *ast.CompositeLit:
			c.literal(n, stack)
		case *ast.SelectorExpr:
			c.selector(n, stack)
		case *ast.BasicLit:
			c.text(n, stack)
		}
		return true
	})
}

type collector struct {
	*uses
	pkg   *packages.Package
	short string
}

// function names the function around a node and its file: "services/scm/config_convert.go configOut".
func (c *collector) function(stack []ast.Node) string {
	name := "(package)"
	for _, n := range stack {
		if f, ok := n.(*ast.FuncDecl); ok {
			name = f.Name.Name
		}
	}
	return c.short + "/" + filepath.Base(c.pkg.Fset.File(stack[0].Pos()).Name()) + " " + name
}

// literal records the fields that a struct literal sets to something else than a constant zero.
func (c *collector) literal(lit *ast.CompositeLit, stack []ast.Node) {
	owner := c.generated(c.pkg.TypesInfo.TypeOf(lit))
	if owner == "" {
		return
	}
	for _, element := range lit.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if name, ok := pair.Key.(*ast.Ident); ok && !c.zero(pair.Value) && !c.copies(pair.Value, owner, name.Name) {
			add(c.writes, owner+"."+name.Name, c.function(stack))
		}
	}
}

// selector records a field that is read or written, and the call of a getter or of a builder's method.
func (c *collector) selector(sel *ast.SelectorExpr, stack []ast.Node) {
	selection := c.pkg.TypesInfo.Selections[sel]
	if selection == nil {
		if object, ok := c.pkg.TypesInfo.Uses[sel.Sel]; ok && object.Pkg() != nil && strings.HasPrefix(object.Pkg().Path(), module+"ent/") {
			add(c.names, strings.TrimPrefix(object.Pkg().Path(), module+"ent/")+"."+object.Name(), c.function(stack))
		}
		return
	}
	name := sel.Sel.Name
	if selection.Kind() != types.FieldVal {
		c.method(selection, name, stack)
		return
	}
	owner := c.generated(fieldOwner(selection))
	if owner == "" {
		return
	}
	reads, writes := c.access(sel, owner, stack)
	if reads {
		add(c.reads, owner+"."+name, c.function(stack))
	}
	if writes {
		add(c.writes, owner+"."+name, c.function(stack))
	}
}

// fieldOwner returns the struct that has the selected field: promoted fields belong to the embedded struct.
func fieldOwner(selection *types.Selection) types.Type {
	owner := selection.Recv()
	for _, i := range selection.Index()[:len(selection.Index())-1] {
		pointer, ok := owner.Underlying().(*types.Pointer)
		if ok {
			owner = pointer.Elem()
		}
		owner = owner.Underlying().(*types.Struct).Field(i).Type()
	}
	return owner
}

func (c *collector) method(selection *types.Selection, name string, stack []ast.Node) {
	receiver := selection.Obj().(*types.Func).Signature().Recv().Type() // not an embedding struct
	if owner := c.generated(receiver); owner != "" {
		if field, ok := strings.CutPrefix(name, "Get"); ok {
			add(c.reads, owner+"."+field, c.function(stack))
		} else {
			add(c.methods, owner+"."+name, c.function(stack))
		}
		return
	}
	if strings.HasPrefix(name, "Get") && types.IsInterface(receiver) {
		add(c.getters, name, c.function(stack))
	}
}

// access tells what an expression does with a field: its parent assigns to it, takes its address or reads it.
func (c *collector) access(sel ast.Expr, owner string, stack []ast.Node) (reads, writes bool) {
	name := sel.(*ast.SelectorExpr).Sel.Name
	for i := len(stack) - 2; i >= 0; i-- {
		switch parent := stack[i].(type) {
		case *ast.ParenExpr:
			sel = parent
			continue
		case *ast.IndexExpr:
			if parent.X != sel {
				return true, false
			}
			sel = parent
			continue
		case *ast.UnaryExpr:
			return true, parent.Op == token.AND
		case *ast.IncDecStmt:
			return true, true
		case *ast.RangeStmt:
			return parent.X == sel, parent.Key == sel || parent.Value == sel
		case *ast.AssignStmt:
			for n, left := range parent.Lhs {
				if left == sel {
					if len(parent.Rhs) != len(parent.Lhs) {
						return false, true
					}
					value := parent.Rhs[n]
					return parent.Tok != token.ASSIGN, !c.zero(value) && !c.copies(value, owner, name)
				}
			}
		}
		return true, false
	}
	return true, false
}

// copies is true for the same field of another message of the same type: something else has to write it first.
func (c *collector) copies(e ast.Expr, owner, name string) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		if called, ok := e.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Get"+name {
			return c.generated(c.pkg.TypesInfo.TypeOf(called.X)) == owner
		}
		return len(e.Args) == 1 && c.copies(e.Args[0], owner, name)
	case *ast.SelectorExpr:
		return e.Sel.Name == name && c.generated(c.pkg.TypesInfo.TypeOf(e.X)) == owner
	}
	return false
}

// zero is true for constants that are the zero value, and for nil and empty literals.
func (c *collector) zero(e ast.Expr) bool {
	tv := c.pkg.TypesInfo.Types[e]
	if tv.IsNil() {
		return true
	}
	if tv.Value != nil {
		switch tv.Value.Kind() {
		case constant.Bool:
			return !constant.BoolVal(tv.Value)
		case constant.String:
			return constant.StringVal(tv.Value) == ""
		default:
			return constant.Sign(tv.Value) == 0
		}
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok || len(lit.Elts) > 0 {
		return false
	}
	switch tv.Type.Underlying().(type) {
	case *types.Slice, *types.Map:
		return true
	}
	return false
}

// generated returns package.Type for a generated message or an ent type, or "".
func (c *collector) generated(t types.Type) string {
	if t == nil {
		return ""
	}
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	path, ours := strings.CutPrefix(named.Obj().Pkg().Path(), module)
	if !ours || !strings.HasPrefix(path, "gen/") && path != "ent" {
		return ""
	}
	return path + "." + named.Obj().Name()
}

// text records the words of an SQL statement: a column that it names is written or read.
func (c *collector) text(lit *ast.BasicLit, stack []ast.Node) {
	if lit.Kind != token.STRING || !strings.Contains(lit.Value, " ") && !strings.Contains(lit.Value, "_") {
		return
	}
	writes := strings.Contains(lit.Value, "INSERT ") || strings.Contains(lit.Value, "UPDATE ") || strings.Contains(lit.Value, "SET ")
	for _, word := range strings.FieldsFunc(lit.Value, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		if writes {
			add(c.writeText, word, c.function(stack))
		} else {
			add(c.readText, word, c.function(stack))
		}
	}
}

// writers returns the functions that write the field of a message.
func (u *uses) writers(f field) []string {
	return sorted(u.writes[f.owner()+"."+f.name])
}

func (u *uses) readers(f field) []string {
	return sorted(u.reads[f.message+"."+f.name], u.reads[f.owner()+"."+f.name], u.getters["Get"+f.name])
}

// columnWriters returns the functions that set a column, by ent or by an SQL statement that names it.
func (u *uses) columnWriters(c column) []string {
	sets := []map[string]bool{u.writeText[c.sql], u.names[c.pkg+".Field"+c.name]}
	for _, builder := range []string{"Create", "Update", "UpdateOne", "Upsert", "UpsertOne", "UpsertBulk", "Mutation"} {
		for _, verb := range []string{"Set", "SetNillable", "Add", "Update", "Append"} {
			sets = append(sets, u.methods["ent."+c.table+builder+"."+verb+c.name])
		}
	}
	return sorted(sets...)
}

// columnReaders returns the functions that read a column, have a condition or order on it, or name it in a statement.
func (u *uses) columnReaders(c column) []string {
	sets := []map[string]bool{u.reads["ent."+c.table+"."+c.name], u.readText[c.sql], u.writeText[c.sql]}
	for name, functions := range u.names {
		rest, ok := strings.CutPrefix(name, c.pkg+".")
		if !ok {
			continue
		}
		rest = strings.TrimPrefix(strings.TrimPrefix(rest, "Field"), "By")
		if condition, ok := strings.CutPrefix(rest, c.name); ok && conditions[condition] {
			sets = append(sets, functions)
		}
	}
	return sorted(sets...)
}

// conditions are the ends of the names of ent's predicates.
var conditions = map[string]bool{
	"": true, "EQ": true, "NEQ": true, "In": true, "NotIn": true, "GT": true, "GTE": true, "LT": true, "LTE": true,
	"IsNil": true, "NotNil": true, "Contains": true, "HasPrefix": true, "HasSuffix": true, "EqualFold": true, "ContainsFold": true,
}

func sorted(sets ...map[string]bool) []string {
	all := map[string]bool{}
	for _, set := range sets {
		maps.Copy(all, set)
	}
	return slices.Sorted(maps.Keys(all))
}
