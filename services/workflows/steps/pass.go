package steps

import (
	"context"

	"github.com/palisade/palisade/services/workflows/step"
)

// passParameters are those of pass.
type passParameters struct {
	// Output is any JSON: expressions make it from what other steps brought.
	Output any `json:"output"`
}

func (passParameters) problem(map[string]bool) string { return "" }

// pass does nothing but to bring what its parameters say: for forks, joins and summaries.
func pass() step.Kind {
	return step.Kind{
		Name: "pass", Doc: "Brings the value of output, which expressions can compute from earlier steps.",
		Check: checked[passParameters](),
		Run: func(_ context.Context, call step.Call) (step.Result, error) {
			return output(call.With["output"])
		},
	}
}
