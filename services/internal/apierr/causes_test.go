package apierr_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tellsNobody are the functions that may drop a cause: their errors already say what is wrong with a value that the
// caller or the operator gave, or that a rule of the program is missing.
var tellsNobody = []string{
	"access.readRule", "channel.checkValue", "channel.recipients", "console.identify", "mailserver.CheckFrom", "mailserver.parseSMTP",
	"notifications.ListNotificationRules",
}

// TestCausesReachTheLog: where a sign-in, a token or a message fails, callers get a text without the cause. The error
// that they get must hold the cause, so that the log has it.
func TestCausesReachTheLog(t *testing.T) {
	var dropped []string
	for _, dir := range []string{"../access", "../mailserver", "../../console", "../../notifications", "../../notifications/channel"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, declared := range parsed.Decls {
				if function, ok := declared.(*ast.FuncDecl); ok && function.Body != nil && dropsCause(function) {
					dropped = append(dropped, filepath.Base(dir)+"."+function.Name.Name)
				}
			}
		}
	}
	slices.Sort(dropped)
	if !slices.Equal(dropped, tellsNobody) {
		t.Errorf("these functions return an error without its cause: %q", dropped)
	}
}

// dropsCause reports whether a function looks at err, and returns another error that does not hold it.
func dropsCause(function *ast.FuncDecl) (drops bool) {
	ast.Inspect(function.Body, func(n ast.Node) bool {
		branch, ok := n.(*ast.IfStmt)
		if ok && comparesErr(branch.Cond) && !names(branch.Body, "err") {
			ast.Inspect(branch.Body, func(n ast.Node) bool {
				if end, ok := n.(*ast.ReturnStmt); ok {
					drops = drops || slices.ContainsFunc(end.Results, makesError)
				}
				return true
			})
		}
		return true
	})
	return drops
}

// comparesErr finds err != nil in a condition.
func comparesErr(condition ast.Expr) (found bool) {
	ast.Inspect(condition, func(n ast.Node) bool {
		if compared, ok := n.(*ast.BinaryExpr); ok && compared.Op == token.NEQ {
			left, isName := compared.X.(*ast.Ident)
			found = found || isName && left.Name == "err"
		}
		return true
	})
	return found
}

// makesError reports whether a result is a new error: a call such as errNoSession() or apierr.NotFound(…), &Error{…},
// or a variable such as errBroken.
func makesError(result ast.Expr) bool {
	switch e := result.(type) {
	case *ast.UnaryExpr:
		made, ok := e.X.(*ast.CompositeLit)
		return ok && names(made.Type, "Error")
	case *ast.Ident:
		return strings.HasPrefix(e.Name, "err") || strings.HasPrefix(e.Name, "Err")
	case *ast.CallExpr:
		return makesError(e.Fun) || names(e.Fun, "fmt") || names(e.Fun, "errors") || names(e.Fun, "apierr")
	}
	return false
}

func names(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		named, ok := n.(*ast.Ident)
		found = found || ok && named.Name == name
		return true
	})
	return found
}
