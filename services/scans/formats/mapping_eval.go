package formats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	// maxExpression is the maximal length of an expression in characters.
	maxExpression = 2000
	// maxCost is the cost at which CEL stops an evaluation. Reading a member costs about 1.
	maxCost = 100_000
)

// The variables of expressions.
const (
	varDoc    = "doc"    // members of the document, except the results
	varParent = "parent" // element of the outer list if the results are in a list in a list, otherwise doc
	varItem   = "item"   // the result
	varKey    = "key"    // name of the result if the results are the members of an object
)

// program is a compiled expression.
type program = cel.Program

// scope has the values of the variables.
type scope map[string]any

var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.CrossTypeNumericComparisons(true), cel.ParserExpressionSizeLimit(maxExpression), cel.RegexProgramSizeLimit(1000),
		ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(1000)), ext.Math(), ext.Bindings(), cel.OptionalTypes(),
	)
})

// compile compiles an expression over some variables.
func compile(text string, variables []string) (program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	var declared []cel.EnvOption
	for _, name := range variables {
		declared = append(declared, cel.Variable(name, cel.DynType))
	}
	if env, err = env.Extend(declared...); err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		var found []string
		for _, e := range issues.Errors() {
			found = append(found, fmt.Sprintf("column %d: %s", e.Location.Column()+1, strings.TrimSuffix(e.Message, " (in container '')")))
		}
		return nil, errors.New(strings.Join(found, "; "))
	}
	return env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(1000))
}

// eval evaluates an expression. A member that does not exist gives nil, as in JSON of most tools it is optional.
func (e *expr) eval(ctx context.Context, in scope) (any, error) {
	if e.program == nil {
		return nil, nil
	}
	value, _, err := e.program.ContextEval(ctx, map[string]any(in))
	if err != nil && strings.Contains(err.Error(), "no such key") {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the expression of line %d fails: %w", e.line, err)
	}
	native, err := value.ConvertToNative(reflect.TypeFor[*structpb.Value]())
	if err != nil {
		return nil, fmt.Errorf("the expression of line %d gives no JSON value", e.line)
	}
	return native.(*structpb.Value).AsInterface(), nil
}

// textOf converts a value to text. Lists and objects have none.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

// textsOf converts a value or a list of values to texts without empty ones.
func textsOf(value any) (texts []string) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, one := range list {
		if text := textOf(one); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// numberOf converts a value to a line or column; 0 if it is none.
func numberOf(value any) int {
	n, err := strconv.Atoi(strings.TrimSpace(textOf(value)))
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0
	}
	return n
}
