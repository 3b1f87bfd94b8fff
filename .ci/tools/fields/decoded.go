package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// decodedPackage has the types that reports are decoded into.
const decodedPackage = module + "services/scans/formats"

// decodedRows returns the fields of unexported types that reports are decoded into. The types in sarif.go are written.
func decodedRows(roots []*packages.Package) (rows []row) {
	at := slices.IndexFunc(roots, func(p *packages.Package) bool { return p.PkgPath == decodedPackage })
	if at < 0 {
		return nil
	}
	pkg := roots[at]
	read := readFields(pkg)
	for _, file := range pkg.Syntax {
		name := pkg.Fset.File(file.Pos()).Name()
		if strings.HasSuffix(name, "/sarif.go") {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				return false
			}
			fields, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			owner := pkg.TypesInfo.TypeOf(fields)
			for _, field := range fields.Fields.List {
				for _, id := range field.Names {
					at := pkg.Fset.Position(id.Pos())
					r := row{kind: "decoded", name: at.Filename[strings.LastIndexByte(at.Filename, '/')+1:] + " " + id.Name, needsRead: true}
					if function := read[fieldKey(owner, id.Name)]; function != "" {
						r.readers = []string{function}
					}
					rows = append(rows, r)
				}
			}
			return true
		})
	}
	return rows
}

// fieldKey names a field by the type of its struct: equal types without a name are one type.
func fieldKey(owner types.Type, field string) string {
	if pointer, ok := owner.Underlying().(*types.Pointer); ok {
		owner = pointer.Elem()
	}
	return owner.Underlying().String() + "." + field
}

// readFields returns a function that reads each field. Assigning to a field, and decoding into it, is no reading.
func readFields(pkg *packages.Package) map[string]string {
	read := map[string]string{}
	for _, file := range pkg.Syntax {
		filled := map[ast.Expr]bool{}
		function := ""
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				function = n.Name.Name
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					filled[to] = n.Tok == token.ASSIGN
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && slices.Contains([]string{"into", "xmlInto", "xmlList"}, f.Name) {
					for _, argument := range n.Args {
						if address, ok := argument.(*ast.UnaryExpr); ok {
							filled[address.X] = true
						}
					}
				}
			case *ast.SelectorExpr:
				if selection := pkg.TypesInfo.Selections[n]; selection != nil && selection.Kind() == types.FieldVal && !filled[n] {
					read[fieldKey(fieldOwner(selection), n.Sel.Name)] = function
				}
			}
			return true
		})
	}
	return read
}
