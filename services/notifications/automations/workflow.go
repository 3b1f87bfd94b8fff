package automations

import (
	"context"
	"errors"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// workflow is a workflow of an automation, or why it cannot be started.
type workflow struct {
	start  outbox.Start
	reason error
}

// prepare reads the workflows of an automation.
func (g *engine) prepare(ctx context.Context, c *candidate) (map[string]workflow, error) {
	list := map[string]workflow{}
	for _, p := range c.parts {
		if name := p.config[configWorkflow]; p.kind == actWorkflow {
			start, err := g.starter.Prepare(ctx, name)
			if err != nil && !isRefusal(err) {
				return nil, err
			}
			list[name] = workflow{start, err}
		}
	}
	return list, nil
}

// isRefusal reports whether the error is an answer, not a failure.
func isRefusal(err error) bool {
	var answer *apierr.Error
	return errors.As(err, &answer)
}
