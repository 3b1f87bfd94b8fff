package steps

import "github.com/palisade/palisade/services/workflows/step"

// externalParameters are the parameters of external.
type externalParameters struct {
	// Payload is any JSON. The service that claims the task receives it.
	Payload any `json:"payload"`
}

func (externalParameters) problem(map[string]bool) string { return "" }

// external leaves the work to an internal service that claims the task.
func external() step.Kind {
	return step.Kind{
		Name: "external", Doc: "Waits for an internal service that claims the task, with payload, and reports its result.",
		Check: checked[externalParameters](),
	}
}
