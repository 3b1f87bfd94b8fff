package expression

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Limits of one evaluation.
const (
	// MaxLength is the maximum length of an expression in characters.
	MaxLength = 4096
	// MaxResult is the maximum size of the result of an expression, or of all expressions of a step together, in
	// approximate bytes of JSON.
	MaxResult = 4 << 20

	maxRange   = 10_000
	evalPeriod = 10 * time.Second
)

// Scope holds the variables of an expression by name (see [Variables]). Values are JSON-like; an integer may be any
// integer type, a whole float64 or a json.Number.
type Scope = map[string]any

// Variables of an expression.
const (
	Inputs   = "inputs"   // of the run, by name
	Run      = "run"      // id, workflow, projectId, gitRef, commit
	Steps    = "steps"    // steps.<name>.output
	Item     = "item"     // of the innermost foreach
	Index    = "index"    // of the innermost foreach or parallel
	Branches = "branches" // in a join: {key, status, output} in branch order
)

// Variables lists the names that an expression may use.
var Variables = []string{Inputs, Run, Steps, Item, Index, Branches}

var environment = sync.OnceValues(func() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.CustomTypeAdapter(adapter{}), cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(MaxLength), cel.RegexProgramSizeLimit(1000),
		ext.Strings(ext.StringsMaxPrecision(20)), ext.Lists(ext.ListsMaxRangeSize(maxRange)), ext.Sets(), ext.Math(), ext.Bindings(),
		ext.TwoVarComprehensions(),
	}
	for _, name := range Variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	return cel.NewEnv(options...)
})

// compiled is a compiled expression, or its error.
type compiled struct {
	env *cel.Env
	ast *cel.Ast
	err error
}

// compiledCache caches compiled expressions: the branches of a foreach evaluate the same ones, and compilation takes
// longer than evaluation.
var compiledCache = sync.OnceValue(func() *lru.Cache[string, compiled] {
	cache, err := lru.New[string, compiled](500)
	if err != nil {
		panic(err) // the size is positive
	}
	return cache
})

// compile parses and checks one expression; text may be wrapped in ${{ }}.
func compile(text string) compiled {
	source := unwrap(text)
	if found, known := compiledCache().Get(source); known {
		return found
	}
	out := compileNew(source)
	if len(source) <= MaxLength {
		compiledCache().Add(source, out)
	}
	return out
}

func compileNew(source string) compiled {
	env, err := environment()
	if err != nil {
		return compiled{err: err}
	}
	if source == "" {
		return compiled{err: errors.New("the expression is empty")}
	}
	checked, issues := env.Compile(source)
	if issues.Err() != nil {
		var found []string
		for _, e := range issues.Errors() {
			found = append(found, strings.TrimSuffix(e.Message, " (in container '')"))
		}
		return compiled{err: fmt.Errorf("expression %s: %s", short(source), short(strings.Join(found, "; ")))}
	}
	return compiled{env: env, ast: checked}
}

// Check rejects an expression that can never be evaluated: invalid syntax, unknown names and functions, mismatched
// types.
func Check(text string) error { return compile(text).err }

// Eval evaluates one expression. Numbers without a fraction are int64, others float64. Timestamps and durations are
// strings as in protobuf's JSON; bytes are base64.
func Eval(text string, scope Scope) (any, error) {
	budget := MaxResult
	return eval(text, scope, &budget)
}

func eval(text string, scope Scope, budget *int) (any, error) {
	c := compile(text)
	if c.err != nil {
		return nil, c.err
	}
	m := &meter{}
	program, err := c.env.Program(c.ast, m.decorate(), cel.InterruptCheckFrequency(1000))
	if err != nil {
		return nil, fmt.Errorf("expression %s: %w", short(unwrap(text)), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), evalPeriod)
	defer cancel()
	result, _, err := program.ContextEval(ctx, map[string]any(scope))
	switch {
	case m.exceeded():
		err = errTooCostly
	case err != nil && ctx.Err() != nil:
		err = errTooLong
	}
	if err != nil {
		return nil, fmt.Errorf("expression %s: %w", short(unwrap(text)), err)
	}
	value, err := fromCEL(result, budget, 0)
	if err != nil {
		return nil, fmt.Errorf("expression %s: %w", short(unwrap(text)), err)
	}
	return value, nil
}

// Uses holds the names that an expression reads.
type Uses struct {
	// Variables holds the members of [Variables] that occur.
	Variables map[string]bool
	// Steps and Inputs are the names N in steps.N and inputs.N, also as steps["N"].
	Steps, Inputs map[string]bool
}

// UsesOf returns the names that the expressions in all texts of a value read, so that a definition with an unknown step
// is rejected before it runs. Expressions that do not compile are left out.
func UsesOf(value any) Uses {
	uses := Uses{Variables: map[string]bool{}, Steps: map[string]bool{}, Inputs: map[string]bool{}}
	_ = eachExpression(value, func(text string) error {
		uses.add(text)
		return nil
	})
	return uses
}

// UsesOfExpression is UsesOf for one bare expression.
func UsesOfExpression(text string) Uses {
	uses := Uses{Variables: map[string]bool{}, Steps: map[string]bool{}, Inputs: map[string]bool{}}
	uses.add(text)
	return uses
}

func (u Uses) add(text string) {
	c := compile(text)
	if c.err != nil {
		return
	}
	declared := map[string]bool{}
	for _, name := range Variables {
		declared[name] = true
	}
	ast.PostOrderVisit(c.ast.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			if declared[e.AsIdent()] {
				u.Variables[e.AsIdent()] = true
			}
		case ast.SelectKind:
			u.member(e.AsSelect().Operand(), e.AsSelect().FieldName())
		case ast.CallKind:
			call := e.AsCall()
			if call.FunctionName() != operators.Index || len(call.Args()) != 2 || call.Args()[1].Kind() != ast.LiteralKind {
				return
			}
			if name, text := call.Args()[1].AsLiteral().(types.String); text {
				u.member(call.Args()[0], string(name))
			}
		}
	}))
}

func (u Uses) member(of ast.Expr, name string) {
	if of.Kind() != ast.IdentKind {
		return
	}
	switch of.AsIdent() {
	case Steps:
		u.Steps[name] = true
	case Inputs:
		u.Inputs[name] = true
	}
}

// unwrap strips ${{ }} from an expression where it is optional.
func unwrap(text string) string {
	text = strings.TrimSpace(text)
	if inner, only := single(text); only {
		text = strings.TrimSpace(inner)
	}
	return text
}

// short reduces error texts to one line of limited length.
func short(text string) string {
	const most = 200
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}
