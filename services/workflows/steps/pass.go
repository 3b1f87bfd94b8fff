package steps

import (
	"context"

	"github.com/palisade/palisade/services/workflows/step"
)

// passParameters are the parameters of pass.
type passParameters struct {
	// Output is any JSON. Expressions can build it from the results of other steps.
	Output any `json:"output"`
}

func (passParameters) problem(map[string]bool) string { return "" }

// pass returns its parameters as output: for forks, joins and summaries.
func pass() step.Kind {
	return step.Kind{
		Name: "pass", Doc: "Brings the value of output, which expressions can compute from earlier steps.",
		Check: checked[passParameters](),
		Run: func(_ context.Context, call step.Call) (step.Result, error) {
			return output(call.With["output"])
		},
	}
}
