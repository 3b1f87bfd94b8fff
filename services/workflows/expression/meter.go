package expression

import (
	"errors"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

const (
	// maxCost is the maximum number of function and operator calls in one evaluation. Each 16 bytes of a text result count
	// as another call.
	maxCost = 500_000
	// maxItems is the maximum length of a list, intermediate results included.
	maxItems = 200_000
)

var (
	errTooCostly = errors.New("the evaluation is too costly: it needs too many steps, or too large intermediate values")
	errTooLong   = fmt.Errorf("the evaluation is too costly: it took longer than %s", evalPeriod)
)

// meter counts the cost of one evaluation. CEL's own cost tracking takes quadratic time in the length of a list, which
// is too slow for the join of a wide foreach.
type meter struct{ cost int }

// decorate wraps each call with the meter.
func (m *meter) decorate() cel.ProgramOption {
	return cel.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if call, is := i.(interpreter.InterpretableCall); is {
			return &metered{InterpretableCall: call, meter: m}, nil
		}
		return i, nil
	})
}

// exceeded reports whether the evaluation must end. It stays true, because || can swallow a single error.
func (m *meter) exceeded() bool { return m.cost > maxCost }

// charge counts one call and its result.
func (m *meter) charge(v ref.Val) ref.Val {
	m.cost++
	switch v := v.(type) {
	case types.String:
		m.cost += len(v) / 16
	case types.Bytes:
		m.cost += len(v) / 16
	case traits.Lister:
		if n, known := v.Size().(types.Int); known && n > maxItems {
			m.cost = maxCost + 1
		}
	}
	if m.exceeded() {
		return types.WrapErr(errTooCostly)
	}
	return v
}

// metered is a call that the meter counts.
type metered struct {
	interpreter.InterpretableCall
	meter *meter
}

// Exec implements interpreter.InterpretableV2.
func (c *metered) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	if c.meter.exceeded() || !c.affordable(frame) {
		c.meter.cost = maxCost + 1
		return types.WrapErr(errTooCostly)
	}
	return c.meter.charge(c.InterpretableCall.Exec(frame))
}

// Eval implements interpreter.Interpretable.
func (c *metered) Eval(vars interpreter.Activation) ref.Val { return c.Exec(interpreter.AsFrame(vars)) }

// affordable checks the arguments of functions with results far larger than their arguments, before the call.
func (c *metered) affordable(frame *interpreter.ExecutionFrame) bool {
	switch c.Function() {
	case "replace", "join", "format":
	default:
		return true
	}
	budget, repeated := MaxResult, 1
	args := make([]ref.Val, len(c.Args()))
	for i, arg := range c.Args() {
		args[i] = arg.Exec(frame)
		if _, err := fromCEL(args[i], &budget, 0); err != nil && budget < 0 {
			return false
		}
	}
	var each types.String
	switch {
	case c.Function() == "replace" && len(args) >= 3:
		text, _ := args[0].(types.String)
		old, _ := args[1].(types.String)
		each, _ = args[2].(types.String)
		repeated = len(text)/max(len(old), 1) + 1
	case c.Function() == "join" && len(args) == 2:
		list, isList := args[0].(traits.Lister)
		each, _ = args[1].(types.String)
		if n, known := types.Int(0), false; isList {
			if n, known = list.Size().(types.Int); known {
				repeated = int(n)
			}
		}
	}
	return len(each) == 0 || repeated <= MaxResult/len(each)
}
