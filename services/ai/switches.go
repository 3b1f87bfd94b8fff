package ai

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palisade/palisade/services/ai/prompt"
	"github.com/palisade/palisade/services/deployments/details"
)

var (
	// errOff: the deployment has disabled the feature.
	errOff = errors.New("the deployment has switched it off")
	// errProvider: the deployment does not allow this model provider.
	errProvider = fmt.Errorf("%w for the provider of this server", errOff)
)

// use is a use of the model. Its value is the name of the switch in the deployment's product configuration.
type use string

const (
	triaging use = "sast.ai_autotriage.enabled"
	fixing   use = "sast.ai_autofix.enabled"
)

// checkCurrent returns the uses that the parts of an analysis need. Tags only need AI to be enabled.
func usesOf(parts prompt.Parts) (uses []use) {
	if parts.Verdict {
		uses = append(uses, triaging)
	}
	if parts.Guidance {
		uses = append(uses, fixing)
	}
	return uses
}

// checkAllowed returns errOff with the name of the switch if the deployment has disabled a use, or errProvider, which
// wraps errOff.
func (a *Assistant) checkAllowed(ctx context.Context, uses ...use) error {
	row, err := a.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return err
	}
	products, err := details.Products(row)
	if err != nil {
		return err
	}
	on := map[use]bool{triaging: products.GetSast().GetAiAutotriage().GetEnabled(), fixing: products.GetSast().GetAiAutofix().GetEnabled()}
	if !products.GetAi().GetEnabled() {
		return fmt.Errorf("%w: ai.enabled of its products is false", errOff)
	}
	if allowed := products.GetAi().GetAllowedProviders(); len(allowed) > 0 && a.models.Configured() && !slices.ContainsFunc(allowed, a.models.Named) {
		return fmt.Errorf("%w: ai.allowed_providers of its products name others", errProvider)
	}
	for _, u := range uses {
		if !on[u] {
			return fmt.Errorf("%w: %s of its products is false", errOff, u)
		}
	}
	return nil
}
