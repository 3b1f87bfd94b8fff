package supplychain

import "github.com/palisade/palisade/services/internal/store"

// NewSupplyChainOfWindows is NewSupplyChain with limits so low that a few thousand dependencies exercise all plans.
func NewSupplyChainOfWindows(st *store.Store) *SupplyChain {
	return &SupplyChain{store: st, limits: limits{fewNames: 20, lookedUp: 40, together: 120, ofRepository: 30, sortable: 300}, sizes: newSizes()}
}
