package steps

import "github.com/palisade/palisade/services/workflows/step"

// externalParameters are those of external.
type externalParameters struct {
	// Payload is what the service that claims the task is told: any JSON.
	Payload any `json:"payload"`
}

func (externalParameters) problem(map[string]bool) string { return "" }

// external leaves the work to a service that claims the task.
func external() step.Kind {
	return step.Kind{
		Name: "external", Doc: "Waits for an internal service that claims the task, with payload, and reports its result.",
		Check: checked[externalParameters](),
	}
}
